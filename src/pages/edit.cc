// Edits of one conversation: planned on copies of its tables, installed at once.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

using Kind = EditOperation::Kind;

// Whether an operation leaves everything as it is, wherever it applies.
bool changes_nothing(const EditOperation& operation) noexcept {
  if (operation.count == 0) return true;
  if (operation.kind == Kind::kShift) return operation.amount == 0;
  return operation.kind == Kind::kDivide && operation.amount == 1;
}

// Room for one more element, found before a cell is taken.
template <class T>
void make_place(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(std::max<std::size_t>(8, list.size() * 2));
}

// Applies an operation to positions. A shift must leave every one in [0, kPositionMax].
Status move_positions(std::vector<std::int64_t>& positions, const EditOperation& operation) {
  const auto first = positions.begin() + static_cast<std::ptrdiff_t>(operation.first);
  const auto last = first + static_cast<std::ptrdiff_t>(operation.count);
  if (first == last) return {};
  if (operation.kind == Kind::kRemove) {
    positions.erase(first, last);
    return {};
  }
  if (operation.kind == Kind::kDivide) {
    std::for_each(first, last, [&](std::int64_t& position) { position /= operation.amount; });
    return {};
  }
  const auto [least, most] = std::minmax_element(first, last);
  if (operation.amount < -*least || operation.amount > kPositionMax - *most) {
    return fail(Outcome::kInvalidArgument,
                "adding " + std::to_string(operation.amount) + " to positions " + std::to_string(*least) +
                    " to " + std::to_string(*most) + " leaves the range 0 to " + std::to_string(kPositionMax),
                {.limit = static_cast<std::uint64_t>(kPositionMax)});
  }
  std::for_each(first, last, [&](std::int64_t& position) { position += operation.amount; });
  return {};
}

}  // namespace

EditTicket::EditTicket(PageStore& store, TableId table, const EditOutline& outline, const Need& more) noexcept
    : store_(&store), table_(table), outline_(outline), more_(more) {
  ++store.open_tickets_;
  store.entry(table).busy = true;
  store.entry(table).edited = true;
  for (std::size_t group = 0; group < kGroupsMax; ++group) store.edits_need_[group] += more_[group];
}

EditTicket::EditTicket(EditTicket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      table_(other.table_),
      cells_(std::move(other.cells_)),
      removed_(std::move(other.removed_)),
      taken_(std::move(other.taken_)),
      jobs_(std::move(other.jobs_)),
      outline_(other.outline_),
      more_(other.more_) {}

EditTicket::~EditTicket() {
  if (store_ == nullptr) return;
  for (std::size_t group = 0; group < taken_.size(); ++group)
    store_->release(group, taken_[group], Holder::kFirm);
  close();
}

void EditTicket::close() noexcept {
  for (std::size_t group = 0; group < kGroupsMax; ++group) store_->edits_need_[group] -= more_[group];
  store_->entry(table_).busy = false;
  store_->entry(table_).edited = false;
  --store_->open_tickets_;
  store_ = nullptr;
}

void EditTicket::commit() noexcept {
  PageStore& store = *store_;
  PageStore::Table& table = store.entry(table_);
  table.cells.swap(cells_);
  for (std::size_t group = 0; group < removed_.size(); ++group)
    store.release(group, removed_[group], Holder::kFirm);
  table.length = outline_.length;
  table.floors = outline_.floors;
  store.drop_checkpoints_above(table, outline_.first_changed);
  table.first_dirty = std::min(table.first_dirty, outline_.first_dirty);
  table.first_edited = std::min(table.first_edited, outline_.first_dirty);
  table.last_edited = outline_.last_dirty;
  store.forget_edits_behind(table);
  table.remembered = std::min({table.remembered, table.length, outline_.first_changed});
  close();
}

Result<EditTicket> PageStore::begin_edit(TableId id, std::span<const EditOperation> operations) {
  return base::within_memory([&]() -> Result<EditTicket> {
    KVASIR_TRY(check_idle(id));
    const Table& table = entry(id);
    KVASIR_ASSIGN(const EditOutline outline, check_edit(id, operations));
    if (outline.rewritten != Need{}) KVASIR_TRY(check_in_pool(id));
    const Need more = promise_grows(table, operations);
    Demand demand{.cells = outline.rewritten, .total = outline.rewritten};
    for (std::size_t group = 0; group < groups_.size(); ++group) demand.total[group] += more[group];
    const Need promised = promised_need();
    KVASIR_TRY(admit(demand.total, promised));
    for (std::size_t group = 0; group < groups_.size(); ++group) demand.total[group] += promised[group];
    EditTicket ticket(*this, id, outline, more);  // its end gives back what it has taken where memory ends
    ticket.cells_ = table.cells;
    ticket.removed_.resize(groups_.size());
    ticket.taken_.resize(groups_.size());
    drop_compaction_of(id);
    make_room(demand);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      std::uint64_t pages = fresh_pages(group, demand);
      if (kind(group) == GroupKind::kRecurrent || kind(group) == GroupKind::kCross) continue;
      if (outline.first_changed == UINT64_MAX) continue;
      for (const EditOperation& operation : operations) plan_operation(ticket, group, operation, pages);
    }
    return ticket;
  });
}

