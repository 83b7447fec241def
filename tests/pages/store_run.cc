// What a history compares, and the ground its operations stand on.

#include "store_run.h"

#include <algorithm>
#include <numeric>

namespace kvasir::pages::test {
namespace {

constexpr std::uint64_t kStepsPerStore = 1000;
constexpr std::uint64_t kStepsPerCheck = 2;

StoreSpec random_spec(Random& random) {
  StoreSpec spec;
  spec.page_cells = random.one_of(std::vector<std::uint32_t>{16, 16, 16, 16, 32, 32, 48, 64, 128});
  std::uint32_t layers = 0;
  for (std::uint64_t groups = random.between(1, 3); groups > 0; --groups) {
    spec.groups.push_back({static_cast<std::uint32_t>(random.between(1, 4))});
    layers += spec.groups.back().layers;
  }
  const std::uint32_t pages = random.one_of(std::vector<std::uint32_t>{2, 3, 4, 6, 8, 12, 20});
  spec.frames =
      std::max<std::uint32_t>(1, pages * 16 / std::min<std::uint32_t>(spec.page_cells, 48)) * layers;
  spec.frames += static_cast<std::uint32_t>(random.below(layers + 1));
  return spec;
}

}  // namespace

std::string_view name_of(HardState state) {
  static constexpr std::array<std::string_view, kHardStates> kNames = {"append into a shared page",
                                                                       "split span",
                                                                       "shortage",
                                                                       "abort after pass two or later",
                                                                       "withdrawal",
                                                                       "partial commit",
                                                                       "compaction without a free page",
                                                                       "compaction destroyed",
                                                                       "eviction",
                                                                       "hit that holds what was evictable",
                                                                       "call inside an open ticket",
                                                                       "fork inside an open ticket",
                                                                       "reservation of exactly what is free",
                                                                       "division",
                                                                       "promise used"};
  return kNames[static_cast<std::size_t>(state)];
}

StoreRun::StoreRun(std::uint64_t seed, HardStateCounts& counts) : random_(seed), counts_(&counts) {
  spec_ = random_spec(random_);
  auto store = PageStore::create(spec_);
  require(store.has_value(), "a store of valid geometry is refused");
  store_ = std::move(*store);
  arena_ = std::make_unique<FakeArena>(*store_);
  most_conversations_ = random_.one_of(std::vector<std::size_t>{2, 4, 6, 10, 20, 40});
  std::string geometry = "pages of " + std::to_string(spec_.page_cells) + ", " +
                         std::to_string(spec_.frames) + " frames, layers";
  for (const GroupSpec& group : spec_.groups) geometry += " " + std::to_string(group.layers);
  tell(geometry);
  ++steps_;
}

void StoreRun::require(bool holds, const std::string& what) {
  if (!holds) throw Disagreement(what);
}

std::string StoreRun::story() const {
  std::string all;
  for (std::uint64_t step = steps_ + 1 - std::min<std::uint64_t>(steps_ + 1, story_.size()); step <= steps_;
       ++step) {
    all += "  " + std::to_string(step) + " " + story_[step % story_.size()] + "\n";
  }
  return all;
}

void StoreRun::step() {
  const bool inside = ticket_.has_value();
  tell("");
  // Many a draw asks for what the state does not allow.
  for (int attempt = 0; attempt < 10 && story_[steps_ % story_.size()].empty(); ++attempt) try_operation();
  if (inside && ticket_) count(HardState::kCallInsideTicket);
  follow_evictions();
  notice_destruction();
  if (++steps_ % kStepsPerCheck == 0) check_all();
}

void StoreRun::end() {
  if (ticket_) abort_ticket();
  if (edit_) abort_edit();
  compaction_.reset();
  while (!conversations_.empty()) {
    store_->close(conversations_.back()->id);
    conversations_.pop_back();
  }
  check_all();
  store_->forget();
  index_.clear();
  evictions_seen_ = store_->prefix_counters().evictions;
  check_all();
  require(store_->frames_free() == spec_.frames, "frames are left behind at the end");
}

bool StoreRun::busy(const TwinConversation& conversation) const {
  const bool named = ticket_ && std::ranges::any_of(ticket_->lines, [&](const Line& line) {
                       return line.conversation == &conversation;
                     });
  return named || (edit_ && edit_->conversation == &conversation);
}

TwinConversation* StoreRun::any_conversation() {
  if (conversations_.empty()) return nullptr;
  return conversations_[static_cast<std::size_t>(random_.below(conversations_.size()))].get();
}

TwinConversation* StoreRun::idle_conversation() {
  for (int attempt = 0; attempt < 4; ++attempt) {
    TwinConversation* const conversation = any_conversation();
    if (conversation != nullptr && !busy(*conversation)) return conversation;
  }
  return nullptr;
}

// Few texts with many common beginnings, and now and then a word of its own.
Token StoreRun::token_at(const TwinConversation& conversation, std::uint64_t ordinal) {
  if (random_.below(3000) == 0) return static_cast<Token>(random_.below(1000));
  const std::uint64_t common = conversation.script * 40;  // tokens that a text shares with the one before
  return static_cast<Token>(mix(ordinal < common ? ordinal : ordinal + conversation.script * 1000) % 1000);
}

// Of a prompt, beside `beside` other cells: often about as much as is free.
std::uint64_t StoreRun::random_length(std::uint64_t beside) {
  const std::uint64_t page = store_->page_cells();
  const std::uint64_t what = random_.below(100);
  if (what < 20) return 1;
  if (what < 35) return random_.between(1, 5);
  if (what < 60) return random_.between(1, page);
  if (what < 74) return random_.between(1, 3 * page);
  const std::uint64_t free = recount().largest(beside);
  if (what < 90) return std::max<std::uint64_t>(1, free);
  if (what < 95) return free + 1;
  return random_.between(1, 2 * free + 2);
}

std::uint64_t StoreRun::promised() const {
  return std::accumulate(conversations_.begin(), conversations_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& one) { return sum + one->promised; });
}

