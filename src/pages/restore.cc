// From a layout back to conversations: which cells are wanted, their places, and what commit() installs.

#include "pages/restore.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {

// What of a layout a store takes back.
struct PageStore::Wanted {
  struct Interval {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };
  std::vector<std::vector<Interval>> cells;             // [group]: numbers, ascending and apart
  std::vector<std::vector<std::uint32_t>> checkpoints;  // [conversation]: those that it gets
  std::vector<bool> kept;                               // [checkpoint]: whether somebody gets it
  Need need{};
};

RestoreTicket::RestoreTicket(PageStore& store) noexcept : store_(&store) {
  ++store.open_tickets_;
}

RestoreTicket::RestoreTicket(RestoreTicket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      places_(std::move(other.places_)),
      returning_(std::move(other.returning_)),
      prepared_(std::move(other.prepared_)) {}

RestoreTicket::~RestoreTicket() {
  if (store_ == nullptr) return;
  for (const CheckpointId id : prepared_) store_->checkpoints_.remove(id);
  close();
}

// The ticket's own hold on its cells goes; what nobody has taken over is free again.
void RestoreTicket::close() noexcept {
  for (std::size_t group = 0; group < places_.size(); ++group)
    store_->release(group, places_[group], Holder::kFirm);
  for (const Returning& one : returning_) store_->entry(one.table).busy = false;
  --store_->open_tickets_;
  store_ = nullptr;
}

void RestoreTicket::commit() noexcept {
  PageStore& store = *store_;
  for (const CheckpointId id : prepared_) {
    Checkpoint& checkpoint = store.checkpoints_.at(id);
    for (std::size_t group = 0; group < store.group_count(); ++group)
      store.hold(group, checkpoint.cells[group].runs(), Holder::kSoft);
    checkpoint.used = store.index_.tick();
  }
  std::uint64_t encoders = 0;
  for (Returning& one : returning_) {
    PageStore::Table& table = store.entry(one.table);
    table.cells.swap(one.cells);
    table.checkpoints.swap(one.checkpoints);
    table.floors = one.floors;
    table.length = one.length;
    table.behind = one.behind;
    // Where the last edit begins is not told.
    table.first_edited = one.clean < one.length ? one.clean : PageStore::kAllClean;
    table.last_edited = one.clean < one.length ? one.length - 1 : 0;
    table.first_dirty = one.foreign && one.length > 0 ? 0 : table.first_edited;
    store.forget_edits_behind(table);
    table.remembered = 0;
    table.encoded = one.encoded == 0 ? 0 : store.encodes_ + one.encoded;
    encoders = std::max(encoders, one.encoded);
    for (std::size_t group = 0; group < store.group_count(); ++group)
      store.hold(group, table.cells[group].runs(), Holder::kFirm);
    for (const CheckpointId id : table.checkpoints) store.own_checkpoint(id);
  }
  store.encodes_ += encoders;
  prepared_.clear();
  close();
}

Status PageStore::check_targets(const Layout& layout, std::span<const TableId> into) const {
  if (into.size() != layout.conversations.size()) {
    return fail(Outcome::kInvalidArgument, std::to_string(layout.conversations.size()) +
                                               " conversations cannot come back into " +
                                               std::to_string(into.size()) + " tables");
  }
  std::vector<TableId> sorted(into.begin(), into.end());
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    return fail(Outcome::kInvalidArgument, "two conversations cannot come back into one table");
  for (const TableId id : into) {
    const auto index = static_cast<std::size_t>(id);
    if (index >= tables_.size() || !tables_[index].open)
      return fail(Outcome::kInvalidArgument, "a conversation cannot come back into a table that is not open");
    KVASIR_TRY(check_idle(id));
    const Table& table = tables_[index];
    const bool empty = table.length + table.behind + table.promised == 0 && table.checkpoints.empty() &&
                       std::ranges::all_of(table.cells, [](const PageTable& cells) { return cells.empty(); });
    if (!empty)
      return fail(Outcome::kWrongState,
                  "a conversation comes back into a table that holds nothing, not into this");
  }
  return {};
}

// The cells that are wanted where the first `without` checkpoints of the layout are left out.
PageStore::Wanted PageStore::wanted_of(const Layout& layout, std::size_t without) const {
  Wanted wanted;
  wanted.kept.resize(layout.checkpoints.size());
  for (const ConversationLayout& conversation : layout.conversations) {
    std::vector<std::uint32_t>& mine = wanted.checkpoints.emplace_back(conversation.checkpoints);
    std::erase_if(mine, [&](std::uint32_t index) { return index < without; });
    if (mine.size() > spec_.checkpoints_max)
      mine.erase(mine.begin(), mine.end() - static_cast<std::ptrdiff_t>(spec_.checkpoints_max));
    for (const std::uint32_t index : mine) wanted.kept[index] = true;
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<Wanted::Interval> named;
    const auto name = [&](std::span<const CellPiece> pieces) {
      for (const CellPiece& piece : pieces) named.push_back({piece.first, piece.first + piece.count});
    };
    for (const ConversationLayout& conversation : layout.conversations) name(conversation.cells[group]);
    for (std::size_t i = 0; i < layout.checkpoints.size(); ++i) {
      if (wanted.kept[i]) name(layout.checkpoints[i].cells[group]);
    }
    std::ranges::sort(named, {}, &Wanted::Interval::first);
    std::vector<Wanted::Interval>& apart = wanted.cells.emplace_back();
    for (const Wanted::Interval& one : named) {
      if (!apart.empty() && one.first <= apart.back().end) {
        apart.back().end = std::max(apart.back().end, one.end);
      } else {
        apart.push_back(one);
      }
    }
    for (const Wanted::Interval& one : apart) wanted.need[group] += one.end - one.first;
  }
  return wanted;
}

// As many checkpoints as there is room for.
Result<PageStore::Wanted> PageStore::admit_restore(const Layout& layout) const {
  const Need promised = promised_need();
  Wanted wanted = wanted_of(layout, 0);
  if (fit(promised, wanted.need)) return wanted;
  std::size_t too_few = 0;
  std::size_t enough = layout.checkpoints.size();
  wanted = wanted_of(layout, enough);
  KVASIR_TRY(admit(wanted.need, promised));
  while (too_few + 1 < enough) {
    const std::size_t middle = (too_few + enough) / 2;
    Wanted some = wanted_of(layout, middle);
    if (fit(promised, some.need)) {
      enough = middle;
      wanted = std::move(some);
    } else {
      too_few = middle;
    }
  }
  return wanted;
}

// Takes the wanted cells of a group, with their storage positions.
void PageStore::take_wanted(std::size_t group, const Layout& layout, const Wanted& wanted,
                            std::vector<Run>& places, std::uint64_t& pages) {
  const std::vector<CellStretch>& stretches = layout.cells[group];
  std::size_t at = 0;
  std::uint64_t first_of_stretch = 0;
  for (const Wanted::Interval& interval : wanted.cells[group]) {
    for (std::uint64_t number = interval.first; number < interval.end;) {
      while (first_of_stretch + stretches[at].count <= number) first_of_stretch += stretches[at++].count;
      const std::uint64_t end = std::min(interval.end, first_of_stretch + stretches[at].count);
      // Its place in the list first: a failed allocation takes nothing.
      if (places.size() == places.capacity()) places.reserve(std::max<std::size_t>(8, places.size() * 2));
      const Run* const before = places.empty() ? nullptr : &places.back();
      const std::uint64_t position = stretches[at].position + (number - first_of_stretch);
      Run run = take_some(group, before, position, end - number, pages);
      run.ordinal = number;
      places.push_back(run);
      number += run.count;
    }
  }
}

namespace {

// Appends the places of pieces, which are all there.
void append_places(std::span<const CellPiece> pieces, std::span<const Run> places, PageTable& cells) {
  for (const CellPiece& piece : pieces) {
    auto place = std::ranges::upper_bound(places, piece.first, {}, &Run::ordinal) - 1;
    for (std::uint64_t number = piece.first; number < piece.first + piece.count; ++place) {
      const std::uint64_t end = std::min(piece.first + piece.count, place->end());
      Run run = *place;
      run.cell += static_cast<std::uint32_t>(number - place->ordinal);
      run.count = static_cast<std::uint32_t>(end - number);
      run.shift = piece.shift;
      cells.append(run);
      number = end;
    }
  }
}

std::uint64_t count_of(std::span<const CellPiece> pieces) {
  std::uint64_t count = 0;
  for (const CellPiece& piece : pieces) count += piece.count;
  return count;
}

}  // namespace

// All that commit() installs.
void PageStore::prepare_return(RestoreTicket& ticket, const Layout& layout, const Wanted& wanted,
                               std::span<const TableId> into) {
  const auto tables_of = [&](std::span<const std::vector<CellPiece>> pieces, std::uint64_t length) {
    std::vector<PageTable> tables(groups_.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) == GroupKind::kWindow) tables[group].start_at(length - count_of(pieces[group]));
      append_places(pieces[group], ticket.places_[group], tables[group]);
    }
    return tables;
  };
  std::vector<CheckpointId> ids(layout.checkpoints.size());
  ticket.prepared_.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!wanted.kept[i]) continue;
    const CheckpointLayout& one = layout.checkpoints[i];
    ids[i] = checkpoints_.add(
        {.ordinal = one.ordinal, .cells = tables_of(one.cells, one.ordinal), .floors = one.floors});
    ticket.prepared_.push_back(ids[i]);
  }
  ticket.returning_.reserve(into.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    const ConversationLayout& one = layout.conversations[i];
    std::vector<CheckpointId> checkpoints;
    for (const std::uint32_t index : wanted.checkpoints[i]) checkpoints.push_back(ids[index]);
    ticket.returning_.push_back({.table = into[i],
                                 .length = one.length,
                                 .behind = one.behind,
                                 .clean = one.clean,
                                 .foreign = one.foreign,
                                 .encoded = one.encoded,
                                 .floors = one.floors,
                                 .cells = tables_of(one.cells, one.length),
                                 .checkpoints = std::move(checkpoints)});
    entry(into[i]).busy = true;
  }
}

Result<RestoreTicket> PageStore::begin_restore(const Layout& layout, std::span<const TableId> into) {
  return base::within_memory([&]() -> Result<RestoreTicket> {
    KVASIR_TRY(check_layout(layout, spec_));
    KVASIR_TRY(check_targets(layout, into));
    KVASIR_ASSIGN(const Wanted wanted, admit_restore(layout));
    Demand demand{.cells = wanted.need, .total = promised_need()};
    for (std::size_t group = 0; group < groups_.size(); ++group) demand.total[group] += wanted.need[group];
    RestoreTicket ticket(*this);  // its end gives back what it has taken where memory ends
    ticket.places_.resize(groups_.size());
    make_room(demand);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      std::uint64_t pages = fresh_pages(group, demand);
      take_wanted(group, layout, wanted, ticket.places_[group], pages);
    }
    prepare_return(ticket, layout, wanted, into);
    return ticket;
  });
}

}  // namespace kvasir::pages
