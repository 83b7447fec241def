#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

namespace kvasir::engine {
namespace {

// The longest end of `text` that `string` begins with, shorter than all of it.
std::size_t begun(std::string_view text, std::string_view string) {
  for (std::size_t length = std::min(text.size(), string.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == string.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {}

std::string StopStrings::feed(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  // The one that is complete first; of those that end together the longest.
  std::size_t first = std::string::npos;
  std::size_t end = std::string::npos;
  for (const std::string& string : strings_) {
    const std::size_t at = held_.find(string);
    if (at == std::string::npos || at + string.size() > end) continue;
    first = at + string.size() < end ? at : std::min(first, at);
    end = at + string.size();
  }
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  std::size_t keep = 0;
  for (const std::string& string : strings_) keep = std::max(keep, begun(held_, string));
  std::string ready = held_.substr(0, held_.size() - keep);
  held_.erase(0, ready.size());
  return ready;
}

std::string StopStrings::finish() noexcept {
  return std::exchange(held_, {});
}

}  // namespace kvasir::engine