// Every holder of every cell: tables, blocks of the index, what is reserved.
Recount StoreRun::recount() const {
  Recount counted(*store_, spec_.frames);
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    for (const auto& conversation : conversations_) {
      for (const Run& run : store_->runs(conversation->id, group)) counted.add(group, run, Holder::kFirm);
    }
    for (const TwinBlock& block : index_.blocks()) {
      for (const CellAt& at : block.cells[group]) counted.add(group, at, Holder::kSoft);
    }
    if (ticket_) {
      for (std::size_t line = 0; line < ticket_->lines.size(); ++line) {
        for (const Run& run : ticket_->ticket.new_runs(line, group)) counted.add(group, run, Holder::kFirm);
      }
    }
  }
  if (edit_) {
    for (const RotateCells& job : edit_->ticket.jobs()) {
      counted.add(job.cells.group, Run{job.cells.to.page, job.cells.to.cell, job.cells.count}, Holder::kFirm);
    }
  }
  if (compaction_) {
    for (const CopyCells& copy : compaction_->compaction->copies()) {
      counted.add(copy.group, Run{copy.from.page, copy.from.cell, copy.count}, Holder::kSoft);
      counted.add(copy.group, Run{copy.to.page, copy.to.cell, copy.count}, Holder::kSoft);
    }
  }
  return counted;
}

// All that a failed call must leave as it was; where cells lie does not enter.
std::uint64_t StoreRun::digest() const {
  std::vector<std::uint64_t> numbers = {store_->tokens_free()};
  for (const auto& conversation : conversations_) {
    const TableId id = conversation->id;
    numbers.push_back(store_->length(id));
    numbers.push_back(static_cast<std::uint64_t>(store_->next_position(id)));
    numbers.push_back(store_->holdings(id).promised);
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      for (const Run& run : store_->runs(id, group)) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          const CellAt at{run.page, run.cell + i};
          numbers.push_back(store_->position(group, at.page, at.cell) +
                            static_cast<std::uint64_t>(run.shift));
          arena_->append_cell(group, at, numbers);
        }
      }
    }
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t number : numbers) hash = mix(hash ^ number);
  return hash;
}

void StoreRun::require_failure(const Error& error, Outcome code, std::uint64_t digest_before) {
  require(error.code() == code, "another error: " + error.message());
  require(digest() == digest_before, "a failed call has changed something: " + error.message());
  follow_evictions();
  check_all();
}

void StoreRun::follow_evictions() {
  for (; evictions_seen_ < store_->prefix_counters().evictions; ++evictions_seen_) {
    require(index_.evict(), "more blocks are evicted than were remembered");
    count(HardState::kEviction);
  }
  require(index_.blocks().size() == store_->prefix_blocks(), "the index holds another number of blocks");
}

