// How far long work is, on standard error.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvasir::cli {

// On a terminal one line that is rewritten, at most ten times a second; elsewhere a line for each tenth of
// the way. One thread at a time.
class Progress {
 public:
  // `total` in any unit; 0 counts as done from the start.
  explicit Progress(std::uint64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // `done` of the total are behind, `what` is at work.
  void at(std::uint64_t done, std::string_view what);

  // A line of its own that stays, escaped as cli::say does.
  void say(std::string_view line);

 private:
  void clear_line();

  std::uint64_t total_;
  std::int64_t shown_ns_ = 0;
  int shown_tenth_ = 0;
  bool terminal_;
  bool line_open_ = false;
};

}  // namespace kvasir::cli
