// Any ids, in every kind of vocabulary: refused where they are none, else the same text at once and as a
// stream.
//
// The first byte chooses the vocabulary; two bytes, signed, are an id.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "every_kind.h"
#include "text/tokenizer.h"

namespace {

using kvasir::Token;
using kvasir::text::StreamingDetokenizer;
using kvasir::text::StreamOptions;
using kvasir::text::Tokenizer;

// What must hold, or the fuzzer has found something.
void require(bool holds) {
  if (!holds) std::abort();
}

const std::vector<std::unique_ptr<const Tokenizer>>& vocabularies() {
  static const std::vector<std::unique_ptr<const Tokenizer>> all = [] {
    std::vector<std::unique_ptr<const Tokenizer>> loaded;
    for (const auto& kind : kvasir::text::test::every_kind()) loaded.push_back(kind.file.must_load());
    return loaded;
  }();
  return all;
}

// The whole stream of ids that are in the vocabulary; refused ones must change nothing.
std::string stream(const Tokenizer& tokenizer, const std::vector<Token>& ids, const StreamOptions& options) {
  StreamingDetokenizer detokenizer(tokenizer, options);
  std::string text;
  for (const Token id : ids) {
    const auto chunk = detokenizer.feed(id);
    require(chunk.has_value() == (id >= 0 && static_cast<std::uint32_t>(id) < tokenizer.size()));
    if (!chunk) continue;
    require(options.raw_bytes || kvasir::base::is_utf8(*chunk));
    text += *chunk;
  }
  text += detokenizer.finish();
  require(detokenizer.finish().empty());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Tokenizer& tokenizer = *vocabularies()[data[0] % vocabularies().size()];
  std::vector<Token> all;
  std::vector<Token> known;
  for (std::size_t i = 1; i + 1 < size; i += 2) {
    const Token id = static_cast<std::int16_t>(data[i] | data[i + 1] << 8);
    all.push_back(id);
    if (tokenizer.piece(id)) known.push_back(id);
  }
  require(tokenizer.detokenize(all).has_value() == (all.size() == known.size()));
  for (const bool whole_text : {false, true}) {
    const auto text = tokenizer.detokenize(known, {.continues = !whole_text});
    require(text.has_value());
    require(stream(tokenizer, all, {.raw_bytes = true, .whole_text = whole_text}) == *text);
    const std::string shown = stream(tokenizer, all, {.raw_bytes = false, .whole_text = whole_text});
    require(kvasir::base::is_utf8(shown));
    require(!kvasir::base::is_utf8(*text) || shown == *text);
  }
  return 0;
}
