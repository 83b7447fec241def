#include "support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <type_traits>

#include "base/file.h"
#include "gguf/writer.h"

namespace kvasir::test {
namespace {

// What a Writer writes, kept in memory.
class MemoryTarget final : public base::ReplacingFile {
 public:
  explicit MemoryTarget(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  Status write(std::span<const std::byte> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(bytes_.data() + offset, bytes.data(), bytes.size());
    return {};
  }
  Status commit() override { return {}; }

 private:
  std::vector<std::byte>& bytes_;
};

// The value of a call that the test itself must get right.
template <class T>
T must(Result<T> result, std::string_view what) {
  if (!result) {
    std::fprintf(stderr, "the test's own %.*s is wrong: %s\n", static_cast<int>(what.size()), what.data(),
                 result.error().message().c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// FNV-1a, so that a tensor's numbers depend on its name whatever the standard library hashes with.
std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

// Bytes of a tensor.
std::uint64_t bytes_of(quant::BlockType type, const std::vector<std::uint64_t>& dims) {
  const quant::BlockTypeInfo& info = quant::block_type_info(type);
  std::uint64_t count = 1;
  for (const std::uint64_t dim : dims) count *= dim;
  return count / info.values * info.bytes;
}

}  // namespace

GgufDraft GgufDraft::copy_of(const std::string& path) {
  const gguf::File file = must(gguf::File::open(base::system_files(), path), path);
  GgufDraft draft;
  for (const gguf::KeyValue& entry : file.metadata()) draft.set(entry.key, entry.value);
  for (const gguf::Tensor& tensor : file.tensors()) {
    std::vector<std::byte> bytes(tensor.bytes);
    must(file.read(tensor, 0, bytes), tensor.name);
    draft.put({tensor.name, tensor.dims, tensor.type, std::move(bytes)});
  }
  return draft;
}

GgufDraft& GgufDraft::set(const std::string& key, gguf::Value value) {
  const auto found = std::ranges::find(keys_, key, &std::pair<std::string, gguf::Value>::first);
  if (found != keys_.end()) {
    found->second = std::move(value);
  } else {
    keys_.emplace_back(key, std::move(value));
  }
  return *this;
}
GgufDraft& GgufDraft::set(const std::string& key, std::uint32_t value) {
  return set(key, gguf::Value::scalar(value));
}
GgufDraft& GgufDraft::set(const std::string& key, float value) {
  return set(key, gguf::Value::scalar(value));
}
GgufDraft& GgufDraft::set(const std::string& key, std::string_view text) {
  return set(key, gguf::Value::string(text));
}
GgufDraft& GgufDraft::erase(std::string_view key) {
  std::erase_if(keys_, [&](const auto& entry) { return entry.first == key; });
  return *this;
}

GgufDraft& GgufDraft::put(Tensor tensor) {
  const auto found = std::ranges::find(tensors_, tensor.name, &Tensor::name);
  if (found != tensors_.end()) {
    *found = std::move(tensor);
  } else {
    tensors_.push_back(std::move(tensor));
  }
  return *this;
}
GgufDraft& GgufDraft::tensor(const std::string& name, std::vector<std::uint64_t> dims, quant::BlockType type,
                             quant::Spread spread) {
  std::vector<std::byte> bytes(bytes_of(type, dims));
  must(quant::BlockDrawer::create(type, spread, quant::mix(seed_, name_hash(name))), name).draw(0, bytes);
  return put({name, std::move(dims), type, std::move(bytes)});
}
GgufDraft& GgufDraft::floats(const std::string& name, std::vector<std::uint64_t> dims,
                             const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return put({name, std::move(dims), quant::BlockType::kF32, {bytes.begin(), bytes.end()}});
}
GgufDraft& GgufDraft::zeros(const std::string& name, std::vector<std::uint64_t> dims, quant::BlockType type) {
  std::vector<std::byte> bytes(bytes_of(type, dims));
  return put({name, std::move(dims), type, std::move(bytes)});
}
GgufDraft& GgufDraft::erase_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
  return *this;
}
bool GgufDraft::has_tensor(std::string_view name) const {
  return std::ranges::find(tensors_, name, &Tensor::name) != tensors_.end();
}
std::vector<std::string> GgufDraft::tensor_names() const {
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors_) names.push_back(tensor.name);
  return names;
}

std::vector<std::byte> GgufDraft::bytes() const {
  std::vector<std::byte> file;
  gguf::Writer writer;
  for (const auto& [key, value] : keys_) must(writer.add(key, value), key);
  for (const Tensor& tensor : tensors_)
    must(writer.add_tensor(tensor.name, tensor.type, tensor.dims), tensor.name);
  must(writer.begin(std::make_unique<MemoryTarget>(file)), "file");
  for (const Tensor& tensor : tensors_) must(writer.write(tensor.bytes), tensor.name);
  must(writer.commit(), "file");
  return file;
}

void GgufDraft::write(const std::string& path) const {
  auto file = must(base::system_files().replace(path), path);
  must(file->write(bytes()), path);
  must(file->commit(), path);
}

gguf::File GgufDraft::open() const {
  std::vector<std::unique_ptr<base::ReadFile>> shards;
  shards.push_back(base::memory_file(bytes()));
  return must(gguf::File::parse(std::move(shards)), "file");
}

namespace {

constexpr quant::Spread kNormSpread{1.0F, 0.1F};
constexpr quant::Spread kBiasSpread{0.0F, 0.1F};

// A matrix whose products are about as large as what they multiply.
void matrix(GgufDraft& draft, const TinyShape& shape, const std::string& name, std::uint64_t in,
            std::uint64_t out, std::uint64_t count = 0) {
  std::vector<std::uint64_t> dims = {in, out};
  if (count > 0) dims.push_back(count);
  draft.tensor(name + ".weight", dims, shape.type, {0.0F, 1.0F / std::sqrt(static_cast<float>(in))});
  if (shape.biases && count == 0) draft.tensor(name + ".bias", {out}, quant::BlockType::kF32, kBiasSpread);
}

void norm(GgufDraft& draft, const std::string& name, std::uint64_t size) {
  draft.tensor(name + ".weight", {size}, quant::BlockType::kF32, kNormSpread);
}

void keys(GgufDraft& draft, const TinyShape& shape) {
  const std::string prefix = shape.architecture + ".";
  draft.set("general.architecture", shape.architecture)
      .set(prefix + "block_count", shape.layers)
      .set(prefix + "embedding_length", shape.embedding)
      .set(prefix + "feed_forward_length", shape.feed_forward)
      .set(prefix + "context_length", shape.context)
      .set(prefix + "attention.head_count", shape.heads)
      .set(prefix + "attention.head_count_kv", shape.kv_heads)
      .set(prefix + "attention.layer_norm_rms_epsilon", shape.epsilon);
  const auto if_given = [&](const char* key, auto value) {
    if (value != 0) draft.set(prefix + key, value);
  };
  if_given("attention.key_length", shape.key_dims);
  if_given("attention.value_length", shape.value_dims);
  if_given("expert_count", shape.experts);
  if_given("expert_used_count", shape.experts_used);
  if_given("rope.scaling.factor", shape.rope_factor);
  if_given("rope.freq_base", shape.rope_base);
  if (!shape.rope_scaling.empty()) draft.set(prefix + "rope.scaling.type", shape.rope_scaling);
}

void layer(GgufDraft& draft, const TinyShape& shape, std::uint32_t index) {
  const std::string block = "blk." + std::to_string(index) + ".";
  const std::uint64_t width = shape.embedding;
  const std::uint64_t key_dims = shape.key_dims != 0 ? shape.key_dims : shape.embedding / shape.heads;
  const std::uint64_t value_dims = shape.value_dims != 0 ? shape.value_dims : key_dims;
  const std::uint64_t queries = shape.heads * key_dims;
  const std::uint64_t keys = shape.kv_heads * key_dims;
  const std::uint64_t values = shape.kv_heads * value_dims;
  norm(draft, block + "attn_norm", width);
  if (shape.fused) {
    matrix(draft, shape, block + "attn_qkv", width, queries + keys + values);
  } else {
    matrix(draft, shape, block + "attn_q", width, queries);
    matrix(draft, shape, block + "attn_k", width, keys);
    matrix(draft, shape, block + "attn_v", width, values);
  }
  if (shape.head_norms) {
    norm(draft, block + "attn_q_norm", key_dims);
    norm(draft, block + "attn_k_norm", key_dims);
  }
  matrix(draft, shape, block + "attn_output", shape.heads * value_dims, width);
  norm(draft, block + "ffn_norm", width);
  if (shape.experts > 0) {
    // Scores far enough apart that no rounding changes a choice.
    draft.tensor(block + "ffn_gate_inp.weight", {width, shape.experts}, quant::BlockType::kF32, {0.0F, 0.5F});
    matrix(draft, shape, block + "ffn_gate_exps", width, shape.feed_forward, shape.experts);
    matrix(draft, shape, block + "ffn_up_exps", width, shape.feed_forward, shape.experts);
    matrix(draft, shape, block + "ffn_down_exps", shape.feed_forward, width, shape.experts);
  } else {
    matrix(draft, shape, block + "ffn_gate", width, shape.feed_forward);
    matrix(draft, shape, block + "ffn_up", width, shape.feed_forward);
    matrix(draft, shape, block + "ffn_down", shape.feed_forward, width);
  }
}

}  // namespace

GgufDraft tiny_model(const TinyShape& shape, std::uint64_t seed) {
  GgufDraft draft(seed);
  keys(draft, shape);
  draft.tensor("token_embd.weight", {shape.embedding, shape.vocabulary}, shape.type);
  norm(draft, "output_norm", shape.embedding);
  if (!shape.tied) matrix(draft, shape, "output", shape.embedding, shape.vocabulary);
  if (!shape.rope_factors.empty()) {
    draft.floats("rope_freqs.weight", {shape.rope_factors.size()}, shape.rope_factors);
  }
  for (std::uint32_t index = 0; index < shape.layers; ++index) layer(draft, shape, index);
  return draft;
}

GgufDraft with_vocabulary(GgufDraft draft, std::uint32_t size) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581"};
  std::vector<std::int32_t> types = {2, 3, 3, 1};  // unknown, control, control, normal
  while (tokens.size() < size) {
    // Letters, then what follows them in the alphabet of Unicode.
    const auto code = static_cast<char32_t>('a' + tokens.size() - 4);
    std::string character;
    if (code < 0x7F) {
      character = static_cast<char>(code);
    } else {
      character = {static_cast<char>(0xC4 + (code - 0x7F) / 64),
                   static_cast<char>(0x80 + (code - 0x7F) % 64)};
    }
    tokens.push_back(character);
    types.push_back(1);
  }
  const std::vector<float> scores(tokens.size(), -1.0F);
  draft.set("tokenizer.ggml.model", std::string_view("llama"));
  draft.set("tokenizer.ggml.tokens", gguf::Value::strings(std::span<const std::string>(tokens)));
  draft.set("tokenizer.ggml.scores", gguf::Value::array(std::span<const float>(scores)));
  draft.set("tokenizer.ggml.token_type", gguf::Value::array(std::span<const std::int32_t>(types)));
  draft.set("tokenizer.ggml.bos_token_id", 1U);
  draft.set("tokenizer.ggml.eos_token_id", 2U);
  draft.set("tokenizer.ggml.unknown_token_id", 0U);
  return draft;
}

GgufDraft tiny_talker(const TinyShape& shape, std::uint64_t seed) {
  return with_vocabulary(tiny_model(shape, seed), shape.vocabulary);
}

namespace {

LoadedModel load_from(gguf::File file) {
  const auto pool = must(parallel::ThreadPool::create(1), "thread pool");
  LoadedModel loaded;
  loaded.file = std::make_shared<const gguf::File>(std::move(file));
  loaded.model = must(model::Model::load(*loaded.file, *pool), "model");
  return loaded;
}

}  // namespace

LoadedModel load(const GgufDraft& draft) {
  return load_from(draft.open());
}

LoadedModel load_file(const std::string& path) {
  return load_from(must(gguf::File::open(base::system_files(), path), path));
}

Result<std::shared_ptr<const model::Model>> try_load(const GgufDraft& draft) {
  const auto pool = must(parallel::ThreadPool::create(1), "thread pool");
  const gguf::File file = draft.open();
  return model::Model::load(file, *pool);
}

std::vector<Token> random_tokens(std::uint32_t vocabulary, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(random() % vocabulary);
  return tokens;
}

std::vector<Token> read_tokens(const std::string& path) {
  std::ifstream file(path);
  std::vector<Token> tokens;
  for (Token token = 0; file >> token;) tokens.push_back(token);
  return tokens;
}

std::vector<float> read_floats(const std::string& path) {
  const auto bytes = must(base::read_whole(base::system_files(), path, std::uint64_t{1} << 30), path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double normalized_error(const std::vector<float>& a, const std::vector<float>& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinity;
  double difference = 0;
  double reference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    reference += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  const double error = difference / reference;
  return std::isfinite(error) ? error : kInfinity;
}

}  // namespace kvasir::test
