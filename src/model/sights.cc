#include "model/sights.h"

#include <algorithm>

namespace kvasir::model {

// The cells of one conversation in one window group: those from ordinal `first` on have the logical positions
// that positions_ lists.
struct Sights::Window {
  std::size_t group = 0;
  std::uint64_t width = 0;
  std::uint64_t floor = 0;
  std::uint64_t first = 0;
};

void Sights::look(const Network& network, const Pass& pass, const pages::PageStore& store) {
  seen_.resize(network.groups.size());
  hidden_.clear();
  for (std::size_t group = 0; group < network.groups.size(); ++group) {
    seen_[group].clear();
    if (network.groups[group].kind == pages::GroupKind::kCross) see_all(pass, group);
    if (network.groups[group].kind != pages::GroupKind::kWindow) continue;
    seen_[group].resize(pass.rows.size());
    for (const PassSequence& sequence : pass.sequences) {
      Window window{.group = group, .width = network.groups[group].width};
      if (!sequence.floors.empty()) window.floor = sequence.floors[group];
      const std::uint64_t begin = pass.rows[sequence.first_row].ordinal;
      window.first = std::max({window.floor, sequence.runs[group].front().ordinal,
                               begin + 1 - std::min(begin + 1, window.width)});
      positions_.clear();
      for (const pages::Run& run : sequence.runs[group]) {
        for (std::uint64_t at = std::max(run.ordinal, window.first); at < run.end(); ++at) {
          const auto cell = run.cell + static_cast<std::uint32_t>(at - run.ordinal);
          positions_.push_back(static_cast<std::int64_t>(store.position(group, run.page, cell)) + run.shift);
        }
      }
      look(window, pass, sequence);
    }
  }
}

void Sights::look_both_ways(const Pass& pass) {
  seen_.resize(1);
  see_all(pass, 0);
}

void Sights::see_all(const Pass& pass, std::size_t group) {
  seen_[group].resize(pass.rows.size());
  for (std::size_t row = 0; row < pass.rows.size(); ++row) {
    const std::vector<pages::Run>& runs = pass.sequences[pass.rows[row].sequence].runs[group];
    seen_[group][row] = {.end = runs.empty() ? 0 : runs.back().end()};
  }
}

void Sights::look(const Window& window, const Pass& pass, const PassSequence& sequence) {
  const bool ascend = std::ranges::is_sorted(positions_);
  std::uint64_t first = window.first;
  for (std::uint32_t row = sequence.first_row; row < sequence.first_row + sequence.rows; ++row) {
    const PassRow& at = pass.rows[row];
    first = std::max(first, at.ordinal + 1 - std::min(at.ordinal + 1, window.width));
    const auto seen = [&](std::uint64_t ordinal) {
      return at.position - positions_[ordinal - window.first] < static_cast<std::int64_t>(window.width);
    };
    while (first < at.ordinal && !seen(first)) ++first;
    seen_[window.group][row] = {.first = first, .end = at.ordinal + 1};
    if (!ascend) {
      hide(window, at, seen_[window.group][row]);
      first = window.first;  // a later row may be at an earlier position
    }
  }
}

// The cells that a row does not see between the first that it does and its own.
void Sights::hide(const Window& window, const PassRow& row, Seen& seen) {
  seen.hidden = hidden_.size();
  for (std::uint64_t ordinal = seen.first; ordinal < row.ordinal; ++ordinal) {
    const std::int64_t behind = row.position - positions_[ordinal - window.first];
    if (behind < static_cast<std::int64_t>(window.width)) continue;
    if (hidden_.size() > seen.hidden && hidden_.back().end == ordinal) {
      ++hidden_.back().end;
    } else {
      hidden_.push_back({ordinal, ordinal + 1});
    }
  }
  seen.hidden_count = hidden_.size() - seen.hidden;
}

}  // namespace kvasir::model
