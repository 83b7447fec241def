#include "cli/synth_vocabulary.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "base/try.h"
#include "gguf/gguf.h"

namespace kvasir::cli {
namespace {

using gguf::Value;

// tokenizer.ggml.token_type (the GGUF specification).
constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kControl = 3;

// The character that stands for a byte in a byte-level vocabulary: the byte's own where Latin-1 prints it,
// else the next one from U+0100 on. Source: GPT-2's encoder (Radford et al., 2019).
std::string byte_character(int byte) {
  const auto prints = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int code = byte;
  if (!prints(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += prints(b) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
}

// Syllables, then words of them, as long as tokens are wanted. A word is the one before it with a syllable
// more, so one merge makes it from two tokens that exist.
class WordMaker {
 public:
  WordMaker(std::vector<std::string>& tokens, std::vector<std::string>& merges, std::uint64_t limit)
      : tokens_(tokens), merges_(merges), limit_(limit) {}

  void make() {
    constexpr std::string_view kConsonants = "bcdfghjklmnprstvwxyz";
    constexpr std::string_view kVowels = "aeiou";
    for (const char consonant : kConsonants) {
      for (const char vowel : kVowels) {
        add(std::string(1, consonant), std::string(1, vowel));
        syllables_.push_back({consonant, vowel});
      }
    }
    std::vector<std::string> words = {byte_character(' ')};
    while (tokens_.size() < limit_) words = longer(words);
  }

 private:
  void add(const std::string& left, const std::string& right) {
    if (tokens_.size() >= limit_) return;
    tokens_.push_back(left + right);
    merges_.push_back(left + " " + right);
  }

  std::vector<std::string> longer(const std::vector<std::string>& words) {
    std::vector<std::string> result;
    for (const std::string& word : words) {
      for (const std::string& syllable : syllables_) {
        if (tokens_.size() >= limit_) return result;
        add(word, syllable);
        result.push_back(word + syllable);
      }
    }
    return result;
  }

  std::vector<std::string>& tokens_;
  std::vector<std::string>& merges_;
  std::uint64_t limit_;
  std::vector<std::string> syllables_;
};

}  // namespace

Result<SynthVocabulary> make_vocabulary(std::uint64_t size) {
  if (size < kLeastVocabulary) {
    return fail(Outcome::kInvalidArgument,
                fmt::format("a vocabulary of {} tokens; bytes and control tokens alone are {}", size,
                            kLeastVocabulary),
                {.wanted = size, .available = {}, .limit = kLeastVocabulary, .setting = {}});
  }
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  tokens.reserve(size);
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_character(byte));
  WordMaker(tokens, merges, size - 2).make();
  std::vector<std::int32_t> types(tokens.size(), kNormal);
  tokens.insert(tokens.end(), {"<|begin|>", "<|end|>"});
  types.insert(types.end(), {kControl, kControl});
  const auto last = static_cast<std::uint32_t>(size - 1);
  SynthVocabulary vocabulary{size, {}};
  vocabulary.keys = {
      {"tokenizer.ggml.model", Value::string("gpt2")},
      {"tokenizer.ggml.pre", Value::string("gpt-2")},
      {"tokenizer.ggml.tokens", Value::strings(std::span<const std::string>(tokens))},
      {"tokenizer.ggml.token_type", Value::array(std::span<const std::int32_t>(types))},
      {"tokenizer.ggml.merges", Value::strings(std::span<const std::string>(merges))},
      {"tokenizer.ggml.bos_token_id", Value::scalar<std::uint32_t>(last - 1)},
      {"tokenizer.ggml.eos_token_id", Value::scalar<std::uint32_t>(last)},
      {"tokenizer.ggml.add_bos_token", Value::scalar(true)},
  };
  return vocabulary;
}

Result<SynthVocabulary> copy_vocabulary(base::FileSystem& files, const std::string& path) {
  KVASIR_ASSIGN(const gguf::File file, gguf::File::open(files, path));
  const Value* tokens = file.find("tokenizer.ggml.tokens");
  if (tokens == nullptr || !tokens->is_array() || tokens->size() == 0) {
    return fail(Outcome::kNotFound, fmt::format("'{}' holds no vocabulary (no tokenizer.ggml.tokens)", path));
  }
  SynthVocabulary vocabulary{tokens->size(), {}};
  for (const gguf::KeyValue& entry : file.metadata()) {
    if (entry.key.starts_with("tokenizer.")) vocabulary.keys.push_back(entry);
  }
  return vocabulary;
}

}  // namespace kvasir::cli
