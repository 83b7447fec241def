#include "pages/tier_return.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "pages/page_store.h"

namespace kvasir::pages {

ReturnTicket::ReturnTicket(PageStore& store, TableId table, std::uint64_t promised_before) noexcept
    : store_(&store), table_(table), promised_before_(promised_before) {
  ++store.open_tickets_;
  store.entry(table).busy = true;
  store.entry(table).returns = true;
}

ReturnTicket::ReturnTicket(ReturnTicket&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      table_(other.table_),
      promised_before_(other.promised_before_),
      jobs_(std::move(other.jobs_)) {}

// The promise was the smaller one before, so it fits.
ReturnTicket::~ReturnTicket() {
  if (store_ == nullptr) return;
  for (const FetchCells& job : jobs_) {
    store_->release(job.group, job.to.page, {job.to.cell, job.count}, Holder::kFirm);
    store_->tier_runs_.end_return(job.run, {job.first, job.count});
  }
  PageStore::Table& table = store_->entry(table_);
  const std::uint64_t before = std::min(table.promised, promised_before_);
  store_->promised_ -= table.promised - before;
  table.promised = before;
  close();
}

void ReturnTicket::close() noexcept {
  store_->entry(table_).busy = false;
  store_->entry(table_).returns = false;
  --store_->open_tickets_;
  store_ = nullptr;
}

// The holders of a job's cells become those of the cells in the pool. Nobody holds what another return has
// brought back meanwhile, or what was given up.
void ReturnTicket::install(const FetchCells& job) noexcept {
  for (std::uint32_t i = 0; i < job.count; ++i) {
    const TierRuns::Cell& cell = store_->tier_runs_.cell(job.run, job.first + i);
    const CellAt to{job.to.page, job.to.cell + i};
    if (cell.firm + cell.soft == 0) {
      store_->release(job.group, to.page, {to.cell, 1}, Holder::kFirm);
    } else {
      store_->groups_[job.group].set_holders(to, cell.firm, cell.soft);
    }
  }
  store_->tier_runs_.release_all(job.run, {job.first, job.count});
  store_->tier_runs_.end_return(job.run, {job.first, job.count});
}

Status ReturnTicket::commit() {
  return base::within_memory([&]() -> Status {
    PageStore& store = *store_;
    std::vector<PageStore::Patch> patches;
    for (std::uint32_t group = 0; group < store.group_count(); ++group) {
      std::vector<CopyCells> moves;
      for (const FetchCells& job : jobs_) {
        if (job.group == group) moves.push_back({group, {tier_page(job.run), job.first}, job.to, job.count});
      }
      if (moves.empty()) continue;
      for (PageStore::Patch& patch : store.patches_of(group, Moves(moves)))
        patches.push_back(std::move(patch));
    }
    const bool edited = std::ranges::any_of(
        patches, [](const PageStore::Patch& patch) { return patch.table != nullptr && patch.table->edited; });
    if (edited) return fail(Outcome::kBusy, "an open edit is for a conversation that shares these cells");
    // Nothing fails from here on.
    store.install(patches);
    for (const FetchCells& job : jobs_) install(job);
    jobs_.clear();
    close();
    return {};
  });
}

Result<ReturnTicket> PageStore::begin_return(TableId id, std::uint64_t count) {
  return base::within_memory([&]() -> Result<ReturnTicket> {
    KVASIR_TRY(check_idle(id));
    Table& table = entry(id);
    // No number of tokens overflows: what is more than there are positions never fits.
    const std::uint64_t wanted =
        table.behind + std::min<std::uint64_t>(count, static_cast<std::uint64_t>(kPositionMax) + 2);
    const std::uint64_t promised = std::max(table.promised, wanted);
    const Need beside = promised_but(table);
    Demand demand{.cells = {}, .total = promise_need(table, promised, true)};
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      demand.cells[group] = table.cells[group].cells_in_tiers();
      demand.total[group] += demand.cells[group];
    }
    KVASIR_TRY(admit(demand.total, beside));
    for (std::size_t group = 0; group < groups_.size(); ++group) demand.total[group] += beside[group];
    ReturnTicket ticket(*this, id, table.promised);  // its end gives back what it has taken where memory ends
    make_room(demand);
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      std::uint64_t pages = fresh_pages(group, demand);
      Run before{};
      for (const Run& run : table.cells[group].runs()) {
        if (in_tier(run.page)) take_places(ticket, group, run, before, pages);
      }
    }
    promised_ += promised - table.promised;
    table.promised = promised;
    return ticket;
  });
}

// Takes cells for those of a span that lies in a tier, behind `before` if that is possible.
void PageStore::take_places(ReturnTicket& ticket, std::uint32_t group, const Run& span, Run& before,
                            std::uint64_t& pages) {
  for (std::uint32_t done = 0; done < span.count;) {
    // A place first: a failed allocation takes no cell that nobody knows of.
    if (ticket.jobs_.size() == ticket.jobs_.capacity())
      ticket.jobs_.reserve(std::max<std::size_t>(8, ticket.jobs_.size() * 2));
    const Run taken = take_some(group, before.count > 0 ? &before : nullptr, 0, span.count - done, pages);
    const std::uint32_t first = span.cell + done;
    for (std::uint32_t i = 0; i < taken.count; ++i) {
      groups_[group].set_position({taken.page, taken.cell + i},
                                  tier_runs_.cell(tier_run(span.page), first + i).position);
    }
    tier_runs_.begin_return(tier_run(span.page), {first, taken.count});
    ticket.jobs_.push_back({group, tier_run(span.page), first, {taken.page, taken.cell}, taken.count});
    before = taken;
    done += taken.count;
  }
}

}  // namespace kvasir::pages
