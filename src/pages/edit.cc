// Edits of one conversation: planned on copies of its tables, installed at once.

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

using Kind = EditOperation::Kind;

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

EditTicket::EditTicket(PageStore& store, TableId table) noexcept : store_(&store), table_(table) {
  ++store.open_tickets_;
}

EditTicket::EditTicket(EditTicket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      table_(other.table_),
      cells_(std::move(other.cells_)),
      removed_(std::move(other.removed_)),
      taken_(std::move(other.taken_)),
      jobs_(std::move(other.jobs_)),
      first_changed_(other.first_changed_),
      first_dirty_(other.first_dirty_) {}

EditTicket::~EditTicket() {
  if (store_ == nullptr) return;
  for (std::size_t group = 0; group < taken_.size(); ++group)
    store_->release(group, taken_[group], Holder::kFirm);
  --store_->open_tickets_;
}

void EditTicket::commit() noexcept {
  PageStore& store = *std::exchange(store_, nullptr);
  --store.open_tickets_;
  PageStore::Table& table = store.entry(table_);
  table.cells.swap(cells_);
  for (std::size_t group = 0; group < removed_.size(); ++group)
    store.release(group, removed_[group], Holder::kFirm);
  table.length = table.cells.front().length();
  table.first_dirty = std::min(table.first_dirty, first_dirty_);
  // What follows a clean beginning is clean again.
  if (table.first_dirty >= table.length) table.first_dirty = PageStore::kAllClean;
  table.remembered = std::min({table.remembered, table.length, first_changed_});
}

Result<EditTicket> PageStore::begin_edit(TableId table, std::span<const EditOperation> operations) {
  return base::within_memory([&]() -> Result<EditTicket> {
    KVASIR_ASSIGN(const std::uint64_t rewritten, check_edit(table, operations));
    KVASIR_TRY(admit(rewritten, promised_));
    EditTicket ticket(*this, table);  // its end gives back what it has taken where memory ends
    ticket.cells_ = entry(table).cells;
    ticket.removed_.resize(groups_.size());
    ticket.taken_.resize(groups_.size());
    ticket.note_changes(operations);
    const Demand demand{.cells = rewritten, .total = promised_ + rewritten};
    drop_compaction_of(table);
    make_room(demand);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      std::uint64_t pages = fresh_pages(group, demand);
      for (const EditOperation& operation : operations) plan_operation(ticket, group, operation, pages);
    }
    return ticket;
  });
}

// What the edit touches first. What stays in front of a removed end is as clean as it was; all else makes
// what it touches and what follows dirty.
void EditTicket::note_changes(std::span<const EditOperation> operations) noexcept {
  std::uint64_t length = cells_.front().length();
  for (const EditOperation& operation : operations) {
    if (operation.count == 0) continue;
    first_changed_ = std::min(first_changed_, operation.first);
    const bool removes = operation.kind == Kind::kRemove;
    const bool cuts_the_end = removes && operation.first + operation.count == length;
    if (!cuts_the_end) first_dirty_ = std::min(first_dirty_, operation.first);
    if (removes) length -= operation.count;
  }
}

// The logical positions of a conversation's cells.
std::vector<std::int64_t> PageStore::positions_of(TableId table) const {
  std::vector<std::int64_t> positions;
  positions.reserve(length(table));
  for (const Run& run : runs(table, 0)) {
    for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
      positions.push_back(static_cast<std::int64_t>(groups_.front().position(run.page, cell)) + run.shift);
    }
  }
  return positions;
}

// Tries the operations on the positions alone; answers how many cells they rewrite in each group.
Result<std::uint64_t> PageStore::check_edit(TableId table, std::span<const EditOperation> operations) const {
  std::uint64_t rewritten = 0;
  std::uint64_t left = length(table);
  std::vector<std::int64_t> positions;
  if (std::ranges::any_of(operations, [](const auto& one) { return one.kind != Kind::kRemove; })) {
    positions = positions_of(table);
  }
  for (const EditOperation& operation : operations) {
    if (operation.first > left || operation.count > left - operation.first) {
      return fail(Outcome::kInvalidArgument,
                  "an edit of " + std::to_string(operation.count) + " tokens from " +
                      std::to_string(operation.first) + " on, in a conversation of " + std::to_string(left),
                  {.wanted = operation.first, .limit = left});
    }
    if (operation.kind == Kind::kDivide && operation.amount < 1) {
      return fail(Outcome::kInvalidArgument,
                  "positions cannot be divided by " + std::to_string(operation.amount));
    }
    if (operation.kind == Kind::kDivide) rewritten += operation.count;
    if (operation.kind == Kind::kRemove) left -= operation.count;
    if (!positions.empty()) KVASIR_TRY(move_positions(positions, operation));
  }
  return rewritten;
}

void PageStore::plan_operation(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                               std::uint64_t& pages) {
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

// Rewrites the cells of the range into new ones at the divided positions, whose storage position is the
// logical one.
void PageStore::plan_divide(EditTicket& ticket, std::uint32_t group, const EditOperation& operation,
                            std::uint64_t& pages) {
  std::vector<Run> rewritten;
  Run before{};
  for (std::uint64_t ordinal = operation.first; ordinal < operation.first + operation.count;) {
    const Run old = ticket.cells_[group].at(ordinal);
    std::vector<Run>& taken = ticket.taken_[group];
    // Places first, so that a failed allocation takes no cell that nobody knows of.
    make_place(rewritten);
    make_place(taken);
    make_place(ticket.jobs_);
    std::vector<std::int64_t> turns;
    turns.reserve(spec_.page_cells);
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
  ticket.cells_[group].replace(operation.first, rewritten, ticket.removed_[group]);
}

}  // namespace kvasir::pages
