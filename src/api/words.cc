#include <array>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "api/parts.h"

namespace kvasir::api {
namespace {

// What rooms below call a setting, after the program's flags, and the option of this API that it is.
struct Setting {
  std::string_view flag;
  std::string_view option;
};
constexpr std::array<Setting, 6> kSettings = {{{"--ctx", "context"},
                                               {"--pool", "pool"},
                                               {"--pass", "pass_tokens"},
                                               {"--page", "page_cells"},
                                               {"--kv", "keys"},
                                               {"--threads", "threads"}}};

}  // namespace

Error in_public_words(Error error) {
  if (error.code() == Outcome::kNotFound) return {Outcome::kWrongState, "the conversation is closed"};
  for (const Setting& setting : kSettings) {
    if (error.numbers().setting != setting.flag) continue;
    ErrorNumbers numbers = error.numbers();
    numbers.setting = setting.option;
    return {error.code(), error.message(), numbers};
  }
  return error;
}

StepReport in_public_words(StepReport report) {
  for (ConversationReport& about : report.conversations) {
    if (about.error == nullptr) continue;
    try {
      about.error = std::make_shared<const Error>(in_public_words(*about.error));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the step has happened; its words stay
    }
  }
  return report;
}

}  // namespace kvasir::api
