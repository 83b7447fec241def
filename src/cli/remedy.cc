#include "cli/remedy.h"

#include <string_view>

namespace kvasir::cli {
namespace {

// The flag that is this setting, which rooms below call after the flag and the public API after its option.
std::string_view flag_of(std::string_view setting) {
  if (setting == "context" || setting == "--ctx") return "--ctx";
  if (setting == "pool" || setting == "--pool") return "--pool";
  return {};
}

}  // namespace

std::string sentence_of(const Error& error) {
  const std::string_view flag = flag_of(error.numbers().setting);
  const bool says_so = error.message().find(flag) != std::string::npos;
  if (error.code() != Outcome::kNoSpace || flag.empty() || says_so) return error.message();
  return error.message() + "; a larger " + std::string(flag) + " helps";
}

}  // namespace kvasir::cli
