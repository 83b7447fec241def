// Small models made in a test: a GGUF file as a list of keys and tensors that can be changed before it is
// written, and the files of runnable models with weights drawn from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/value.h"
#include "kvasir/token.h"
#include "model/model.h"
#include "parallel/thread_pool.h"
#include "quant/block_type.h"
#include "quant/draw.h"

namespace kvasir::test {

// A GGUF file in the making. A mistake of the test's own ends the test program with a sentence.
class GgufDraft {
 public:
  explicit GgufDraft(std::uint64_t seed = 1) : seed_(seed) {}

  // All that a file holds.
  [[nodiscard]] static GgufDraft copy_of(const std::string& path);

  // Sets or replaces a key.
  GgufDraft& set(const std::string& key, gguf::Value value);
  GgufDraft& set(const std::string& key, std::uint32_t value);
  GgufDraft& set(const std::string& key, float value);
  GgufDraft& set(const std::string& key, std::string_view text);
  GgufDraft& erase(std::string_view key);

  // Adds or replaces a tensor whose numbers are drawn from the seed and its name.
  GgufDraft& tensor(const std::string& name, std::vector<std::uint64_t> dims,
                    quant::BlockType type = quant::BlockType::kF32, quant::Spread spread = {});
  // The same with numbers of the test's own, as F32.
  GgufDraft& floats(const std::string& name, std::vector<std::uint64_t> dims,
                    const std::vector<float>& values);
  // The same as bytes of zero, for types that cannot be drawn.
  GgufDraft& zeros(const std::string& name, std::vector<std::uint64_t> dims, quant::BlockType type);
  GgufDraft& erase_tensor(std::string_view name);
  [[nodiscard]] bool has_tensor(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> tensor_names() const;

  [[nodiscard]] std::vector<std::byte> bytes() const;
  [[nodiscard]] gguf::File open() const;
  void write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dims;
    quant::BlockType type;
    std::vector<std::byte> bytes;
  };
  GgufDraft& put(Tensor tensor);

  std::vector<std::pair<std::string, gguf::Value>> keys_;
  std::vector<Tensor> tensors_;
  std::uint64_t seed_;
};

// A transformer of the llama kind, small by default. What is 0 or empty is left out of the file.
struct TinyShape {
  std::string architecture = "llama";
  std::uint32_t layers = 2;
  std::uint32_t embedding = 64;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t key_dims = 0;    // of a head; 0: embedding / heads
  std::uint32_t value_dims = 0;  // of a head; 0: key_dims
  std::uint32_t feed_forward = 80;
  std::uint32_t vocabulary = 96;
  std::uint32_t context = 4096;
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 0;
  float epsilon = 1e-5F;
  quant::BlockType type = quant::BlockType::kF32;  // of the matrices
  bool fused = false;                              // query, key and value as one matrix
  bool biases = false;
  bool tied = false;
  bool head_norms = false;
  std::string rope_scaling;  // "linear", "yarn", "none"
  float rope_factor = 0;
  float rope_base = 0;
  std::vector<float> rope_factors;  // rope_freqs.weight
};

[[nodiscard]] GgufDraft tiny_model(const TinyShape& shape, std::uint64_t seed = 1);

// A model with a vocabulary of the "llama" kind: <unk>, <s> (which begins a text), </s>, a space, and
// distinct characters.
[[nodiscard]] GgufDraft with_vocabulary(GgufDraft draft, std::uint32_t size);
[[nodiscard]] GgufDraft tiny_talker(const TinyShape& shape, std::uint64_t seed = 1);

// A model with the file it came from, loaded on one thread.
struct LoadedModel {
  std::shared_ptr<const gguf::File> file;
  std::shared_ptr<const model::Model> model;

  [[nodiscard]] std::uint32_t vocabulary() const { return model->sizes().vocabulary; }
};
[[nodiscard]] LoadedModel load(const GgufDraft& draft);
[[nodiscard]] LoadedModel load_file(const std::string& path);
[[nodiscard]] Result<std::shared_ptr<const model::Model>> try_load(const GgufDraft& draft);

// Seeded random ids of a vocabulary.
[[nodiscard]] std::vector<Token> random_tokens(std::uint32_t vocabulary, std::size_t count,
                                               std::uint64_t seed);

// The ids of a tokens.txt and the numbers of a .f32 file.
[[nodiscard]] std::vector<Token> read_tokens(const std::string& path);
[[nodiscard]] std::vector<float> read_floats(const std::string& path);

// sum((a - b)^2) / sum(b^2) with b the reference; infinity where the counts differ or `a` is not finite.
[[nodiscard]] double normalized_error(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace kvasir::test
