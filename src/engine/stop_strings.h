// Finds the first of several strings in a text that comes piece by piece, and holds back what may still
// become one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::engine {

// Not thread-safe. None of the strings is empty.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> strings);

  // Takes more text; answers what can be delivered now: all before the first stop string, and nothing that a
  // stop string could still begin with. After stopped() it answers nothing.
  [[nodiscard]] std::string feed(std::string_view text);

  // What was held back, once no more text will come.
  [[nodiscard]] std::string finish() noexcept;

  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace kvasir::engine
