// Edits of one conversation: planned on copies of its tables, installed at once.

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/try.h"
#include "pages/page_store.h"

namespace kvasir::pages {
namespace {

using Kind = EditOperation::Kind;

// Room for one more element, found before a cell is taken.
template <class T>
void make_place(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(std::max<std::size_t>(8, list.size() * 2));
}

std::int64_t divided(std::int64_t position, std::int64_t divisor) {
  return position / divisor;
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
  std::uint64_t rewritten = 0;
  for (const EditOperation& operation : operations) {
    if (operation.kind == Kind::kDivide) rewritten += std::min(operation.count, length(table));
  }
  KVASIR_TRY(admit(rewritten, promised_));
  try {
    EditTicket ticket(*this, table);
    ticket.cells_ = entry(table).cells;
    ticket.removed_.resize(groups_.size());
    ticket.taken_.resize(groups_.size());
    make_room(rewritten);
    for (const EditOperation& operation : operations) KVASIR_TRY(plan_operation(ticket, operation));
    return ticket;
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "no memory for an edit");
  }
}

Status PageStore::plan_operation(EditTicket& ticket, const EditOperation& operation) {
  const std::uint64_t length = ticket.cells_.front().length();
  if (operation.first > length || operation.count > length - operation.first) {
    return fail(Outcome::kInvalidArgument,
                "an edit of " + std::to_string(operation.count) + " tokens from " +
                    std::to_string(operation.first) + " on, in a conversation of " + std::to_string(length),
                {.wanted = operation.first, .limit = length});
  }
  if (operation.kind == Kind::kDivide && operation.amount < 1) {
    return fail(Outcome::kInvalidArgument,
                "positions cannot be divided by " + std::to_string(operation.amount));
  }
  KVASIR_TRY(check_positions(ticket, operation));
  if (operation.count == 0) return {};
  ticket.first_changed_ = std::min(ticket.first_changed_, operation.first);
  const bool cuts_the_end = operation.kind == Kind::kRemove && operation.first + operation.count == length;
  // What stays behind a removed end is as clean as it was; all else makes what it touches and what follows
  // dirty.
  if (!cuts_the_end) ticket.first_dirty_ = std::min(ticket.first_dirty_, operation.first);
  switch (operation.kind) {
    case Kind::kRemove:
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        ticket.cells_[group].remove(operation.first, operation.count, ticket.removed_[group]);
      }
      break;
    case Kind::kShift:
      for (PageTable& cells : ticket.cells_) cells.shift(operation.first, operation.count, operation.amount);
      break;
    case Kind::kDivide:
      plan_divide(ticket, operation);
      break;
  }
  return {};
}

// A shift must leave every position in [0, kPositionMax].
Status PageStore::check_positions(const EditTicket& ticket, const EditOperation& operation) const {
  if (operation.kind != Kind::kShift || operation.count == 0) return {};
  std::int64_t least = kPositionMax;
  std::int64_t most = 0;
  for (const Run& run : ticket.cells_.front().runs()) {
    const std::uint64_t first = std::max(run.ordinal, operation.first);
    const std::uint64_t last = std::min(run.end(), operation.first + operation.count);
    for (std::uint64_t ordinal = first; ordinal < last; ++ordinal) {
      const auto cell = run.cell + static_cast<std::uint32_t>(ordinal - run.ordinal);
      const std::int64_t position =
          static_cast<std::int64_t>(groups_.front().position(run.page, cell)) + run.shift;
      least = std::min(least, position);
      most = std::max(most, position);
    }
  }
  if (operation.amount < -least || operation.amount > kPositionMax - most) {
    return fail(Outcome::kInvalidArgument,
                "adding " + std::to_string(operation.amount) + " to positions " + std::to_string(least) +
                    " to " + std::to_string(most) + " leaves the range 0 to " + std::to_string(kPositionMax),
                {.limit = static_cast<std::uint64_t>(kPositionMax)});
  }
  return {};
}

// Rewrites the cells of the range into new ones at the divided positions, whose storage position is the
// logical one.
void PageStore::plan_divide(EditTicket& ticket, const EditOperation& operation) {
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    std::uint64_t pages = fresh_pages(group, operation.count);
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
        const std::int64_t position = divided(stored + old.shift, operation.amount);
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
}

}  // namespace kvasir::pages
