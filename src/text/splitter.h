// Cuts a text into words by a pre-tokenizer's patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "text/pre_tokenizers.h"

namespace kvasir::text {

// Compiled patterns. Immutable; any thread may split. Matching takes its memory from the heap, and stops with
// an error rather than go on for longer than is linear in the piece it looks at.
class Splitter {
 public:
  // kInternal names a pattern that does not compile. May throw std::bad_alloc.
  [[nodiscard]] static Result<Splitter> compile(const PreTokenizer& pre_tokenizer);

  Splitter(Splitter&&) noexcept;
  Splitter& operator=(Splitter&&) noexcept;
  ~Splitter();

  // Where each word of `text` ends, ascending; the last ends where the text does. No word is empty. `text` is
  // any bytes below 4 GiB: what is not UTF-8 is cut off before the patterns see it, each stretch of it a
  // word. kInternal where a pattern gives up. May throw std::bad_alloc.
  [[nodiscard]] Result<std::vector<std::uint32_t>> split(std::string_view text) const;

 private:
  struct Pattern;  // one compiled pattern
  Splitter();

  std::vector<Pattern> patterns_;
};

}  // namespace kvasir::text