void StoreRun::notice_destruction() {
  if (!compaction_ || !compaction_->compaction->copies().empty()) return;
  const auto moved = compaction_->compaction->commit();
  require(!moved && moved.error().code() == Outcome::kWrongState, "a destroyed compaction commits");
  compaction_.reset();
  count(HardState::kCompactionDestroyed);
}

void StoreRun::check_all() {
  if (!ticket_ && !edit_) {
    const Status status = store_->check();
    require(status.has_value(), status ? "" : status.error().message());
  }
  const Recount counted = recount();
  const std::string differences = counted.differences();
  require(differences.empty(), differences);
  check_space(counted);
  for (const auto& conversation : conversations_) check_conversation(*conversation);
  arena_->poison_free_cells();
}

void StoreRun::check_space(const Recount& counted) const {
  const std::uint64_t all_promised = promised();
  require(counted.fits(all_promised), "what is promised does not fit (S6)");
  const std::uint64_t free = store_->tokens_free();
  require(free == counted.largest(all_promised), "tokens_free() is " + std::to_string(free) + ", counted " +
                                                     std::to_string(counted.largest(all_promised)));
  const SpaceReport space = store_->space();
  require(space.free == free && space.promised == all_promised && space.frames == spec_.frames &&
              space.frames_free == counted.frames_free(),
          "the report of space differs");
  for (const auto& conversation : conversations_) {
    const std::uint64_t most = counted.largest(all_promised - conversation->promised);
    require(store_->fits(conversation->id, most) && !store_->fits(conversation->id, most + 1),
            "fits() differs at " + std::to_string(most));
  }
}

void StoreRun::check_conversation(const TwinConversation& conversation) const {
  const TableId id = conversation.id;
  const std::string name = "conversation " + std::to_string(static_cast<std::uint32_t>(id));
  require(store_->length(id) == conversation.cells.size(), name + " has another length");
  require(store_->next_position(id) == conversation.next_position(), name + " goes on at another position");
  const Holdings holdings = store_->holdings(id);
  require(holdings.own + holdings.shared == conversation.cells.size() * store_->group_count(),
          name + " holds another number of cells");
  require(holdings.promised == conversation.promised, name + " is promised another number");
  for (std::size_t group = 0; group < store_->group_count(); ++group) check_spans(conversation, group);
}

void StoreRun::check_spans(const TwinConversation& conversation, std::size_t group) const {
  const auto where = [&](std::uint64_t ordinal) {
    return " of token " + std::to_string(ordinal) + " of conversation " +
           std::to_string(static_cast<std::uint32_t>(conversation.id)) + " in group " + std::to_string(group);
  };
  std::uint64_t ordinal = 0;
  const Run* before = nullptr;
  for (const Run& run : store_->runs(conversation.id, group)) {
    require(run.ordinal == ordinal && run.count > 0, "the span" + where(ordinal) + " begins elsewhere");
    require(before == nullptr || before->page != run.page || before->cell + before->count != run.cell ||
                before->shift != run.shift,
            "the span" + where(ordinal) + " could be joined to the one before");
    for (std::uint32_t i = 0; i < run.count; ++i, ++ordinal) {
      const CellAt at{run.page, run.cell + i};
      const TwinCell& cell = conversation.cells.at(ordinal);
      require(
          static_cast<std::int64_t>(store_->position(group, at.page, at.cell)) + run.shift == cell.position,
          "the position" + where(ordinal) + " differs");
      require(arena_->holds(group, at, cell.contents), "the bytes" + where(ordinal) + " differ");
    }
    before = &run;
  }
  require(ordinal == conversation.cells.size(), "the end" + where(ordinal) + " differs");
}

std::string run_stores(std::uint64_t seed, std::uint64_t operations, HardStateCounts& counts) {
  for (std::uint64_t store = 0; store * kStepsPerStore < operations; ++store) {
    const std::uint64_t store_seed = mix(seed) + store;
    StoreRun run(store_seed, counts);
    try {
      for (std::uint64_t i = 0; i < std::min(kStepsPerStore, operations - store * kStepsPerStore); ++i)
        run.step();
      run.end();
    } catch (const Disagreement& disagreement) {
      return "seed " + std::to_string(seed) + ", store " + std::to_string(store) + ": " +
             disagreement.what() + "\n" + run.story();
    }
  }
  return {};
}

}  // namespace kvasir::pages::test
