// Byte strings numbered from 0, found by their bytes in constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kvasir::text {

// Grows only. Any thread may read while none adds. Adding may throw std::bad_alloc, and std::length_error
// beyond 2^32 - 2 strings.
class Spellings {
 public:
  struct Added {
    std::uint32_t number;
    bool is_new;
  };

  // Makes room for so many strings of so many bytes together.
  void reserve(std::size_t count, std::size_t bytes);

  // The number of `spelling`: its own if it is there, else the next. The bytes are copied.
  Added add(std::string_view spelling);

  // Gives the next number to a string that find() shall never answer.
  std::uint32_t add_hidden(std::string_view spelling);

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view spelling) const noexcept;

  // The same in two steps, for whoever looks for many: what a spelling is found by, whose place begins to
  // come from memory, and then the look itself.
  [[nodiscard]] std::uint64_t seek(std::string_view spelling) const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view spelling,
                                                  std::uint64_t sought) const noexcept;

  // Of a number that was given; valid until the next addition.
  [[nodiscard]] std::string_view operator[](std::uint32_t number) const noexcept {
    return {bytes_.data() + starts_[number], starts_[number + 1] - starts_[number]};
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(starts_.size() - 1); }

 private:
  // Open addressing with linear probing, at most two thirds full; 0 marks a free slot.
  struct Slot {
    std::uint32_t tag = 0;  // the upper half of the hash, to compare few strings
    std::uint32_t number_plus_one = 0;
  };

  [[nodiscard]] std::size_t slot_of(std::string_view spelling, std::uint64_t hash) const noexcept;
  void rehash(std::size_t slots);

  std::vector<char> bytes_;
  std::vector<std::size_t> starts_ = {0};  // one more than there are strings
  std::vector<Slot> slots_;                // a power of two of them
  std::size_t indexed_ = 0;
};

}  // namespace kvasir::text
