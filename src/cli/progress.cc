#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/streams.h"

namespace kvasir::cli {
namespace {

constexpr std::int64_t kPeriodNs = 100'000'000;
constexpr std::size_t kShownBytes = 48;

}  // namespace

Progress::Progress(std::uint64_t total) : total_(total), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  clear_line();
}

void Progress::at(std::uint64_t done, std::string_view what) {
  const double part = total_ == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total_);
  if (!terminal_) {
    const int tenth = static_cast<int>(part * 10.0);
    if (tenth <= shown_tenth_) return;
    shown_tenth_ = tenth;
    show(fmt::format("{:3d} %\n", 10 * tenth));
    return;
  }
  const std::int64_t now = base::system_clock().now_ns();
  if (line_open_ && now - shown_ns_ < kPeriodNs) return;
  shown_ns_ = now;
  line_open_ = true;
  show(
      fmt::format("\r\x1b[K{:3d} %  {}", static_cast<int>(part * 100.0), base::printable(what, kShownBytes)));
}

void Progress::say(std::string_view line) {
  clear_line();
  cli::say(line);
}

void Progress::clear_line() {
  if (line_open_) show("\r\x1b[K");
  line_open_ = false;
}

}  // namespace kvasir::cli
