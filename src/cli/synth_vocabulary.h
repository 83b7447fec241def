// Vocabularies for models without meaning: one that is made, or one that is copied from another file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "gguf/value.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct SynthVocabulary {
  std::uint64_t size = 0;
  std::vector<gguf::KeyValue> keys;  // tokenizer.*
};

// The least size: the bytes, a beginning and an end.
inline constexpr std::uint64_t kLeastVocabulary = 258;

// A byte-level BPE of `size` tokens: token b is byte b, so any text can be written; then syllables ("ba"),
// syllables after a space, and words of two, three, ... syllables, each with the merge that makes it; last
// the control tokens
// <|begin|> and <|end|>. kInvalidArgument below kLeastVocabulary.
[[nodiscard]] Result<SynthVocabulary> make_vocabulary(std::uint64_t size);

// All keys tokenizer.* of a GGUF file, which may have no weights, and the number of its tokens. As
// gguf::File::open; kNotFound where it has no tokens.
[[nodiscard]] Result<SynthVocabulary> copy_vocabulary(base::FileSystem& files, const std::string& path);

}  // namespace kvasir::cli
