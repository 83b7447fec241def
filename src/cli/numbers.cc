#include "cli/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <system_error>

#include "base/utf8.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kShownBytes = 40;

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const auto wrong = [least, most](const std::string& text) {
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && rest == text.data() + text.size();
    if (whole && number >= least && number <= most) return std::string();
    return fmt::format("'{}' is no whole number from {} to {}", base::printable(text, kShownBytes), least,
                       most);
  };
  return {wrong, most == UINT64_MAX ? std::string() : fmt::format("[{} - {}]", least, most)};
}

}  // namespace kvasir::cli
