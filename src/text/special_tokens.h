// What names tell about tokens that the file's token types do not: which end a generation, which are control
// tokens though the file calls them normal, which take white space along.
#pragma once

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "text/vocabulary.h"

namespace kvasir::text {

// Completes vocabulary.traits and .ends, once spellings, traits and `end` are there. kCorrupt names a key
// whose id is not in the vocabulary. Source of names and rules: llama.cpp's loading of vocabularies, which
// files are made for.
[[nodiscard]] Status apply_special_names(const gguf::File& file, Vocabulary& vocabulary);

// The id that `key` gives: nothing where it is absent or says "none" (all bits set). kCorrupt beyond `size`.
[[nodiscard]] Result<std::optional<Token>> read_token_id(const gguf::File& file, std::string_view key,
                                                         std::uint32_t size);

}  // namespace kvasir::text
