// How every fallible call of Kvasir answers: a value, or an Error with an outcome, a sentence and numbers.
//
// Nothing is thrown across the public API. A call that changes state and answers an Error has changed
// nothing, unless its own documentation says otherwise. A value header.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kvasir {

// What became of a call, a step or a conversation. Stable: values are only ever added at the end.
enum class Outcome : std::uint8_t {
  kDone = 0,             // took full effect
  kIdle = 1,             // there was nothing to do
  kSuspended = 2,        // stopped at a deadline; the next step continues it
  kNoSpace = 3,          // the cache cannot hold it; the numbers say what is missing
  kStalled = 4,          // every running conversation lacks space
  kBusy = 5,             // what is asked for is in use by an open step
  kNeedsPrompt = 6,      // there are no logits to sample from
  kCancelled = 7,        // the caller stopped it
  kInvalidArgument = 8,  // the argument can never be right
  kWrongState = 9,       // right at another time; the message names the remedy
  kNotFound = 10,        // no such file, name or id
  kUnsupported = 11,     // a valid wish that this version or this model cannot fulfil
  kOutOfMemory = 12,     // the operating system gave no memory
  kComputeFailed = 13,   // a job of a pass failed
  kCorrupt = 14,         // bytes that are not what they claim to be
  kIo = 15,              // the operating system refused a read, write or sync
  kInternal = 16,        // a fault of Kvasir's own
};

// The stable lower-case name of an outcome, such as "no space". Never fails.
[[nodiscard]] std::string_view outcome_name(Outcome outcome) noexcept;

// The numbers behind a refusal, each present where it has a meaning, and the setting that would help.
struct ErrorNumbers {
  std::optional<std::uint64_t> wanted;
  std::optional<std::uint64_t> available;
  std::optional<std::uint64_t> limit;
  // The option that would help, a string literal such as "pool"; empty if none does.
  std::string_view setting;
};

// A refusal: a code to decide by, a sentence for people, numbers for programs.
class Error {
 public:
  Error(Outcome code, std::string message, ErrorNumbers numbers = {})
      : message_(std::move(message)), numbers_(numbers), code_(code) {}

  [[nodiscard]] Outcome code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const ErrorNumbers& numbers() const noexcept { return numbers_; }

  // The same error with "context: " before its sentence.
  [[nodiscard]] Error within(std::string_view context) const {
    return {code_, std::string(context) + ": " + message_, numbers_};
  }

 private:
  std::string message_;
  ErrorNumbers numbers_;
  Outcome code_;
};

// A value or an Error. A std::expected that must not be ignored.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

// Success or an Error.
using Status = Result<void>;

// `return fail(Outcome::kCorrupt, "...")` from any function that answers a Result.
[[nodiscard]] inline std::unexpected<Error> fail(Outcome code, std::string message,
                                                 ErrorNumbers numbers = {}) {
  return std::unexpected<Error>(Error(code, std::move(message), numbers));
}
[[nodiscard]] inline std::unexpected<Error> fail(Error error) {
  return std::unexpected<Error>(std::move(error));
}

}  // namespace kvasir
