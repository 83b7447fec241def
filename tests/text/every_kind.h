// One vocabulary of each kind, and of each pre-tokenizer, for tests and fuzzers that go over all.
#pragma once

#include <memory>
#include <vector>

#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {

struct KindOfVocabulary {
  VocabularyFile file;
  // Whether every byte of a plain text can be read back from its ids.
  bool keeps_every_byte = false;
};

// Each has a control token "<x>", a user-defined token "<u>" and begin and end tokens, which it adds on
// request.
[[nodiscard]] std::vector<KindOfVocabulary> every_kind();

}  // namespace kvasir::text::test
