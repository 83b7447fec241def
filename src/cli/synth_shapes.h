// The shapes of model that `kvasir synth` makes, as data: a new one is a row and, for a new architecture, its
// lists of keys and tensors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gguf/value.h"

namespace kvasir::cli {

// A number that differs from shape to shape, by name.
enum class Size : std::uint8_t {
  kWidth,
  kLayers,
  kHeads,
  kKvHeads,
  kHeadSize,
  kQueries,      // heads x head size
  kKeys,         // key and value heads x head size
  kFeedForward,  // of each expert, where there are some
  kExperts,
  kVocabulary,
  kChannels,  // of a scan: scan heads x scan head size
  kScanHeads,
  kScanHeadSize,
  kScanDims,   // of each channel's state
  kScanMixed,  // channels, and B and C of one group
  kScanInput,  // what a scan is made of: channels twice, B, C and the heads' time steps
};

struct Sizes {
  std::uint32_t width = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_size = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t experts = 0;
  std::uint64_t vocabulary = 0;
  std::uint32_t scan_heads = 0;
  std::uint32_t scan_head_size = 0;
  std::uint32_t scan_dims = 0;

  [[nodiscard]] std::uint64_t of(Size size) const noexcept;
};

// Either a size of the shape or a number of its own.
struct Extent {
  // NOLINTBEGIN(google-explicit-constructor): a shape reads as data
  constexpr Extent(Size size) : value(size) {}
  constexpr Extent(std::uint64_t number) : value(number) {}
  // NOLINTEND(google-explicit-constructor)
  std::variant<Size, std::uint64_t> value;

  [[nodiscard]] std::uint64_t in(const Sizes& sizes) const noexcept;
};

// A hyper-parameter: its key without the architecture's name before it, and its value.
struct KeyRecipe {
  std::string_view suffix;
  std::variant<Extent, float> value;
};

// How a tensor's numbers lie. Those of a matrix have the deviation 1 / sqrt(row length), which keeps the size
// of what goes through it. What each layer adds to the stream is then far larger than the embedding, so that
// a model with tied embeddings answers with more than the token it was given, and what it answers hangs on
// all that came before.
enum class Fill : std::uint8_t {
  kMatrix,
  kNorm,   // around 1, F32
  kBias,   // around 0, F32
  kDecay,  // below 0, F32: what a scan's state decays by, in time steps
};

struct TensorRecipe {
  std::string_view name;
  Fill fill;
  std::vector<Extent> dims;  // fastest first
};

// Layers [first, layers) of one make: tensors named PREFIX0.NAME, PREFIX1.NAME, ...
struct Stack {
  std::string_view prefix;
  Extent layers;
  std::span<const TensorRecipe> tensors;
  std::uint64_t first = 0;
};

struct Shape {
  std::string_view name;
  std::string_view architecture;
  Sizes sizes;
  std::vector<KeyRecipe> keys;
  std::span<const TensorRecipe> tensors;  // of the model
  std::vector<Stack> stacks;
};

// All shapes. Lives as long as the process.
[[nodiscard]] std::span<const Shape> synth_shapes();

// nullptr where there is none of that name.
[[nodiscard]] const Shape* find_synth_shape(std::string_view name);

// A tensor of a shape with its numbers filled in.
struct SynthTensor {
  std::string name;
  Fill fill;
  std::vector<std::uint64_t> dims;
};

// The tensors and hyper-parameters of a shape with these sizes (the shape's own, or with another vocabulary).
[[nodiscard]] std::vector<SynthTensor> tensors_of(const Shape& shape, const Sizes& sizes);
[[nodiscard]] std::vector<gguf::KeyValue> hyperparameters_of(const Shape& shape, const Sizes& sizes);

}  // namespace kvasir::cli
