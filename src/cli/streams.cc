#include "cli/streams.h"

#include <fcntl.h>
#include <sys/stat.h>
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
  watch_interrupts();
  return base::read_descriptor(STDIN_FILENO, limit, interrupted);
}

bool is_stream(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
}

Result<std::vector<std::byte>> read_all(const std::string& path, std::uint64_t limit) {
  if (path == "-") return read_input(limit);
  if (!is_stream(path)) return base::read_whole(base::system_files(), path, limit);
  watch_interrupts();
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && interrupted()) return fail(Outcome::kCancelled, "interrupted");
  if (descriptor < 0) {
    return fail(Outcome::kIo,
                "cannot open '" + path + "': " + std::error_code(errno, std::generic_category()).message());
  }
  auto bytes = base::read_descriptor(descriptor, limit, interrupted);
  ::close(descriptor);
  if (!bytes && bytes.error().code() == Outcome::kIo)
    return fail(Outcome::kIo, "cannot read '" + path + "' to its end");
  return bytes;
}

Result<std::optional<std::string>> Lines::next() {
  watch_interrupts();
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
  return print_to(STDOUT_FILENO, "standard output", bytes);
}

Status print_to(int descriptor, std::string_view name, std::string_view bytes) {
  const int code = write_all(descriptor, bytes);
  if (code == 0) return {};
  if (code == EINTR) return fail(Outcome::kCancelled, "interrupted");
  return fail(Outcome::kIo, "cannot write to " + std::string(name) + ": " +
                                std::error_code(code, std::generic_category()).message());
}

void show(std::string_view text) noexcept {
  (void)write_all(STDERR_FILENO, text);
}

void say(std::string_view sentence) {
  show(base::printable(sentence, sentence.size()) + "\n");
}

}  // namespace kvasir::cli
