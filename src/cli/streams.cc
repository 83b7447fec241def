#include "cli/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/file.h"
#include "base/utf8.h"
#include "cli/interrupt.h"

namespace kvasir::cli {
namespace {

// Writes until all is written; answers 0, the errno of what failed, or EINTR where the user interrupted.
int write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) return errno;
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    // A signal that comes while a part was taken already shows as a short write alone.
    if (!bytes.empty() && interrupted()) return EINTR;
  }
  return 0;
}

}  // namespace

void hold_streams() noexcept {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The wrong way round, so that using it fails as using a closed one does. It gets the lowest free number,
    // which is this one.
    (void)::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

Result<std::vector<std::byte>> read_input(std::uint64_t limit) {
  return base::read_descriptor(STDIN_FILENO, limit, interrupted);
}

Result<std::optional<std::string>> Lines::next() {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  while (true) {
    const std::size_t end = waiting_.find('\n');
    if (end != std::string::npos || (ended_ && !waiting_.empty())) {
      std::string line = waiting_.substr(0, end);
      waiting_.erase(0, end == std::string::npos ? end : end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return line;
    }
    if (ended_) return std::optional<std::string>();
    if (waiting_.size() > kLongest)
      return fail(Outcome::kNoSpace, "a line of more than 1 MiB", {.limit = kLongest});
    std::array<char, 4096> some{};
    const ssize_t got = ::read(STDIN_FILENO, some.data(), some.size());
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(Outcome::kIo,
                  "cannot read standard input: " + std::error_code(errno, std::generic_category()).message());
    if (got == 0) ended_ = true;
    waiting_.append(some.data(), static_cast<std::size_t>(got));
  }
}

Status print(std::string_view bytes) {
  const int code = write_all(STDOUT_FILENO, bytes);
  if (code == 0) return {};
  if (code == EINTR) return fail(Outcome::kCancelled, "interrupted");
  return fail(Outcome::kIo,
              "cannot write to standard output: " + std::error_code(code, std::generic_category()).message());
}

void show(std::string_view text) noexcept {
  (void)write_all(STDERR_FILENO, text);
}

void say(std::string_view sentence) {
  show(base::printable(sentence, sentence.size()) + "\n");
}

}  // namespace kvasir::cli
