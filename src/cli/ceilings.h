// What this machine could do at most, and what that leaves for a model: the limits that figures of speed are
// compared with, measured in the same run.
#pragma once

#include <cstdint>

#include "gguf/gguf.h"
#include "kv/arena.h"
#include "kvasir/result.h"
#include "model/model.h"
#include "parallel/thread_pool.h"

namespace kvasir::cli {

// Of all threads of a pool at once. 0 where there is no such instruction here.
struct Ceilings {
  double bytes = 0;    // operations per second on codes and bytes, a product and its sum counting as two
  double bfloats = 0;  // on BF16
  double floats = 0;
  double read = 0;       // bytes per second of memory in pages as the system gives them to any program
  double read_huge = 0;  // the same in huge pages, where the kernel allows them

  // The greater of each.
  void take(const Ceilings& other) noexcept;
};

// For a model of so many bytes of weights: with many it takes a second, and for that time up to 1 GiB of
// memory for each thread, at most an eighth of what is free. kOutOfMemory, kCancelled where the user
// interrupts.
[[nodiscard]] Result<Ceilings> measure_ceilings(parallel::ThreadPool& pool, double weight_bytes);

// What a model's products do: operations, by the kind of their weights, and bytes of weights.
struct ProductWork {
  double on_bytes = 0;
  double on_floats = 0;
  double weight_bytes = 0;
};

// What a model does for each token.
struct ModelWork {
  ProductWork layers;
  ProductWork output;      // for a token whose logits are wanted
  double cell_bytes = 0;   // keys and values of one token, read for each token behind it
  double state_bytes = 0;  // of recurrent states that a token reads and writes
};

// Of a decoder: the weights of its layers, experts as far as a token uses them, and its output matrix.
[[nodiscard]] ModelWork work_of(const gguf::File& file, const model::Model& model,
                                const kv::CacheTypes& types);

// Tokens per second that nothing but a ceiling would hold up: of a prompt, of which the last token's logits
// are wanted; and of so many conversations that generate at a depth, which read all weights once for each
// step. 0 where it cannot be told.
[[nodiscard]] double prompt_limit(const ModelWork& work, const Ceilings& ceilings, std::uint64_t tokens);
[[nodiscard]] double generation_limit(const ModelWork& work, const Ceilings& ceilings,
                                      std::uint64_t conversations, std::uint64_t depth);

}  // namespace kvasir::cli
