#include "cli/api_session.h"

#include <optional>
#include <utility>

#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "kv/arena.h"

namespace kvasir::cli {
namespace {

CacheType cache_type(kv::CacheElement element) {
  switch (element) {
    case kv::CacheElement::kF32:
      return CacheType::kF32;
    case kv::CacheElement::kF16:
      return CacheType::kF16;
    case kv::CacheElement::kBF16:
      return CacheType::kBf16;
    case kv::CacheElement::kQ8_0:
      return CacheType::kQ8_0;
    case kv::CacheElement::kQ4_0:
      return CacheType::kQ4_0;
  }
  return CacheType::kF16;
}

}  // namespace

Result<Model> load_model(const ModelFlags& flags) {
  watch_interrupts();
  constexpr std::uint64_t kParts = 1000;
  Progress progress(kParts);
  const auto report = [&](double done) {
    progress.at(static_cast<std::uint64_t>(done * kParts), "loading");
    return !interrupted();
  };
  auto loaded = Model::load(
      flags.model, {.threads = flags.threads, .progress = report, .context = flags.context.value_or(0)});
  if (!loaded && loaded.error().code() == Outcome::kCancelled) {
    return fail(Outcome::kCancelled, "interrupted");
  }
  return loaded;
}

Result<ExecutorOptions> executor_options(const Model& model, const ModelFlags& flags, std::uint64_t wanted) {
  KVASIR_ASSIGN(const kv::CacheTypes types, parse_types(flags.types));
  ExecutorOptions options;
  options.context = flags.context.value_or(model.trained_context());
  options.pool = flags.pool.value_or(wanted);
  options.keys = cache_type(types.keys);
  options.values = cache_type(types.values);
  options.page_cells = flags.page_cells;
  options.pass_tokens = flags.pass_tokens;
  return options;
}

Result<Executor> make_executor(const Model& model, const ModelFlags& flags, std::uint64_t wanted) {
  KVASIR_ASSIGN(const ExecutorOptions options, executor_options(model, flags, wanted));
  return Executor::create(model, options);
}

}  // namespace kvasir::cli