// The logical positions of the cells that a conversation holds, in the group that holds most; `from` is the
// ordinal of the first.
std::vector<std::int64_t> PageStore::positions_of(TableId id, std::uint64_t& from) const {
  std::vector<std::int64_t> positions;
  const Table& table = entry(id);
  std::optional<std::size_t> most;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kRecurrent || kind(group) == GroupKind::kCross) continue;
    if (!most || table.cells[group].start() < table.cells[*most].start()) most = group;
  }
  from = most ? table.cells[*most].start() : table.length;
  if (!most) return positions;
  positions.reserve(table.length - from);
  for (const Run& run : table.cells[*most].runs()) {
    for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
      positions.push_back(static_cast<std::int64_t>(position(*most, run.page, cell)) + run.shift);
    }
  }
  return positions;
}

// Whether an operation applies to the conversation as those before have left it.
Status PageStore::check_operation(const EditOutline& outline, const EditOperation& operation) const {
  if (operation.first > outline.length || operation.count > outline.length - operation.first) {
    return fail(Outcome::kInvalidArgument,
                "an edit of " + std::to_string(operation.count) + " tokens from " +
                    std::to_string(operation.first) + " on, in a conversation of " +
                    std::to_string(outline.length),
                {.wanted = operation.first, .limit = outline.length});
  }
  if (operation.kind == Kind::kDivide && operation.amount < 1) {
    return fail(Outcome::kInvalidArgument,
                "positions cannot be divided by " + std::to_string(operation.amount));
  }
  if (changes_nothing(operation)) return {};
  if (operation.kind == Kind::kRemove && operation.first + operation.count == outline.length) {
    bool free = !has(GroupKind::kRecurrent);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) != GroupKind::kWindow) continue;
      free = free && still_seen(group, operation.first, outline.floors[group], outline.starts[group]);
    }
    if (free) return {};
    return fail(Outcome::kWrongState,
                "a rewind to " + std::to_string(operation.first) +
                    " tokens must restore a checkpoint; it is no part of an edit, rewind alone",
                {.wanted = operation.first});
  }
  if (has(GroupKind::kRecurrent)) {
    return fail(Outcome::kUnsupported, "a recurrent state cannot forget or move tokens before its last");
  }
  if (operation.kind != Kind::kRemove && !spec_.positions_can_move)
    return fail(Outcome::kUnsupported, "the positions of this model cannot move");
  return {};
}

// Applies an operation to lengths, floors and release lines.
void PageStore::outline_operation(EditOutline& outline, const EditOperation& operation) const noexcept {
  const auto [first, count] = std::pair(operation.first, operation.count);
  if (changes_nothing(operation)) return;
  const bool removes = operation.kind == Kind::kRemove;
  // What stays in front of a removed end is as clean as it was and sees what it saw; all else makes what it
  // touches and what follows dirty.
  const bool cuts_the_end = removes && first + count == outline.length;
  outline.first_changed = std::min(outline.first_changed, first);
  if (removes) outline.last_dirty = carried(outline.last_dirty, first, count);
  if (!cuts_the_end) {
    outline.first_dirty = std::min(outline.first_dirty, first);
    outline.last_dirty = std::max(outline.last_dirty, first);
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) == GroupKind::kRecurrent || kind(group) == GroupKind::kCross) continue;
    std::uint64_t& floor = outline.floors[group];
    std::uint64_t& start = outline.starts[group];
    if (operation.kind == Kind::kDivide && first + count > start) {
      outline.rewritten[group] += first + count - std::max(first, start);
    }
    if (cuts_the_end || kind(group) == GroupKind::kFull) continue;
    floor = std::max(floor, outline.length - std::min(outline.length, spec_.groups[group].width));
    if (!removes) continue;
    floor = carried(floor, first, count);
    start = carried(start, first, count);
  }
  if (removes) outline.length -= count;
}

