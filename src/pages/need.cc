// How many cells of each group conversations will need for the tokens that are promised to them.
//
// A full group needs a cell for each token. A window group gives back between steps what it has passed, if no
// one else holds it: with P tokens in a step at most and K = W + R kept behind, r tokens from length l on
// need r cells but those that nobody else holds below l + r - P - K, be they there already or new. A
// recurrent group needs one state beside the present one, and one more where the present one stays for
// others.

#include <algorithm>

#include "pages/page_store.h"

namespace kvasir::pages {

// Cells that an open ticket holds for its line.
std::uint64_t PageStore::cells_of_line(std::size_t group, const LineInTicket& line) const noexcept {
  switch (kind(group)) {
    case GroupKind::kFull:
      return line.count;
    case GroupKind::kWindow:
      return std::min(line.count, kept_behind(group) + spec_.pass_tokens + (line.count - line.fewest));
    case GroupKind::kRecurrent:
      return line.count > 0 ? 1 : 0;
    case GroupKind::kCross:
      break;
  }
  return 0;
}

// Cells below an ordinal that no other conversation and no ticket holds. Those in a tier count too: before
// the conversation goes on they are back in the pool, which is admitted for itself.
std::uint64_t PageStore::exclusive_below(std::size_t group, const PageTable& cells, std::uint64_t ordinal,
                                         bool returns) const noexcept {
  std::uint64_t exclusive = 0;
  for (const Run& run : cells.runs()) {
    if (run.ordinal >= ordinal) break;
    if (in_tier(run.page) && !returns) continue;
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count, ordinal - run.ordinal));
    for (std::uint32_t cell = run.cell; cell < run.cell + count; ++cell) {
      exclusive += firm_holders(group, run.page, cell) == 1 ? 1 : 0;
    }
  }
  return exclusive;
}

// The ordinal below which cells are given back before the last of `tokens` more are taken.
std::uint64_t PageStore::passed_by(std::size_t group, const PageTable& cells,
                                   std::uint64_t tokens) const noexcept {
  const std::uint64_t in_use = kept_behind(group) + spec_.pass_tokens;
  const std::uint64_t end = cells.length() + tokens;
  return end - std::min(end, in_use);
}

// What `tokens` more need in a window group, from the end of `cells` on.
std::uint64_t PageStore::window_need(std::size_t group, const PageTable& cells, std::uint64_t tokens,
                                     bool returns) const noexcept {
  const std::uint64_t passed = passed_by(group, cells, tokens);
  if (tokens <= spec_.pass_tokens || passed <= cells.start()) return tokens;
  const std::uint64_t length = cells.length();
  const std::uint64_t new_ones = passed > length ? passed - length : 0;
  return tokens - new_ones - exclusive_below(group, cells, passed, returns);
}

// What a conversation will need beyond what it and its ticket hold, with so much promised behind the tokens
// of the ticket's line. That may end in part or not at all, and what it used up is promised again then.
std::uint64_t PageStore::promise_need(const Table& table, const LineInTicket& line, std::size_t group,
                                      std::uint64_t promised, bool comes_back) const noexcept {
  const bool returns = comes_back || table.returns;
  if (promised == 0 && line.count == 0) return 0;
  std::uint64_t need = 0;
  switch (kind(group)) {
    case GroupKind::kFull:
      return promised;
    case GroupKind::kWindow:
      need = window_need(group, table.cells[group], promised + line.count, returns);
      break;
    case GroupKind::kRecurrent: {
      // Steps to come, 2 standing for more, as if the present state were still that before the line.
      const std::uint64_t again = std::max(line.paid, line.fewest < line.count ? line.count - 1 : 0);
      const std::uint64_t after = promised > 0 && line.count > 0 ? promised + 1 : promised;
      const bool replaced = exclusive_below(group, table.cells[group], UINT64_MAX, returns) == 1;
      need = std::min<std::uint64_t>(std::max(promised + again, after), replaced ? 1 : 2);
      break;
    }
    case GroupKind::kCross:
      break;
  }
  const std::uint64_t held = cells_of_line(group, line);
  return need > held ? need - held : 0;
}

Need PageStore::promise_need(const Table& table, std::uint64_t promised, bool comes_back) const noexcept {
  Need need{};
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    need[group] = promise_need(table, table.line, group, promised, comes_back);
  }
  return need;
}

// Over all tables.
Need PageStore::promised_need() const noexcept {
  Need need{};
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    need[group] = edits_need_[group];
    if (kind(group) == GroupKind::kFull) {
      need[group] += promised_;
      continue;
    }
    for (const Table& table : tables_) need[group] += promise_need(table, table.line, group, table.promised);
  }
  return need;
}

Need PageStore::promised_but(const Table& table) const noexcept {
  Need need = promised_need();
  const Need own = promise_need(table, table.promised);
  for (std::size_t group = 0; group < groups_.size(); ++group) need[group] -= own[group];
  return need;
}

// Of a new conversation's first tokens, as one step that is accepted whole.
Need PageStore::need_of_unit(std::uint64_t tokens) const noexcept {
  Need need{};
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    need[group] = cells_of_line(group, {.count = tokens, .fewest = tokens});
  }
  return need;
}

// The same where they are promised first, as to whoever waits for a step: then two states, as of any that
// goes on.
Need PageStore::need_of_new(std::uint64_t tokens) const noexcept {
  Need need = need_of_unit(tokens);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kRecurrent) need[group] = std::min<std::uint64_t>(tokens, 2);
  }
  return need;
}

}  // namespace kvasir::pages
