#include "cli/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "base/try.h"
#include "base/utf8.h"
#include "cli/streams.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kShownBytes = 40;  // of a word that is no id
constexpr std::uint64_t kFileBytesMax = std::uint64_t{256} << 20;
constexpr std::string_view kWhite = " \t\n\v\f\r";

}  // namespace

Result<std::vector<Token>> parse_ids(std::string_view text) {
  std::vector<Token> ids;
  for (std::size_t at = text.find_first_not_of(kWhite); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kWhite, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    Token id = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || rest != word.data() + word.size()) {
      return fail(Outcome::kInvalidArgument, fmt::format("'{}', word {} of the input, is not a token id",
                                                         base::printable(word, kShownBytes), ids.size() + 1));
    }
    ids.push_back(id);
    at = text.find_first_not_of(kWhite, end);
  }
  return ids;
}

Result<std::vector<Token>> read_ids(const std::string& path) {
  auto bytes = read_all(path, kFileBytesMax);
  if (!bytes) return fail(bytes.error());
  return parse_ids({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

}  // namespace kvasir::cli
