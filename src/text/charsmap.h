// SentencePiece's precompiled map of character sequences to what they are normalised to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::text {

// Immutable; any thread may use it. An empty one maps nothing.
class Charsmap {
 public:
  struct Replaced {
    std::string_view by;       // lives as long as the map
    std::size_t consumed = 0;  // bytes of the text; 0 where nothing matches
  };

  Charsmap() = default;

  // The blob of a file: a 32-bit length, so many bytes of a double-array trie, and texts that end in a zero
  // byte. kCorrupt where it is not of that shape. May throw std::bad_alloc. Source: SentencePiece's
  // normalizer, and Yata's darts-clone for the trie's units.
  [[nodiscard]] static Result<Charsmap> parse(std::span<const std::uint8_t> blob);

  // The longest sequence at the start of `text` that the map knows. Looks at 256 bytes at most.
  [[nodiscard]] Replaced match(std::string_view text) const noexcept;

 private:
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace kvasir::text
