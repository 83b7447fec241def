#include "model/model.h"

#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/try.h"
#include "model/arch/arch.h"

namespace kvasir::model {

Result<std::shared_ptr<const Model>> Model::load(const gguf::File& file, parallel::ThreadPool& pool,
                                                 LoadProgress progress, std::uint64_t context) {
  try {
    const std::int64_t start = base::system_clock().now_ns();
    const auto name = file.get_string("general.architecture");
    if (!name && name.error().code() == Outcome::kNotFound) {
      return fail(Outcome::kCorrupt, name.error().message());
    }
    if (!name) return fail(name.error());
    KVASIR_ASSIGN(const Architecture* const architecture, find_architecture(*name));
    KVASIR_ASSIGN(Hyperparameters sizes, Hyperparameters::read(file, architecture->have));
    if (context != 0) sizes.used_context = context;
    Loader loader(file, pool, std::move(progress));
    KVASIR_ASSIGN(Network network, architecture->build(loader, sizes));
    network.takes_bytes = loader.takes_bytes();
    KVASIR_ASSIGN(const Fingerprint fingerprint, fingerprint_of(file, pool, sizes, network));
    base::log(LogLevel::kInfo, [&] {
      return "loaded a model of architecture " + sizes.architecture + ", " +
             std::to_string(file.tensors().size()) + " tensors, in " +
             std::to_string((base::system_clock().now_ns() - start) / 1'000'000) + " ms; numerics " +
             numerics_id();
    });
    return std::shared_ptr<const Model>(new Model(std::move(sizes), std::move(network), fingerprint));
  } catch (const std::bad_alloc&) {
    // So short that the message itself takes no memory.
    return fail(Outcome::kOutOfMemory, "out of memory");
  }
}

}  // namespace kvasir::model
