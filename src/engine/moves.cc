// Cells between the pool and the tiers: who is spilled, who comes back, a part at a time.
//
// One conversation returns at a time; its cells and all that it will need are reserved first. Room is made
// for one at a time as well: for the first in line whom the cells of idle conversations, least recently used
// first, would let in. Where nobody runs, one who comes later in line is paused for the first: it counts as
// idle until it is let in again.

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"

namespace kvasir::engine {
namespace {

// Jobs whose bytes are read ahead of the one at hand: fewer than there are blocks of staging memory.
constexpr std::size_t kAskedAhead = 6;

}  // namespace

Residence Engine::residence(const Conversation& conversation) const noexcept {
  if (returning_ && peek(returning_->id) == &conversation) return Residence::kReturning;
  if (store_->cells_in_tiers(conversation.table) > 0) return Residence::kTier;
  // What it is behind by has no cells, but it is not dropped.
  if (store_->behind(conversation.table) > 0) return Residence::kPool;
  return conversation.dropped.empty() && conversation.again == 0 ? Residence::kPool : Residence::kDropped;
}

void Engine::when_disk_moved(std::function<void()> listener) {
  if (tiers_ != nullptr) tiers_->when_moved(std::move(listener));
}

// Bytes of tier runs that nobody holds any more.
void Engine::drop_gone_blocks() noexcept {
  if (tiers_ == nullptr) return;
  for (const pages::TierBlock block : store_->tier_runs().gone()) tiers_->drop(block);
  store_->forget_gone_blocks();
}

// Whether a conversation's cells may make room for others. Those that room was reserved behind may not: it
// would have to be found again for them first.
bool Engine::idle(const Conversation& conversation) const noexcept {
  if (!conversation.open() || conversation.in_step || conversation.reads_source || stays(conversation))
    return false;
  return conversation.paused || (conversation.queue.empty() && conversation.drawer == nullptr);
}

// Whether its cells stay in the pool whatever others want.
bool Engine::stays(const Conversation& conversation) noexcept {
  return conversation.settings.pinned || conversation.reserved > 0;
}

// By the ids of their tables: the idle ones, and one more.
std::vector<std::uint8_t> Engine::idle_tables(const Conversation* more) const {
  std::vector<std::uint8_t> tables;
  for (const Conversation& conversation : conversations_) {
    if (!conversation.open()) continue;
    const auto table = static_cast<std::size_t>(conversation.table);
    if (tables.size() <= table) tables.resize(table + 1);
    tables[table] = &conversation == more || idle(conversation) ? 1 : 0;
  }
  return tables;
}

// Takes a run out of the pool: its bytes are safe before anybody is told.
Result<Moved> Engine::spill_run(const pages::CellRun& run, std::span<const std::uint8_t> idle) {
  const std::uint64_t bytes = cell_bytes(run.group) * run.count;
  KVASIR_ASSIGN(const bool room, tiers_->has_room(bytes));
  if (!room) return Moved::kWaits;
  const auto fill = [&](std::span<std::byte> out) {
    for (std::uint32_t part = 0; part < part_count(run.group); ++part) {
      const std::uint64_t some = part_bytes(run.group, part) * run.count;
      read_part({run.group, part, run.at, run.count}, out.first(some));
      out = out.subspan(some);
    }
  };
  KVASIR_ASSIGN(const tiers::Block block, tiers_->put(bytes, fill));
  if (const auto spilled = store_->spill(run, block, idle); !spilled) {
    tiers_->drop(block);
    return fail(spilled.error());
  }
  ++moves_.runs_spilled;
  moves_.bytes_spilled += bytes;
  bytes_moved_ += bytes;
  base::log(LogLevel::kDebug, [&] {
    return std::to_string(run.count) + " cells of group " + std::to_string(run.group) + " leave the pool, " +
           std::to_string(bytes) + " bytes";
  });
  return Moved::kSome;
}

// Neither in a step, nor with anything to do.
Status Engine::check_away(const Conversation& conversation) const {
  if (conversation.queue.empty() && conversation.drawer == nullptr) {
    return store_->behind(conversation.table) > 0 ? check_caught_up(conversation) : Status();
  }
  return fail(Outcome::kWrongState,
              conversation.drawer != nullptr
                  ? "the conversation generates; read it to its end, or cancel it"
                  : std::to_string(conversation.asked()) + " tokens are queued; wait for them, or cancel()",
              {.available = conversation.asked()});
}

Result<Moved> Engine::spill(ConversationId id) {
  return base::within_memory([&]() -> Result<Moved> {
    KVASIR_ASSIGN(const Conversation* const conversation, find_idle(id));
    if (tiers_ == nullptr) {
      return fail(Outcome::kUnsupported, "there is no tier to spill to; give the executor one",
                  {.limit = 0, .setting = "memory_tier_bytes"});
    }
    KVASIR_TRY(check_away(*conversation));
    stop_return(*conversation);
    give_reservation_back(conversations_[static_cast<std::size_t>(conversation - conversations_.data())]);
    const std::vector<std::uint8_t> tables = idle_tables(conversation);
    const auto run = store_->next_to_spill(conversation->table, tables);
    drop_gone_blocks();
    return run ? spill_run(*run, tables) : Moved::kNothing;
  });
}

// Reserves cells for what lies in tiers, and promises what is needed behind it.
Status Engine::begin_return(Conversation& conversation, std::uint64_t need) {
  KVASIR_ASSIGN(pages::ReturnTicket ticket, store_->begin_return(conversation.table, need));
  const auto index = static_cast<std::size_t>(&conversation - conversations_.data());
  returning_.emplace(id_of(conversation, index), std::move(ticket));
  return {};
}

Result<Moved> Engine::bring_back(ConversationId id, std::optional<std::uint64_t> reserved) {
  return base::within_memory([&]() -> Result<Moved> {
    KVASIR_ASSIGN(Conversation* const conversation, find_idle(id));
    if (returning_ && returning_->id != id) {
      if (Moved some = move(); some != Moved::kNothing) return some == Moved::kRoom ? Moved::kSome : some;
    }
    if (!returning_) {
      if (store_->cells_in_tiers(conversation->table) == 0) return Moved::kNothing;
      const std::uint64_t need =
          reserved ? need_to_reserve(*conversation, *reserved) : need_of(*conversation);
      if (const Status begun = begin_return(*conversation, need); !begun) {
        if (begun.error().code() != Outcome::kNoSpace) return fail(begun.error());
        KVASIR_ASSIGN(const Moved moved, spill_oldest(conversation));
        return moved == Moved::kNothing ? Result<Moved>(fail(begun.error())) : moved;
      }
    }
    Result<Moved> moved = return_some();
    if (!moved) drop_return();
    return moved;
  });
}

// Asks for the bytes of the jobs ahead; false where those of the next cannot be asked for yet.
bool Engine::ask_ahead(Returning& returning) {
  const std::span<const pages::FetchCells> jobs = returning.ticket.jobs();
  for (std::size_t i = returning.done; i < std::min(jobs.size(), returning.done + kAskedAhead); ++i) {
    const auto asked = tiers_->want(store_->tier_runs().block(jobs[i].run));
    if (!asked || !*asked) return i > returning.done;
  }
  return true;
}

void Engine::import_job(const pages::FetchCells& job, std::span<const std::byte> bytes) noexcept {
  const std::uint32_t cells = store_->tier_runs().cells(job.run);
  std::uint64_t before = 0;
  for (std::uint32_t part = 0; part < part_count(job.group); ++part) {
    const std::uint64_t cell = part_bytes(job.group, part);
    write_part({job.group, part, job.to, job.count},
               bytes.subspan(before + job.first * cell, job.count * cell));
    before += cells * cell;
  }
  const std::uint64_t moved = cell_bytes(job.group) * job.count;
  moves_.bytes_returned += moved;
  bytes_moved_ += moved;
}

// One job of the return that is open, or its end.
Result<Moved> Engine::return_some() {
  if (!returning_) return fail(Outcome::kInternal, "no conversation is coming back");
  Returning& returning = *returning_;
  const std::span<const pages::FetchCells> jobs = returning.ticket.jobs();
  if (returning.done < jobs.size()) {
    const pages::FetchCells& job = jobs[returning.done];
    if (!ask_ahead(returning)) return Moved::kWaits;
    KVASIR_ASSIGN(const tiers::BytesOfBlock bytes, tiers_->look(store_->tier_runs().block(job.run)));
    if (!bytes.there()) return Moved::kWaits;
    import_job(job, bytes.all());
    ++returning.done;
    // Its staging memory serves those that come.
    const bool more = returning.done < jobs.size();
    if (!more || jobs[returning.done].run != job.run) tiers_->unwant(store_->tier_runs().block(job.run));
    if (more) return Moved::kSome;
  }
  KVASIR_TRY(returning.ticket.commit());
  finish_return();
  return Moved::kRoom;
}

// Its cells are back, and what it needs is promised.
void Engine::finish_return() noexcept {
  if (!returning_) return;
  const Conversation* const found = peek(returning_->id);
  returning_.reset();
  drop_gone_blocks();
  if (found == nullptr) return;
  Conversation& conversation = conversations_[static_cast<std::size_t>(found - conversations_.data())];
  ++moves_.conversations_returned;
  base::log(LogLevel::kDebug, [] { return std::string("a conversation is back in the pool"); });
  conversation.used = ++uses_;
  conversation.paused = false;
  conversation.refused = false;
  conversation.passed_over = 0;
  conversation.shortage.reset();
  conversation.admitted = !conversation.queue.empty();
  renew_promise(conversation);  // more may have been queued meanwhile
}

void Engine::drop_return() noexcept {
  if (!returning_) return;
  for (const pages::FetchCells& job : returning_->ticket.jobs())
    tiers_->unwant(store_->tier_runs().block(job.run));
  returning_.reset();
  drop_gone_blocks();
}

// A conversation that is cancelled, closed or edited stays where it was.
void Engine::stop_return(const Conversation& conversation) noexcept {
  if (returning_ && peek(returning_->id) == &conversation) drop_return();
}

void Engine::fail_return(const Error& error) noexcept {
  if (!returning_) return;
  const Conversation* const found = peek(returning_->id);
  drop_return();
  if (found == nullptr) return;
  Conversation& conversation = conversations_[static_cast<std::size_t>(found - conversations_.data())];
  ++moves_.returns_failed;
  base::log(LogLevel::kWarn, [&] { return "a conversation cannot return to the pool: " + error.message(); });
  conversation.shortage.reset();
  end_generation(conversation, &error);
  conversation.return_error = out_of_memory_;
  const auto told = base::within_memory([&]() -> Status {
    conversation.return_error = std::make_shared<const Error>(error);
    return {};
  });
  static_cast<void>(told);  // for want of memory it hears of that
}

bool Engine::moves_pending() const noexcept {
  return returning_.has_value() || room_for_.has_value();
}

Moved Engine::move() noexcept {
  drop_gone_blocks();
  if (returning_) {
    const auto moved = base::within_memory([&] { return return_some(); });
    if (moved) return *moved;
    fail_return(moved.error());
    return Moved::kRoom;
  }
  if (!room_for_) return Moved::kNothing;
  const auto moved = base::within_memory([&] { return make_room_for_one(); });
  if (moved) return *moved;
  // The tiers take no more: whoever waits goes on waiting, and hears why.
  moves_are_vain_ = true;
  const Conversation* const found = peek(*room_for_);
  room_for_.reset();
  const auto told = base::within_memory([&]() -> Status {
    vain_because_ = std::make_shared<const Error>(moved.error());
    if (found == nullptr || !found->shortage) return {};
    Conversation& target = conversations_[static_cast<std::size_t>(found - conversations_.data())];
    target.shortage = std::make_shared<const Error>(shortage_with_reason(*target.shortage));
    return {};
  });
  static_cast<void>(told);  // it keeps its shorter sentence
  return Moved::kNothing;
}

// A shortage that the tiers did not relieve, with what they said.
Error Engine::shortage_with_reason(const Error& shortage) const {
  if (vain_because_ == nullptr) return shortage;
  return {shortage.code(),
          shortage.message() + "; no idle conversation can make room: " + vain_because_->message(),
          shortage.numbers()};
}

// Spills a run of the least recently used idle conversation, but not of `but`; kNothing where there is none.
Result<Moved> Engine::spill_oldest(const Conversation* but) {
  std::vector<std::uint8_t> tables = idle_tables();
  tables[static_cast<std::size_t>(but->table)] = 0;
  const Conversation* oldest = nullptr;
  std::optional<pages::CellRun> run;
  for (const Conversation& conversation : conversations_) {
    if (&conversation == but || !idle(conversation)) continue;
    if (oldest != nullptr && conversation.used >= oldest->used) continue;
    const auto its_run = store_->next_to_spill(conversation.table, tables);
    if (!its_run) continue;
    oldest = &conversation;
    run = its_run;
  }
  return run ? spill_run(*run, tables) : Moved::kNothing;
}

// Makes room for the one that was chosen, and looks whether that was enough.
Result<Moved> Engine::make_room_for_one() {
  if (!room_for_) return fail(Outcome::kInternal, "no conversation was chosen to come back");
  const Conversation* const found = peek(*room_for_);
  if (found == nullptr || !wants_room(*found) || found->admitted) {
    room_for_.reset();
    return Moved::kRoom;
  }
  KVASIR_ASSIGN(const Moved moved, spill_oldest(found));
  if (moved == Moved::kNothing) {
    moves_are_vain_ = true;
    room_for_.reset();
  }
  if (moved != Moved::kSome) return moved;
  Conversation& target = conversations_[static_cast<std::size_t>(found - conversations_.data())];
  // What it gets shows when its own step is committed, and goes with one that is undone (P1).
  const std::uint64_t before = store_->promised(target.table);
  if (!admit(target, before)) return Moved::kSome;
  if (target.admitted) target.promised_before = before;
  room_for_.reset();
  return Moved::kRoom;
}

// Whether room is made for `a` before `b`: for one that was passed over too often, then by priority and by
// when what it waits for was asked for.
bool Engine::waits_before(const Conversation& a, const Conversation& b) const noexcept {
  const bool a_patient = a.refused && a.passed_over >= kPassedOverMax;
  const bool b_patient = b.refused && b.passed_over >= kPassedOverMax;
  if (a_patient != b_patient) return a_patient;
  if (a.settings.priority != b.settings.priority) return a.settings.priority > b.settings.priority;
  return a.begun < b.begun;
}

std::vector<std::size_t> Engine::waiting_in_order() const {
  std::vector<std::size_t> waiting;
  for (std::size_t index = 0; index < conversations_.size(); ++index) {
    const Conversation& conversation = conversations_[index];
    if (conversation.shortage && wants_room(conversation) && !conversation.admitted) waiting.push_back(index);
  }
  std::ranges::sort(waiting, [&](std::size_t a, std::size_t b) {
    return waits_before(conversations_[a], conversations_[b]);
  });
  return waiting;
}

// Decides for whom room is made, if for anybody. Throws std::bad_alloc.
void Engine::choose_moves(bool nobody_runs) {
  if (tiers_ == nullptr || returning_) return;
  room_for_.reset();
  const bool any_idle = std::ranges::any_of(conversations_, [&](const Conversation& conversation) {
    return idle(conversation) && !conversation.tokens.empty();
  });
  if (moves_are_vain_ || (!any_idle && !nobody_runs)) return;
  const std::vector<std::size_t> waiting = waiting_in_order();
  if (waiting.empty()) return;
  const auto supply = store_->supply_beside_idle(idle_tables());
  for (const std::size_t index : waiting) {
    const Conversation& conversation = conversations_[index];
    if (store_->could_fit(conversation.table, need_of(conversation), supply)) {
      room_for_ = id_of(conversation, index);
      return;
    }
    if (conversation.passed_over >= kPassedOverMax) break;  // it lets nobody before it
  }
  if (!nobody_runs) return;
  const Conversation& first = conversations_[waiting.front()];
  if (pause_for(first)) room_for_ = id_of(first, waiting.front());
}

// Pauses those that come last in line, behind `target`, until it would fit; nobody where that is never.
bool Engine::pause_for(const Conversation& target) {
  std::vector<std::size_t> later;
  for (std::size_t index = 0; index < conversations_.size(); ++index) {
    const Conversation& conversation = conversations_[index];
    const bool busy = conversation.open() && !conversation.in_step && !stays(conversation) &&
                      !idle(conversation) && !conversation.tokens.empty();
    if (busy && waits_before(target, conversation)) later.push_back(index);
  }
  std::ranges::sort(later, [&](std::size_t a, std::size_t b) {
    return waits_before(conversations_[b], conversations_[a]);
  });
  std::vector<std::uint8_t> tables = idle_tables();
  for (std::size_t count = 0; count < later.size(); ++count) {
    tables[static_cast<std::size_t>(conversations_[later[count]].table)] = 1;
    if (!store_->could_fit(target.table, need_of(target), store_->supply_beside_idle(tables))) continue;
    for (std::size_t i = 0; i <= count; ++i) {
      Conversation& paused = conversations_[later[i]];
      paused.paused = true;
      paused.admitted = false;
      static_cast<void>(store_->promise(paused.table, 0));  // no promise always fits
      ++moves_.conversations_paused;
    }
    return true;
  }
  return false;
}

}  // namespace kvasir::engine