// Tries the operations on numbers alone.
Result<EditOutline> PageStore::check_edit(TableId id, std::span<const EditOperation> operations) const {
  const Table& table = entry(id);
  if (table.behind > 0) {
    return fail(Outcome::kWrongState,
                "the conversation is " + std::to_string(table.behind) +
                    " tokens behind; let it catch up or rewind it first",
                {.available = table.behind});
  }
  EditOutline outline{.length = table.length, .floors = table.floors, .last_dirty = table.last_edited};
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    outline.starts[group] = table.cells[group].start();
  }
  const EditOutline unchanged = outline;
  std::uint64_t from = 0;
  std::vector<std::int64_t> positions;
  if (std::ranges::any_of(operations, [](const auto& one) { return one.kind != Kind::kRemove; })) {
    positions = positions_of(id, from);
  }
  const bool all_held = from == 0;
  const std::vector<std::int64_t> before = positions;
  for (const EditOperation& operation : operations) {
    KVASIR_TRY(check_operation(outline, operation));
    // Of the cells that are held.
    EditOperation held = operation;
    held.first = std::max(operation.first, from);
    held.count = operation.first + operation.count - std::min(held.first, operation.first + operation.count);
    held.first -= from;
    if (operation.kind == Kind::kRemove) from = carried(from, operation.first, operation.count);
    if (!positions.empty()) KVASIR_TRY(move_positions(positions, held));
    outline_operation(outline, operation);
  }
  // What moved and moved back, or was divided where it already was, has not changed.
  const bool kept_all = outline.length == table.length && all_held && !positions.empty();
  return kept_all && positions == before ? unchanged : outline;
}

// What the promise of an edited conversation may need beyond what it needs now: an edit takes length away,
// and with it the passing of cells that stay. Which of them others hold by the commit does not matter then.
Need PageStore::promise_grows(const Table& table, std::span<const EditOperation> operations) const {
  Need more{};
  if (only_full_ || table.promised <= spec_.pass_tokens) return more;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (kind(group) != GroupKind::kWindow) continue;
    const std::uint64_t now = passed_by(group, table.cells[group], table.promised);
    PageTable all = table.cells[group];
    PageTable passed = all.part(all.start(), now, all.start());
    std::vector<Run> removed;
    for (const EditOperation& operation : operations) {
      if (operation.kind != Kind::kRemove) continue;
      all.remove(operation.first, operation.count, removed);
      passed.remove(operation.first, operation.count, removed);
    }
    const std::uint64_t then = std::min(passed_by(group, all, table.promised), all.length());
    const std::uint64_t passed_then = std::max(then, all.start()) - all.start();
    more[group] = passed.cells() - std::min(passed.cells(), passed_then);
  }
  return more;
}

void PageStore::plan_operation(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                               std::uint64_t& pages) {
  if (changes_nothing(operation)) return;
  PageTable& cells = ticket.cells_[group];
  switch (operation.kind) {
    case Kind::kRemove:
      return cells.remove(operation.first, operation.count, ticket.removed_[group]);
    case Kind::kShift:
      return cells.shift(operation.first, operation.count, operation.amount);
    case Kind::kDivide:
      return plan_divide(ticket, group, operation, pages);
  }
}

// Rewrites the cells of the range that are held into new ones at the divided positions, whose storage
// position is the logical one.
void PageStore::plan_divide(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                            std::uint64_t& pages) {
  std::vector<Run> rewritten;
  Run before{};
  const std::uint64_t first = std::max(operation.first, ticket.cells_[group].start());
  for (std::uint64_t ordinal = first; ordinal < operation.first + operation.count;) {
    const Run old = ticket.cells_[group].at(ordinal);
    std::vector<Run>& taken = ticket.taken_[group];
    // Places first, so that a failed allocation takes no cell that nobody knows of.
    make_place(rewritten);
    make_place(taken);
    make_place(ticket.jobs_);
    std::vector<std::int64_t> turns;
    turns.reserve(groups_[group].page_cells());
    const std::uint64_t left = std::min(old.end(), operation.first + operation.count) - ordinal;
    const Run run = take_some(group, rewritten.empty() ? nullptr : &before, 0, left, pages);
    const CellAt from{old.page, old.cell + static_cast<std::uint32_t>(ordinal - old.ordinal)};
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto stored = static_cast<std::int64_t>(groups_[group].position(from.page, from.cell + i));
      const std::int64_t position = (stored + old.shift) / operation.amount;
      groups_[group].set_position({run.page, run.cell + i}, static_cast<std::uint64_t>(position));
      turns.push_back(position - stored);
    }
    rewritten.push_back(run);
    taken.push_back(run);
    ticket.jobs_.push_back({{group, from, {run.page, run.cell}, run.count}, std::move(turns)});
    before = run;
    ordinal += run.count;
  }
  ticket.cells_[group].replace(first, rewritten, ticket.removed_[group]);
}

}  // namespace kvasir::pages
