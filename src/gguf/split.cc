#include "gguf/split.h"

#include <fmt/format.h>

#include "base/try.h"

namespace kvasir::gguf {
namespace {

// split.count is a uint16 where it is written.
constexpr std::uint64_t kMaxShards = 65535;
constexpr std::size_t kDigits = 5;

Result<std::optional<std::uint64_t>> optional_count(const Shard& shard, std::string_view key) {
  const Value* value = shard.find(key);
  if (value == nullptr) return std::nullopt;
  const auto count = value->as_uint();
  if (!count) {
    return fail(Outcome::kCorrupt, fmt::format("the metadata key {} must be a count, not of type {}", key,
                                               value_type_name(value->type())));
  }
  return count;
}

// Takes `suffix` away from the end of `text`.
bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// Takes five digits away from the end of `text`.
std::optional<std::uint64_t> take_digits(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : text.substr(text.size() - kDigits)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  text.remove_suffix(kDigits);
  return value;
}

}  // namespace

Result<SplitPlace> split_place(const Shard& shard) {
  SplitPlace place;
  KVASIR_ASSIGN(const auto count, optional_count(shard, "split.count"));
  KVASIR_ASSIGN(const auto number, optional_count(shard, "split.no"));
  KVASIR_ASSIGN(place.tensors, optional_count(shard, "split.tensors.count"));
  place.count = count.value_or(1) == 0 ? 1 : count.value_or(1);
  place.number = number.value_or(0);
  if (place.count > kMaxShards) {
    return fail(Outcome::kCorrupt,
                fmt::format("split.count is {}; at most {} shards exist", place.count, kMaxShards),
                {.wanted = place.count, .limit = kMaxShards});
  }
  if (place.number >= place.count) {
    return fail(Outcome::kCorrupt,
                fmt::format("split.no is {}, but split.count is {}", place.number, count.value_or(1)),
                {.wanted = place.number, .limit = place.count});
  }
  return place;
}

std::string SplitName::sibling(std::uint64_t other_number) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, other_number + 1, count);
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  if (!take_suffix(path, ".gguf")) return std::nullopt;
  const auto count = take_digits(path);
  if (!count || !take_suffix(path, "-of-")) return std::nullopt;
  const auto number = take_digits(path);
  if (!number || *number == 0 || *number > *count || !take_suffix(path, "-")) return std::nullopt;
  return SplitName{path, *number - 1, *count};
}

}  // namespace kvasir::gguf
