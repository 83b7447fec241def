// The numbers of a model that its GGUF metadata holds, read and checked once. Keys are those of the GGUF
// convention, with the architecture's name before each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "simd/rotary.h"

namespace kvasir::model {

// Sizes that every architecture of the transformer kind has. All checked to be usable: none is 0, heads
// divide.
struct Hyperparameters {
  std::string architecture;
  std::uint32_t layers = 0;
  std::uint32_t embedding = 0;   // width of a hidden state
  std::uint32_t vocabulary = 0;  // tokens, from the token embedding's shape
  std::uint64_t context = 0;     // trained length in tokens
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dims = 0;    // of one head
  std::uint32_t value_dims = 0;  // of one head
  std::uint32_t feed_forward = 0;
  std::uint32_t experts = 0;       // 0: a dense model
  std::uint32_t experts_used = 0;  // for each token
  float norm_epsilon = 0;
  float attention_scale = 0;

  // kCorrupt names the key that is missing or cannot be right.
  [[nodiscard]] static Result<Hyperparameters> read(const gguf::File& file);
};

// Reads keys of one architecture.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const gguf::File& file, std::string_view architecture)
      : file_(&file), prefix_(architecture) {
    prefix_ += '.';
  }

  // A count in [least, most]; kCorrupt names the key and the bounds. With `otherwise`, a missing key has that
  // value.
  [[nodiscard]] Result<std::uint32_t> count(std::string_view key, std::uint32_t least, std::uint32_t most,
                                            std::optional<std::uint32_t> otherwise = {}) const;

  // A finite number; a missing key has the value `otherwise`, or is kCorrupt without one.
  [[nodiscard]] Result<double> number(std::string_view key, std::optional<double> otherwise = {}) const;

  // The same for a number that must be above 0.
  [[nodiscard]] Result<double> positive(std::string_view key, std::optional<double> otherwise = {}) const;

  [[nodiscard]] Result<std::string> text(std::string_view key, std::string_view otherwise) const;

  [[nodiscard]] bool has(std::string_view key) const { return file_->find(name(key)) != nullptr; }

  // The key with the architecture's name before it, as the file has it.
  [[nodiscard]] std::string name(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  const gguf::File* file_;
  std::string prefix_;
};

// What the rope.* keys and the factor tensor say. kCorrupt or kUnsupported names the key.
[[nodiscard]] Result<simd::RotarySpec> read_rotary(const gguf::File& file, const Hyperparameters& sizes,
                                                   simd::RopePairing pairing);

}  // namespace kvasir::model
