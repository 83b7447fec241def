// Which model this is, as archives remember it: saved keys and values mean something in the same model alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gguf/gguf.h"
#include "kv/arena.h"
#include "kvasir/result.h"
#include "model/hyperparameters.h"
#include "model/layers.h"
#include "parallel/thread_pool.h"

namespace kvasir::model {

struct Fingerprint {
  // XXH3-128 (low half first) of the architecture's name, of its keys in order (but those of rotation and the
  // trained length) and of every tensor, in order of names: name, type, dimensions, and its data. Of a tensor
  // of more than kSampledBytes that is kSamples blocks of kSampleBytes, evenly spread from its first byte to
  // its last.
  std::array<std::uint64_t, 2> weights{};
  std::uint64_t rotary = 0;      // XXH3-64 of every rotary table: pairing, magnitude, frequencies
  std::uint64_t vocabulary = 0;  // XXH3-64 of the vocabulary's kind and tokens

  static constexpr std::uint64_t kSampledBytes = 262'144;
  static constexpr std::uint64_t kSamples = 64;
  static constexpr std::uint64_t kSampleBytes = 4096;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// Of a model that was read from `file`, whose samples the pool's threads share. As gguf::File::read(), and
// kOutOfMemory; throws std::bad_alloc.
[[nodiscard]] Result<Fingerprint> fingerprint_of(const gguf::File& file, parallel::ThreadPool& pool,
                                                 const Hyperparameters& sizes, const Network& network);

// What the bits of results depend on beside the model and the types of the cache: the revision of the
// kernels, the instruction set and the size of a tile, such as "1 AVX3 128".
[[nodiscard]] std::string numerics_id();

}  // namespace kvasir::model
