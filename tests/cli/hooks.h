// Hooks of long work that remember what they were told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/work.h"

namespace kvasir::test {

class RecordingHooks {
 public:
  // `calls_before_stop` questions are answered with go on; -1 for all.
  explicit RecordingHooks(int calls_before_stop = -1) : left_(calls_before_stop) {}

  [[nodiscard]] cli::WorkHooks hooks() {
    return {
        .begin = [this](std::uint64_t total) { total_ = total; },
        .progress = [this](std::uint64_t done, std::string_view) { done_.push_back(done); },
        .note = [this](std::string_view sentence) { notes_.emplace_back(sentence); },
        .stop =
            [this] {
              if (left_ == 0) return true;
              if (left_ > 0) --left_;
              return false;
            },
    };
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] const std::vector<std::uint64_t>& done() const { return done_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  int left_;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> done_;
  std::vector<std::string> notes_;
};

}  // namespace kvasir::test
