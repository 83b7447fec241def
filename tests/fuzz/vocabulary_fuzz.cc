// Any bytes as a file with a vocabulary: refused with a sentence, or one that takes texts and ids.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/utf8.h"
#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace {

using kvasir::Token;
using kvasir::text::Tokenizer;

// What must hold, or the fuzzer has found something.
void require(bool holds) {
  if (!holds) std::abort();
}

void use(const Tokenizer& tokenizer) {
  const auto last = static_cast<Token>(tokenizer.size()) - 1;
  require(tokenizer.size() > 0 && tokenizer.piece(last).has_value() && !tokenizer.piece(last + 1));
  require(!tokenizer.adds_begin() || tokenizer.begin_token());
  require(!tokenizer.adds_end() || tokenizer.end_token());
  for (const std::string_view text : {"", "ab <x> a\n\n  b</s>", "\xE6\x97\xA5 \xFF\x80 123 \xE2\x96\x81"}) {
    const auto ids = tokenizer.tokenize(text, {.add_begin_end = true, .parse_special = true});
    require(ids.has_value());
    require(tokenizer.detokenize(*ids).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::unique_ptr<kvasir::base::ReadFile>> files;
  files.push_back(kvasir::base::memory_file({bytes.begin(), bytes.end()}));
  const auto file = kvasir::gguf::File::parse(std::move(files));
  if (!file) return 0;
  const auto tokenizer = Tokenizer::load(*file);
  if (tokenizer) {
    use(**tokenizer);
  } else {
    require(!tokenizer.error().message().empty() && kvasir::base::is_utf8(tokenizer.error().message()));
  }
  return 0;
}
