// A loaded model: its numbers and its network. Immutable; any thread may read, and any number of executors
// share it.
#pragma once

#include <cstdint>
#include <memory>

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "model/fingerprint.h"
#include "model/hyperparameters.h"
#include "model/layers.h"
#include "model/loader.h"
#include "parallel/thread_pool.h"

namespace kvasir::model {

class Model {
 public:
  // Reads all weights of `file`, for conversations of up to `context` tokens (0: as many as it was trained
  // for): which of its rotations a model uses may depend on it. kUnsupported names an architecture, a type or
  // a scaling that does not run; kCorrupt says what is missing or of the wrong shape; kIo, kOutOfMemory;
  // kCancelled where `progress` answered false.
  [[nodiscard]] static Result<std::shared_ptr<const Model>> load(const gguf::File& file,
                                                                 parallel::ThreadPool& pool,
                                                                 LoadProgress progress = {},
                                                                 std::uint64_t context = 0);

  [[nodiscard]] const Hyperparameters& sizes() const noexcept { return sizes_; }
  [[nodiscard]] const Network& network() const noexcept { return network_; }
  [[nodiscard]] const Fingerprint& fingerprint() const noexcept { return fingerprint_; }

 private:
  Model(Hyperparameters sizes, Network network, const Fingerprint& fingerprint)
      : sizes_(std::move(sizes)), network_(std::move(network)), fingerprint_(fingerprint) {}
  Hyperparameters sizes_;
  Network network_;
  Fingerprint fingerprint_;
};

}  // namespace kvasir::model
