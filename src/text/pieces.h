// The bytes that each token stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/token.h"
#include "text/vocabulary.h"

namespace kvasir::text {

// Immutable; any thread may read.
class Pieces {
 public:
  // May throw std::bad_alloc.
  explicit Pieces(const Vocabulary& vocabulary);

  // Of an id of the vocabulary: its name if it is special or user-defined, its byte if it stands for one,
  // else its text with spaces and bytes read back.
  [[nodiscard]] std::string_view operator[](Token id) const noexcept {
    const auto index = static_cast<std::size_t>(id);
    return std::string_view(bytes_).substr(starts_[index], starts_[index + 1] - starts_[index]);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> starts_;  // one more than there are tokens
};

}  // namespace kvasir::text
