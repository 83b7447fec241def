// An encoder's output: written once, read from then on, shared by forks.

#include "pages/encode.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {

EncodeTicket::EncodeTicket(PageStore& store, TableId table) noexcept : store_(&store), table_(table) {
  ++store.open_tickets_;
  store.entry(table).busy = true;
}

EncodeTicket::EncodeTicket(EncodeTicket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)), table_(other.table_), runs_(std::move(other.runs_)) {}

EncodeTicket::~EncodeTicket() {
  if (store_ == nullptr) return;
  for (std::size_t group = 0; group < runs_.size(); ++group)
    store_->release(group, runs_[group], Holder::kFirm);
  close();
}

void EncodeTicket::close() noexcept {
  store_->entry(table_).busy = false;
  --store_->open_tickets_;
  store_ = nullptr;
}

void EncodeTicket::commit() noexcept {
  PageStore::Table& table = store_->entry(table_);
  for (std::size_t group = 0; group < runs_.size(); ++group) {
    if (store_->kind(group) != GroupKind::kCross) continue;
    PageTable& cells = table.cells[group];
    store_->release(group, cells.runs(), Holder::kFirm);
    cells.clear();
    for (const Run& run : runs_[group]) cells.append(run);
  }
  table.encoded = ++store_->encodes_;
  ++store_->handovers_;
  close();
}

Result<EncodeTicket> PageStore::begin_encode(TableId id, std::uint64_t count) {
  return base::within_memory([&]() -> Result<EncodeTicket> {
    if (!has(GroupKind::kCross))
      return fail(Outcome::kUnsupported, "this model has no encoder whose output could be kept");
    if (count == 0) return fail(Outcome::kInvalidArgument, "an encoder's output of no cell");
    KVASIR_TRY(check_idle(id));
    Table& table = entry(id);
    if (table.length + table.behind > 0) {
      return fail(Outcome::kWrongState,
                  "the " + std::to_string(table.length + table.behind) +
                      " tokens were computed from another encoder's output; rewind to 0 first",
                  {.available = table.length + table.behind});
    }
    Demand demand;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (kind(group) == GroupKind::kCross)
        demand.cells[group] = std::min<std::uint64_t>(count, kPositionMax + 1);
    }
    const Need promised = promised_need();
    KVASIR_TRY(admit(demand.cells, promised));
    demand.total = promised;
    for (std::size_t group = 0; group < groups_.size(); ++group) demand.total[group] += demand.cells[group];
    EncodeTicket ticket(*this, id);  // its end gives back what it has taken where memory ends
    ticket.runs_.resize(groups_.size());
    make_room(demand);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      std::uint64_t pages = fresh_pages(group, demand);
      if (kind(group) == GroupKind::kCross) take_all(group, count, ticket.runs_[group], table, pages);
    }
    return ticket;
  });
}

// Takes cells for `count` tokens at positions from 0 on.
void PageStore::take_all(std::size_t group, std::uint64_t count, std::vector<Run>& taken, Table& table,
                         std::uint64_t& pages) {
  for (std::uint64_t done = 0; done < count;) {
    // Places here and, at commit, in the table come first: a failed allocation takes nothing.
    if (taken.size() == taken.capacity()) taken.reserve(std::max<std::size_t>(8, taken.size() * 2));
    table.cells[group].reserve(taken.size() + 1);
    Run run = take_some(group, taken.empty() ? nullptr : &taken.back(), done, count - done, pages);
    run.ordinal = done;
    taken.push_back(run);
    done += run.count;
  }
}

}  // namespace kvasir::pages
