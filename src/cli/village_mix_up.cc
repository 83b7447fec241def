#include "cli/village_mix_up.h"

#include "api/parts.h"
#include "base/try.h"
#include "engine/executor.h"

namespace kvasir::cli {

Status mix_up(Executor& executor, const Conversation& a, const Conversation& b, std::uint64_t cells) {
  engine::Executor& behind = *api::Inside::core(executor)->executor;
  KVASIR_TRY(behind.bring_back(a.id()));
  KVASIR_TRY(behind.bring_back(b.id()));
  return behind.change([&](engine::Engine& engine) { return engine.mix_up_cells(a.id(), b.id(), cells); });
}

}  // namespace kvasir::cli
