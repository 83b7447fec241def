// What the demonstration shows: on a terminal a view of 80 columns and 23 lines that is drawn again and again
// in its place, elsewhere a line for what happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "cli/village.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Whether standard output is a terminal that the live view fits.
[[nodiscard]] bool live_view_fits() noexcept;

// Everything goes to standard output: errors as print(). One thread.
class VillageView {
 public:
  explicit VillageView(bool live);
  VillageView(const VillageView&) = delete;
  VillageView& operator=(const VillageView&) = delete;
  // The cursor shows again, below the view.
  ~VillageView();

  // A new title, with no lines below it; then a line below it.
  [[nodiscard]] Status act(std::string_view title);
  [[nodiscard]] Status line(std::string_view text);
  // An answer that has ended. Where nothing is drawn again, one a second is shown, and each that is wrong.
  [[nodiscard]] Status heard(const Village& village, const Heard& heard);

  // Draws what there is, unless that was done a moment ago.
  [[nodiscard]] Status draw(const Village& village);
  // Draws for the last time and leaves it there; then a line of the summary below it.
  [[nodiscard]] Status close(const Village& village);
  [[nodiscard]] Status verdict(bool good, std::string_view text);

  [[nodiscard]] bool live() const noexcept { return live_; }
  [[nodiscard]] double elapsed() const noexcept;  // seconds since it was made

 private:
  [[nodiscard]] Status draw_now(const Village& village);

  bool live_;
  bool drawn_ = false;  // the cursor is at the end of the view
  bool closed_ = false;
  std::int64_t start_ns_;
  std::int64_t drawn_ns_ = 0;
  std::int64_t said_ns_ = 0;
  std::string title_;
  std::vector<std::string> lines_;
  std::deque<std::string> talk_;
};

}  // namespace kvasir::cli
