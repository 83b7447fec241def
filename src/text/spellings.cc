#include "text/spellings.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace kvasir::text {
namespace {

constexpr std::size_t kFewestSlots = 64;
constexpr std::size_t kMostStrings = UINT32_MAX - 1;

std::uint64_t hash_of(std::string_view spelling) noexcept {
  return XXH3_64bits(spelling.data(), spelling.size());
}

std::uint32_t tag_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint32_t>(hash >> 32);
}

std::size_t slots_for(std::size_t strings) {
  return std::bit_ceil(std::max(kFewestSlots, strings + strings / 2));
}

}  // namespace

void Spellings::reserve(std::size_t count, std::size_t bytes) {
  bytes_.reserve(bytes);
  starts_.reserve(count + 1);
  if (slots_for(count) > slots_.size()) rehash(slots_for(count));
}

std::size_t Spellings::slot_of(std::string_view spelling, std::uint64_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].number_plus_one != 0) {
    if (slots_[at].tag == tag_of(hash) && (*this)[slots_[at].number_plus_one - 1] == spelling) break;
    at = (at + 1) & mask;
  }
  return at;
}

Spellings::Added Spellings::add(std::string_view spelling) {
  if (slots_for(indexed_ + 1) > slots_.size()) rehash(slots_for(2 * indexed_ + 1));
  const std::uint64_t hash = hash_of(spelling);
  const std::size_t at = slot_of(spelling, hash);
  if (slots_[at].number_plus_one != 0) return {slots_[at].number_plus_one - 1, false};
  const std::uint32_t number = add_hidden(spelling);
  slots_[at] = {tag_of(hash), number + 1};
  ++indexed_;
  return {number, true};
}

std::uint32_t Spellings::add_hidden(std::string_view spelling) {
  if (starts_.size() > kMostStrings) throw std::length_error("too many strings");
  bytes_.insert(bytes_.end(), spelling.begin(), spelling.end());
  starts_.push_back(bytes_.size());
  return static_cast<std::uint32_t>(starts_.size() - 2);
}

std::optional<std::uint32_t> Spellings::find(std::string_view spelling) const noexcept {
  return find(spelling, hash_of(spelling));
}

std::uint64_t Spellings::seek(std::string_view spelling) const noexcept {
  const std::uint64_t hash = hash_of(spelling);
  if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  return hash;
}

std::optional<std::uint32_t> Spellings::find(std::string_view spelling, std::uint64_t sought) const noexcept {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(spelling, sought)];
  if (slot.number_plus_one == 0) return std::nullopt;
  return slot.number_plus_one - 1;
}

void Spellings::rehash(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.number_plus_one == 0) continue;
    std::size_t at = hash_of((*this)[slot.number_plus_one - 1]) & (slots - 1);
    while (slots_[at].number_plus_one != 0) at = (at + 1) & (slots - 1);
    slots_[at] = slot;
  }
}

}  // namespace kvasir::text
