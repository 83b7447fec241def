#include "vocabulary_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gguf/writer.h"

namespace kvasir::text::test {
namespace {

// What a Writer writes, kept in memory.
class MemoryFile final : public base::ReplacingFile {
 public:
  explicit MemoryFile(std::vector<std::byte>& bytes) : bytes_(bytes) {}

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

template <class T>
T value_of(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "the test's own vocabulary is wrong: %s\n", result.error().message().c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace

VocabularyFile::VocabularyFile(std::string_view kind, std::string_view pre_tokenizer)
    : kind_(kind), pre_tokenizer_(pre_tokenizer) {}

VocabularyFile& VocabularyFile::token(std::string text, float score, Type type) {
  tokens_.push_back(std::move(text));
  scores_.push_back(score);
  types_.push_back(static_cast<std::int32_t>(type));
  return *this;
}

VocabularyFile& VocabularyFile::merge(const std::string& left, const std::string& right) {
  merges_.push_back(left + " " + right);
  if (std::ranges::find(tokens_, left + right) == tokens_.end()) token(left + right);
  return *this;
}

VocabularyFile& VocabularyFile::set(std::string key, gguf::Value value) {
  std::erase_if(extra_, [&](const gguf::KeyValue& entry) { return entry.key == key; });
  extra_.push_back({std::move(key), std::move(value)});
  return *this;
}

Token VocabularyFile::id(std::string_view text) const {
  const auto found = std::ranges::find(tokens_, text);
  EXPECT_NE(found, tokens_.end()) << "no token '" << text << "'";
  return static_cast<Token>(found - tokens_.begin());
}

std::vector<std::byte> VocabularyFile::bytes() const {
  std::vector<gguf::KeyValue> entries = extra_;
  const auto add = [&](const std::string& key, const gguf::Value& value) {
    const auto same = [&](const gguf::KeyValue& entry) { return entry.key == key; };
    if (std::ranges::none_of(extra_, same)) entries.push_back({key, value});
  };
  add("tokenizer.ggml.model", gguf::Value::string(kind_));
  if (!pre_tokenizer_.empty()) add("tokenizer.ggml.pre", gguf::Value::string(pre_tokenizer_));
  add("tokenizer.ggml.tokens", gguf::Value::strings(std::span(tokens_)));
  add("tokenizer.ggml.scores", gguf::Value::array(std::span(scores_)));
  add("tokenizer.ggml.token_type", gguf::Value::array(std::span(types_)));
  if (kind_ == "gpt2" || kind_ == "gemma4") {
    add("tokenizer.ggml.merges", gguf::Value::strings(std::span(merges_)));
  }

  gguf::Writer writer;
  for (gguf::KeyValue& entry : entries) {
    if (std::ranges::find(absent_, entry.key) != absent_.end()) continue;
    value_of(writer.add(entry.key, std::move(entry.value)));
  }
  std::vector<std::byte> written;
  value_of(writer.begin(std::make_unique<MemoryFile>(written)));
  value_of(writer.commit());
  return written;
}

gguf::File VocabularyFile::open() const {
  std::vector<std::unique_ptr<base::ReadFile>> files;
  files.push_back(base::memory_file(bytes()));
  return value_of(gguf::File::parse(std::move(files)));
}

std::unique_ptr<const Tokenizer> VocabularyFile::must_load() const {
  return value_of(load());
}

std::string in_characters(std::string_view bytes) {
  std::string characters;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    // The rule of the GPT-2 tokenizer, told another way than in the product: count the unprintable bytes
    // below.
    const auto prints = [](unsigned b) { return (b > 32 && b < 127) || (b > 160 && b != 173); };
    unsigned code = byte;
    if (!prints(byte)) {
      code = 256;
      for (unsigned b = 0; b < byte; ++b) code += prints(b) ? 0 : 1;
    }
    if (code < 128) {
      characters += static_cast<char>(code);
    } else {
      characters += static_cast<char>(192 + code / 64);
      characters += static_cast<char>(128 + code % 64);
    }
  }
  return characters;
}

VocabularyFile byte_level(std::string_view pre_tokenizer) {
  VocabularyFile file("gpt2", pre_tokenizer);
  for (unsigned byte = 0; byte < 256; ++byte)
    file.token(in_characters(std::string(1, static_cast<char>(byte))));
  return file;
}

VocabularyFile sentence_piece() {
  VocabularyFile file("llama");
  file.token("<unk>", 0, Type::kUnknown).token("<s>", 0, Type::kControl).token("</s>", 0, Type::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
    file.token(text, 0, Type::kByte);
  }
  return file;
}

std::vector<Token> ids_of(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options) {
  auto ids = tokenizer.tokenize(text, options);
  if (!ids) {
    ADD_FAILURE() << ids.error().message();
    return {};
  }
  return *std::move(ids);
}

std::string text_of(const Tokenizer& tokenizer, const std::vector<Token>& ids) {
  auto text = tokenizer.detokenize(ids);
  if (!text) {
    ADD_FAILURE() << text.error().message();
    return {};
  }
  return *std::move(text);
}

// Steele, Lea, Flood (2014), "Fast Splittable Pseudorandom Number Generators".
std::uint64_t Random::below(std::uint64_t end) {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return (z ^ (z >> 31)) % end;
}

std::string Random::text(const std::vector<std::string>& units, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += units[below(units.size())];
  return text;
}

}  // namespace kvasir::text::test
