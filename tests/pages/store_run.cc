// What a history compares, and the ground its operations stand on.

#include "store_run.h"

#include <algorithm>
#include <numeric>

#include "real_arena.h"

namespace kvasir::pages::test {
namespace {

constexpr std::uint64_t kStepsPerStore = 1000;
constexpr std::uint64_t kStepsPerCheck = 2;

// Half of the stores keep full attention alone; the others whatever a model may mix.
StoreSpec random_spec(Random& random) {
  StoreSpec spec;
  spec.page_cells = random.one_of(std::vector<std::uint32_t>{16, 16, 16, 16, 32, 32, 48, 64, 128});
  const bool mixed = random.percent(75);
  std::uint32_t layers = 0;
  for (std::uint64_t groups = random.between(1, mixed ? 4 : 3); groups > 0; --groups) {
    GroupSpec group{static_cast<std::uint32_t>(random.between(1, mixed ? 3 : 4))};
    const std::uint64_t what = random.below(100);
    if (mixed && what < 40) {
      group.kind = GroupKind::kWindow;
      group.width = random.one_of(std::vector<std::uint64_t>{1, 1, 3, 3, 16, 20, 40});
    } else if (mixed && what < 72) {
      group.kind = GroupKind::kRecurrent;
    } else if (mixed && what < 85) {
      group.kind = GroupKind::kCross;
    }
    layers += group.layers;
    spec.groups.push_back(group);
  }
  if (std::ranges::all_of(spec.groups, [](const auto& one) { return one.kind == GroupKind::kCross; })) {
    spec.groups.push_back({1});
    ++layers;
  }
  const std::vector<std::uint32_t> few{2, 3, 4, 6, 8, 12, 20};
  const std::vector<std::uint32_t> many{5, 6, 8, 12, 20, 30, 40, 60};
  const std::uint32_t pages = random.one_of(mixed ? many : few);
  spec.frames =
      std::max<std::uint32_t>(1, pages * 16 / std::min<std::uint32_t>(spec.page_cells, 48)) * layers;
  spec.frames += static_cast<std::uint32_t>(random.below(layers + 1));
  spec.pass_tokens = random.one_of(std::vector<std::uint32_t>{4, 16, 40, 512});
  spec.positions_can_move = random.percent(92);
  spec.checkpoint_tokens = random.percent(20) ? 0 : spec.page_cells;
  spec.checkpoints_max = random.one_of(std::vector<std::uint32_t>{1, 2, 4, 8});
  return spec;
}

// A store of random sizes for the groups of a model.
StoreSpec spec_of(const Ground& ground, Random& random) {
  StoreSpec spec = random_spec(random);
  spec.groups = ground.groups;
  spec.positions_can_move = ground.positions_can_move;
  std::uint32_t frames = 0;
  for (const GroupSpec& group : spec.groups) frames += group.layers;
  const std::uint32_t pages = random.one_of(std::vector<std::uint32_t>{5, 6, 8, 12, 20, 30});
  spec.frames = pages * frames + static_cast<std::uint32_t>(random.below(frames + 1));
  return spec;
}

std::string_view name_of(GroupKind kind) {
  static constexpr std::string_view kNames[] = {"full", "window", "recurrent", "cross"};
  return kNames[static_cast<std::size_t>(kind)];
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
                                                                       "beginning given back",
                                                                       "hit that holds what was evictable",
                                                                       "call inside an open ticket",
                                                                       "fork inside an open ticket",
                                                                       "reservation of exactly what is free",
                                                                       "division",
                                                                       "promise used",
                                                                       "window release",
                                                                       "ring written over",
                                                                       "floor raised",
                                                                       "free rewind of a window",
                                                                       "checkpoint restored",
                                                                       "behind caught up",
                                                                       "behind forked",
                                                                       "checkpoint kept",
                                                                       "checkpoint evicted",
                                                                       "state kept at an accepted ordinal",
                                                                       "no state at an accepted ordinal",
                                                                       "hit in a window or state",
                                                                       "encoder's output replaced",
                                                                       "refused as busy",
                                                                       "refused as behind",
                                                                       "refused as unable to move",
                                                                       "restored",
                                                                       "restored with shared cells",
                                                                       "restore aborted",
                                                                       "run spilled",
                                                                       "shared run spilled",
                                                                       "spill that the index gives way to",
                                                                       "return",
                                                                       "return of what is shared",
                                                                       "return refused",
                                                                       "return dropped",
                                                                       "return beside an edit",
                                                                       "tier run ended",
                                                                       "refused as spilled"};
  return kNames[static_cast<std::size_t>(state)];
}

StoreRun::StoreRun(std::uint64_t seed, HardStateCounts& counts, const Ground& ground)
    : random_(seed), counts_(&counts) {
  spec_ = ground.groups.empty() ? random_spec(random_) : spec_of(ground, random_);
  auto store = PageStore::create(spec_);
  require(store.has_value(), "a store of valid geometry is refused");
  store_ = std::move(*store);
  spec_ = store_->spec();
  if (ground.real_bytes) {
    arena_ = std::make_unique<RealArena>(*store_, turns_, random_, ground.geometry);
  } else {
    arena_ = std::make_unique<FakeArena>(*store_);
  }
  most_conversations_ = random_.one_of(std::vector<std::size_t>{2, 4, 6, 10, 20, 40});
  if (!only_full() && random_.percent(70)) most_conversations_ = random_.between(2, 6);
  std::string geometry = "pages of " + std::to_string(spec_.page_cells) + ", " +
                         std::to_string(spec_.frames) + " frames, passes of " +
                         std::to_string(spec_.pass_tokens) + ", checkpoints every " +
                         std::to_string(spec_.checkpoint_tokens) + " up to " +
                         std::to_string(spec_.checkpoints_max) + ", groups";
  for (const GroupSpec& group : spec_.groups) {
    geometry += std::string(" ") + std::string(name_of(group.kind)) + " of " + std::to_string(group.layers);
    if (group.kind == GroupKind::kWindow) geometry += " and width " + std::to_string(group.width);
  }
  geometry_ = geometry + "; " + arena_->name();
  ++steps_;
}

void StoreRun::require(bool holds, const std::string& what) {
  if (!holds) throw Disagreement(what);
}

std::string StoreRun::story() const {
  std::string all = "  " + geometry_ + "\n";
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
  follow_checkpoints();
  notice_destruction();
  if (++steps_ % kStepsPerCheck == 0) check_all();
}

void StoreRun::end() {
  if (ticket_) abort_ticket();
  if (edit_) abort_edit();
  encode_.reset();
  return_.reset();
  compaction_.reset();
  snapshot_.reset();
  if (restore_) end_restore();
  while (!conversations_.empty()) {
    require(store_->close(conversations_.back()->id) == Outcome::kDone, "close() is refused");
    conversations_.pop_back();
  }
  follow_gone();
  check_all();
  require(store_->tier_runs().size() == 0, "runs are left behind in tiers");
  require(store_->space().checkpoints == 0, "checkpoints are left behind at the end");
  store_->forget();
  index_.clear();
  evictions_seen_ = store_->prefix_counters().evictions;
  check_all();
  require(store_->frames_free() == spec_.frames, "frames are left behind at the end");
}

bool StoreRun::busy(const TwinConversation& conversation) const {
  const bool named = ticket_ && std::ranges::any_of(ticket_->lines, [&](const Line& line) {
                       return line.conversation == &conversation && !line.withdrawn;
                     });
  return named || (edit_ && edit_->conversation == &conversation) ||
         (encode_ && encode_->conversation == &conversation) ||
         (return_ && return_->conversation == &conversation);
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

// One that must catch up, and may.
TwinConversation* StoreRun::conversation_behind() {
  for (const auto& conversation : conversations_) {
    if (!conversation->owed.empty() && !busy(*conversation)) return conversation.get();
  }
  return nullptr;
}

// Few texts with many common beginnings, and now and then a word of its own.
Token StoreRun::token_at(const TwinConversation& conversation, std::uint64_t ordinal) {
  if (random_.below(3000) == 0) return static_cast<Token>(random_.below(1000));
  const std::uint64_t common = conversation.script * 40;  // tokens that a text shares with the one before
  return static_cast<Token>(mix(ordinal < common ? ordinal : ordinal + conversation.script * 1000) % 1000);
}

// Of a prompt: often about as much as is free.
std::uint64_t StoreRun::random_length(std::uint64_t room) {
  const std::uint64_t page = store_->page_cells();
  const std::uint64_t what = random_.below(100);
  if (what < 20) return 1;
  if (what < 35) return random_.between(1, 5);
  if (what < 60) return random_.between(1, page);
  if (what < 74) return random_.between(1, 3 * page);
  const std::uint64_t free = std::min<std::uint64_t>(room, 600);
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
    std::vector<const TwinCheckpoint*> seen;
    for (const auto& conversation : conversations_) {
      for (const auto& checkpoint : conversation->checkpoints) {
        if (std::ranges::find(seen, checkpoint.get()) != seen.end()) continue;
        seen.push_back(checkpoint.get());
        for (const CellAt& at : checkpoint->cells[group]) counted.add(group, at, Holder::kSoft);
      }
    }
    if (encode_) {
      for (const Run& run : encode_->ticket.new_runs(group)) counted.add(group, run, Holder::kFirm);
    }
    if (ticket_) {
      for (std::size_t line = 0; line < ticket_->lines.size(); ++line) {
        for (const Run& run : ticket_->ticket.new_runs(line, group)) counted.add(group, run, Holder::kFirm);
        for (const StateWrite& write : ticket_->ticket.states(line, group))
          counted.add(group, CellAt{write.state, 0}, Holder::kFirm);
      }
    }
  }
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    if (snapshot_) {
      for (const CellAt& at : snapshot_->cells[group]) counted.add(group, at, Holder::kFirm);
    }
    if (restore_) {
      for (const Run& run : restore_->ticket.places(group)) counted.add(group, run, Holder::kFirm);
    }
  }
  if (edit_) {
    for (const RotateCells& job : edit_->ticket.jobs()) {
      counted.add(job.cells.group, Run{job.cells.to.page, job.cells.to.cell, job.cells.count}, Holder::kFirm);
    }
  }
  if (return_) {
    for (const FetchCells& job : return_->ticket.jobs()) {
      counted.add(job.group, Run{job.to.page, job.to.cell, job.count}, Holder::kFirm);
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
    numbers.push_back(store_->behind(id));
    for (std::size_t i = 0; i < store_->checkpoint_count(id); ++i)
      numbers.push_back(store_->checkpoint(id, i));
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      numbers.push_back(store_->floor(id, group));
      numbers.push_back(store_->release_line(id, group));
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
  follow_checkpoints();
  check_all();
}

void StoreRun::follow_evictions() {
  for (; evictions_seen_ < store_->prefix_counters().evictions; ++evictions_seen_) {
    require(index_.evict(), "more blocks are evicted than were remembered");
    count(HardState::kEviction);
  }
  require(index_.blocks().size() == store_->prefix_blocks(), "the index holds another number of blocks");
}

// Checkpoints that are gone without a reason are those that were evicted.
void StoreRun::follow_checkpoints() {
  std::vector<const TwinCheckpoint*> gone;
  for (const auto& conversation : conversations_) {
    std::vector<std::uint64_t> there;
    for (std::size_t i = 0; i < store_->checkpoint_count(conversation->id); ++i) {
      there.push_back(store_->checkpoint(conversation->id, i));
    }
    std::erase_if(conversation->checkpoints, [&](const auto& checkpoint) {
      if (std::ranges::find(there, checkpoint->ordinal) != there.end()) return false;
      if (std::ranges::find(gone, checkpoint.get()) == gone.end()) gone.push_back(checkpoint.get());
      return true;
    });
    require(conversation->checkpoints.size() == there.size(), "there is a checkpoint that nobody kept");
  }
  const std::uint64_t evicted = store_->checkpoints_evicted() - checkpoint_evictions_seen_;
  // One that several have is counted once, whoever of them is looked at.
  require(gone.size() == evicted, std::to_string(gone.size()) + " checkpoints are gone, " +
                                      std::to_string(evicted) + " were evicted");
  checkpoint_evictions_seen_ += evicted;
  for (std::uint64_t i = 0; i < evicted; ++i) count(HardState::kCheckpointEvicted);
}

void StoreRun::notice_destruction() {
  if (!compaction_ || !compaction_->compaction->copies().empty()) return;
  const auto moved = compaction_->compaction->commit();
  require(!moved && moved.error().code() == Outcome::kWrongState, "a destroyed compaction commits");
  compaction_.reset();
  count(HardState::kCompactionDestroyed);
}

void StoreRun::check_all() {
  follow_gone();
  if (!ticket_ && !edit_ && !encode_ && !return_ && !restore_) {
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

void StoreRun::check_conversation(const TwinConversation& conversation) const {
  const TableId id = conversation.id;
  const std::string name = "conversation " + std::to_string(static_cast<std::uint32_t>(id));
  require(store_->length(id) == conversation.cells.size(), name + " has another length");
  require(store_->next_position(id) == conversation.next_position(), name + " goes on at another position");
  const Holdings holdings = store_->holdings(id);
  std::uint64_t cells = 0;
  for (const auto& of_group : pages::test::cells_of(*store_, id)) cells += of_group.size();
  require(holdings.own + holdings.shared + holdings.spilled == cells,
          name + " holds another number of cells");
  require(holdings.promised == conversation.promised, name + " is promised " +
                                                          std::to_string(holdings.promised) + ", not " +
                                                          std::to_string(conversation.promised));
  require(store_->behind(id) == conversation.owed.size(), name + " is behind by another number");
  require(store_->checkpoint_count(id) == conversation.checkpoints.size(),
          name + " has another number of checkpoints");
  for (std::size_t i = 0; i < conversation.checkpoints.size(); ++i) {
    require(store_->checkpoint(id, i) == conversation.checkpoints[i]->ordinal,
            name + " has a checkpoint elsewhere");
  }
  check_kinds(conversation);
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    if (keeps_tokens(spec_.groups[group])) check_spans(conversation, group);
  }
}

// Floors, release lines, states and encoders' outputs.
void StoreRun::check_kinds(const TwinConversation& conversation) const {
  const TableId id = conversation.id;
  const std::string name = "conversation " + std::to_string(static_cast<std::uint32_t>(id));
  for (std::size_t group = 0; group < store_->group_count(); ++group) {
    const std::span<const Run> runs = store_->runs(id, group);
    switch (spec_.groups[group].kind) {
      case GroupKind::kFull:
        break;
      case GroupKind::kWindow:
        require(store_->floor(id, group) == conversation.floors[group], name + " has another floor");
        require(store_->release_line(id, group) == conversation.starts[group],
                name + " has a release line of " + std::to_string(store_->release_line(id, group)) +
                    ", not " + std::to_string(conversation.starts[group]));
        break;
      case GroupKind::kRecurrent: {
        const auto state = store_->state(id, group);
        require(state.has_value() == !conversation.cells.empty(), name + " has a state too few or too many");
        require(!state || arena_->holds(group, {*state, 0}, conversation.cells.back().contents, 0),
                "the state of " + name + " differs");
        break;
      }
      case GroupKind::kCross: {
        std::uint64_t cell = 0;
        for (const Run& run : runs) {
          for (std::uint32_t i = 0; i < run.count; ++i, ++cell) {
            require(arena_->holds(group, {run.page, run.cell + i},
                                  encoded_contents(conversation.encoder, cell), 0),
                    "the encoder's output of " + name + " differs");
          }
        }
        require(cell == conversation.encoded_cells, name + " attends to an output of another length");
        break;
      }
    }
  }
}

void StoreRun::check_spans(const TwinConversation& conversation, std::size_t group) const {
  const auto where = [&](std::uint64_t ordinal) {
    return " of token " + std::to_string(ordinal) + " of conversation " +
           std::to_string(static_cast<std::uint32_t>(conversation.id)) + " in group " + std::to_string(group);
  };
  std::uint64_t ordinal = conversation.starts[group];
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
      require(arena_->holds(group, at, cell.contents, cell.turns), "the bytes" + where(ordinal) + " differ");
    }
    before = &run;
  }
  require(ordinal == conversation.cells.size(), "the end" + where(ordinal) + " differs");
}

std::string run_stores(std::uint64_t seed, std::uint64_t operations, HardStateCounts& counts,
                       const Ground& ground) {
  for (std::uint64_t store = 0; store * kStepsPerStore < operations; ++store) {
    const std::uint64_t store_seed = mix(seed) + store;
    StoreRun run(store_seed, counts, ground);
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
