// The numbers of a model that its GGUF metadata holds, read and checked once. Keys are those of the GGUF
// convention, with the architecture's name before each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "simd/rotary.h"

namespace kvasir::model {

// The widest row that a file may claim: beyond any model in use.
inline constexpr std::uint32_t kWidthMax = 1U << 20;

// Whether every layer of an architecture has attention and a feed-forward part; else each has what its counts
// say.
enum class LayersHave : std::uint8_t { kBoth, kWhatTheyCount };

// Sizes that every architecture of the transformer kind has. All checked to be usable: heads divide, and none
// is 0 but those of layers that lack the part. What a file may give for all layers or as an array with one
// entry a layer is listed by layer.
struct Hyperparameters {
  std::string architecture;
  std::uint32_t layers = 0;
  std::uint32_t embedding = 0;          // width of a hidden state
  std::uint32_t vocabulary = 0;         // tokens, from the token embedding's shape
  std::uint64_t context = 0;            // trained length in tokens
  std::uint64_t used_context = 0;       // tokens that the model is loaded for; read() says the trained length
  std::vector<std::uint32_t> heads;     // [layer]
  std::vector<std::uint32_t> kv_heads;  // [layer]
  std::uint32_t key_dims = 0;           // of one head; 0 in a model without attention
  std::uint32_t value_dims = 0;         // of one head
  std::vector<std::uint32_t> feed_forward;  // [layer]
  std::uint32_t experts = 0;                // 0: a dense model
  std::uint32_t experts_used = 0;           // for each token
  std::uint32_t expert_feed_forward = 0;    // of one expert
  float norm_epsilon = 0;
  float attention_scale = 0;

  // kCorrupt names the key that is missing or cannot be right.
  [[nodiscard]] static Result<Hyperparameters> read(const gguf::File& file, LayersHave have);
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

  // The same for each of so many layers, from one count for all of them or an array of at least as many.
  [[nodiscard]] Result<std::vector<std::uint32_t>> counts(std::string_view key, std::uint32_t layers,
                                                          std::uint32_t least, std::uint32_t most) const;

  // A finite number; a missing key has the value `otherwise`, or is kCorrupt without one.
  [[nodiscard]] Result<double> number(std::string_view key, std::optional<double> otherwise = {}) const;

  // The same for a number that must be above 0.
  [[nodiscard]] Result<double> positive(std::string_view key, std::optional<double> otherwise = {}) const;

  // True or false; a missing key has the value `otherwise`.
  [[nodiscard]] Result<bool> flag(std::string_view key, bool otherwise) const;

  [[nodiscard]] Result<std::string> text(std::string_view key, std::string_view otherwise) const;

  [[nodiscard]] bool has(std::string_view key) const { return file_->find(name(key)) != nullptr; }

  // The key with the architecture's name before it, as the file has it.
  [[nodiscard]] std::string name(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  const gguf::File* file_;
  std::string prefix_;
};

// What the rope.* keys say. kCorrupt or kUnsupported names the key.
[[nodiscard]] Result<simd::RotarySpec> read_rotary(const gguf::File& file, const Hyperparameters& sizes,
                                                   simd::RopePairing pairing);

}  // namespace kvasir::model
