// Memory that is refused at every place where it is asked for.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/allocations.h"
#include "text/tokenizer.h"
#include "vocabulary_file.h"

namespace kvasir::text::test {
namespace {

using kvasir::test::AllocationFault;

// A small vocabulary of each kind.
std::vector<VocabularyFile> one_of_each() {
  std::vector<VocabularyFile> files;
  files.push_back(sentence_piece());
  files.push_back(byte_level("deepseek-llm").merge("a", "b").merge("x", "yz").without("nothing"));
  VocabularyFile gemma("gemma4");
  gemma.token("▁").token("a").merge("▁", "a");
  files.push_back(gemma);
  for (const std::string kind : {"t5", "bert", "rwkv"}) {
    VocabularyFile file(kind);
    file.token("<pad>")
        .token("</s>", 0, Type::kControl)
        .token("<unk>", 0, Type::kUnknown)
        .token("a")
        .token("▁a");
    files.push_back(file);
  }
  for (VocabularyFile& file : files) file.token("<x>", 0, Type::kControl);
  return files;
}

// Calls `call` with the first, second, ... allocation refused, until none is: it must say kOutOfMemory each
// time.
template <class Call>
void expect_out_of_memory_everywhere(const Call& call) {
  for (std::uint64_t n = 0;; ++n) {
    bool done = false;
    Outcome outcome = Outcome::kDone;
    bool fired = false;
    {
      const AllocationFault fault(n);
      const auto result = call();
      done = result.has_value();
      if (!done) outcome = result.error().code();
      fired = fault.fired();
    }
    if (!fired) {
      EXPECT_TRUE(done);
      return;
    }
    ASSERT_FALSE(done) << "allocation " << n;
    ASSERT_EQ(outcome, Outcome::kOutOfMemory) << "allocation " << n;
  }
}

TEST(OutOfMemory, WhileLoadingIsAnErrorWhereverItIs) {
  for (const VocabularyFile& vocabulary : one_of_each()) {
    const gguf::File file = vocabulary.open();
    expect_out_of_memory_everywhere([&] { return Tokenizer::load(file); });
  }
}

TEST(OutOfMemory, WhileTokenizingIsAnErrorWhereverItIs) {
  const std::string text = "ab a <x> 123 \xE6\x97\xA5\n a\xFF" + std::string(100, 'a');
  for (const VocabularyFile& vocabulary : one_of_each()) {
    const auto tokenizer = vocabulary.must_load();
    expect_out_of_memory_everywhere(
        [&] { return tokenizer->tokenize(text, {.add_begin_end = true, .parse_special = true}); });
  }
}

TEST(OutOfMemory, WhileDetokenizingIsAnErrorWhereverItIsAndChangesNoStream) {
  VocabularyFile file = byte_level("gpt-2");
  file.token(std::string(200, 'x'));
  const auto tokenizer = file.must_load();
  const std::vector<Token> ids = {'a', 256};
  expect_out_of_memory_everywhere([&] { return tokenizer->detokenize(ids); });
  StreamingDetokenizer stream(*tokenizer);
  ASSERT_TRUE(stream.feed(0xC3));
  expect_out_of_memory_everywhere([&] {
    StreamingDetokenizer copy = stream;
    return copy.feed(256);
  });
  {
    const AllocationFault fault(0);
    EXPECT_FALSE(stream.feed(256));
  }
  EXPECT_EQ(*stream.feed(0xA9), "é");
}

TEST(OutOfMemory, WhileRefusingAnIdIsAnErrorToo) {
  const auto tokenizer = byte_level("gpt-2").must_load();
  Outcome outcome = Outcome::kDone;
  {
    const AllocationFault fault(0);
    outcome = tokenizer->piece(999).error().code();
  }
  EXPECT_EQ(outcome, Outcome::kOutOfMemory);
}

}  // namespace
}  // namespace kvasir::text::test
