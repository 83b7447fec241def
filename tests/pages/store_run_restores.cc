// The operations of a history on layouts: conversations described, their bytes kept elsewhere, and brought
// back beside or instead of what there is by then.

#include <algorithm>
#include <set>
#include <utility>

#include "store_run.h"

namespace kvasir::pages::test {
namespace {

// The numbers that pieces name, one by one.
std::vector<std::uint64_t> numbers_of(const std::vector<CellPiece>& pieces) {
  std::vector<std::uint64_t> numbers;
  for (const CellPiece& piece : pieces) {
    for (std::uint64_t i = 0; i < piece.count; ++i) numbers.push_back(piece.first + i);
  }
  return numbers;
}

}  // namespace

// What is wanted of a kept layout, where the first `without` checkpoints are left out.
std::vector<std::set<std::uint64_t>> StoreRun::wanted_numbers(const Kept& kept, std::size_t without) const {
  std::vector<std::set<std::uint64_t>> wanted(spec_.groups.size());
  for (std::size_t group = 0; group < wanted.size(); ++group) {
    const auto add = [&](const std::vector<CellPiece>& pieces) {
      for (const std::uint64_t number : numbers_of(pieces)) wanted[group].insert(number);
    };
    for (const ConversationLayout& conversation : kept.layout.conversations) add(conversation.cells[group]);
    for (std::size_t i = without; i < kept.layout.checkpoints.size(); ++i)
      add(kept.layout.checkpoints[i].cells[group]);
  }
  return wanted;
}

void StoreRun::take_snapshot() {
  if (snapshot_) return end_snapshot();
  std::vector<const TwinConversation*> who;
  if (random_.percent(70)) {
    // A fork and its parent, or whatever it has left beside it.
    fork_conversation();
    if (!conversations_.empty()) who.push_back(conversations_.back().get());
  }
  for (std::uint64_t wanted = random_.between(1, 3); wanted > 0; --wanted) {
    const TwinConversation* conversation = any_conversation();
    if (!who.empty() && random_.percent(90)) conversation = relative_of(*who.front(), who);
    if (conversation != nullptr && std::ranges::find(who, conversation) == who.end())
      who.push_back(conversation);
  }
  if (who.empty()) return;
  std::vector<TableId> ids;
  std::string story = "snapshot of";
  for (const TwinConversation* const conversation : who) {
    ids.push_back(conversation->id);
    story += " " + std::to_string(static_cast<std::uint32_t>(conversation->id));
  }
  tell(story);
  OpenSnapshot mine = foresee_snapshot(who);
  Recount counted = recount();
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    for (const CellAt& at : mine.cells[group]) counted.add(group, at, Holder::kFirm);
  }
  const bool fits = counted.fits(promised_need(counted));
  const std::uint64_t before = fits ? 0 : digest();
  auto snapshot = store_->snapshot(ids);
  require(snapshot.has_value() == fits, "snapshot() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    return require_failure(snapshot.error(), Outcome::kNoSpace, before);
  }
  mine.snapshot = std::move(*snapshot);
  mine.kept.layout = mine.snapshot->layout();
  for (const TwinConversation* const conversation : who) mine.kept.twins.push_back(*conversation);
  check_described(mine);
  snapshot_ = std::move(mine);
  if (random_.percent(60)) end_snapshot();
}

// Another one with the same first cell, if there is one.
const TwinConversation* StoreRun::relative_of(const TwinConversation& of,
                                              const std::vector<const TwinConversation*>& but) const {
  for (const auto& other : conversations_) {
    if (std::ranges::find(but, other.get()) != but.end()) continue;
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      const std::span<const Run> mine = store_->runs(of.id, group);
      const std::span<const Run> its = store_->runs(other->id, group);
      if (mine.empty() || its.empty()) continue;
      if (mine.front().page == its.front().page && mine.front().cell == its.front().cell) return other.get();
    }
  }
  return nullptr;
}

// Every cell that conversations and their checkpoints hold, each once.
StoreRun::OpenSnapshot StoreRun::foresee_snapshot(const std::vector<const TwinConversation*>& who) const {
  OpenSnapshot mine;
  mine.cells.resize(spec_.groups.size());
  const auto add = [&](std::size_t group, const std::vector<CellAt>& cells) {
    for (const CellAt& at : cells) {
      if (std::ranges::find(mine.cells[group], at) == mine.cells[group].end())
        mine.cells[group].push_back(at);
    }
  };
  for (const TwinConversation* const conversation : who) {
    const Shape shape = shape_of(*conversation);
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      add(group, shape.cells[group]);
      for (const auto& checkpoint : conversation->checkpoints) add(group, checkpoint->cells[group]);
    }
  }
  return mine;
}

// Whether the layout names, ordinal by ordinal, the cells that the twin knows.
void StoreRun::check_described(const OpenSnapshot& mine) const {
  const Layout& layout = mine.kept.layout;
  require(check_layout(layout, spec_).has_value(), "a layout of the store's own is refused");
  const auto places = [&](std::size_t group, const std::vector<CellPiece>& pieces) {
    std::vector<CellAt> cells;
    for (const std::uint64_t number : numbers_of(pieces))
      cells.push_back(mine.snapshot->cells(group).cell_at(number));
    return cells;
  };
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    const auto cells = cells_in(layout.cells[group]);
    require(cells && *cells == mine.cells[group].size() && *cells == mine.snapshot->cells(group).cells(),
            "a layout numbers more cells than there are, or fewer");
  }
  for (std::size_t i = 0; i < mine.kept.twins.size(); ++i) {
    const TwinConversation& twin = mine.kept.twins[i];
    const ConversationLayout& described = layout.conversations[i];
    const Shape shape = shape_of(twin);
    require(described.length == twin.cells.size() && described.behind == twin.owed.size() &&
                described.clean == twin.clean_length() &&
                described.checkpoints.size() == twin.checkpoints.size(),
            "a conversation is described with other numbers");
    for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
      require(places(group, described.cells[group]) == shape.cells[group], "a layout names other cells");
      for (std::size_t k = 0; k < twin.checkpoints.size(); ++k) {
        const CheckpointLayout& checkpoint = layout.checkpoints[described.checkpoints[k]];
        require(checkpoint.ordinal == twin.checkpoints[k]->ordinal &&
                    places(group, checkpoint.cells[group]) == twin.checkpoints[k]->cells[group],
                "a checkpoint is described otherwise");
      }
    }
  }
}

// The bytes are read at the end: whatever has happened meanwhile, they are those of the beginning.
void StoreRun::end_snapshot() {
  tell(story_[steps_ % story_.size()] + " end the snapshot");
  OpenSnapshot& mine = *snapshot_;
  Kept& kept = mine.kept;
  kept.bytes.resize(spec_.groups.size());
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    const PageTable& cells = mine.snapshot->cells(group);
    for (std::uint64_t number = 0; number < cells.cells(); ++number) {
      const CellAt at = cells.cell_at(number);
      require(std::ranges::find(mine.cells[group], at) != mine.cells[group].end(),
              "a snapshot does not follow its cells");
      kept.bytes[group].push_back(arena_->save_cell(group, at));
    }
  }
  std::vector<std::byte> bytes;
  append_layout(kept.layout, bytes);
  const auto parsed = parse_layout(bytes);
  require(parsed && *parsed == kept.layout, "a layout comes back from bytes as another");
  kept_ = std::move(kept);
  snapshot_.reset();
  if (random_.percent(80)) restore();
}

void StoreRun::restore() {
  if (restore_) return end_restore();
  if (!kept_) return take_snapshot();
  while (!conversations_.empty() && conversations_.size() + kept_->twins.size() > most_conversations_ &&
         random_.percent(80)) {
    close_conversation();
  }
  if (conversations_.size() + kept_->twins.size() > most_conversations_) return;
  Kept kept = *kept_;
  // As an archive would, or as they were; what attends to an encoder's output is known by another number
  // then.
  const bool as_loaded = random_.percent(60) ||
                         std::ranges::any_of(kept.layout.conversations,
                                             [](const ConversationLayout& one) { return one.encoded != 0; });
  for (ConversationLayout& conversation : kept.layout.conversations) {
    if (as_loaded) conversation.clean = 0;
  }
  const Recount counted = recount();
  const Need promised = promised_need(counted);
  Need need{};
  const auto fits_without = [&](std::size_t without) {
    const auto wanted = wanted_numbers(kept, without);
    Need total = promised;
    for (std::size_t group = 0; group < wanted.size(); ++group) {
      need[group] = wanted[group].size();
      total[group] += need[group];
    }
    return counted.fits(total);
  };
  std::size_t without = 0;
  while (!fits_without(without) && without < kept.layout.checkpoints.size()) ++without;
  const bool fits = fits_without(without);
  std::vector<TableId> into;
  for (std::size_t i = 0; i < kept.twins.size(); ++i) into.push_back(store_->open().value());
  tell(story_[steps_ % story_.size()] + " restore " + std::to_string(into.size()) +
       " conversations without " + std::to_string(without) + " checkpoints" +
       (as_loaded ? " as loaded" : ""));
  const std::uint64_t before = fits ? 0 : digest();
  auto ticket = store_->begin_restore(kept.layout, into);
  require(ticket.has_value() == fits, "begin_restore() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    for (const TableId id : into)
      require(store_->close(id) == Outcome::kDone, "an empty table does not close");
    require_shortage(ticket.error(), counted, need, promised);
    return require_failure(ticket.error(), Outcome::kNoSpace, before);
  }
  for (const TableId id : into)
    require(store_->close(id) == Outcome::kBusy, "a table that comes back is closed");
  restore_.emplace(std::move(*ticket), std::move(kept), into, without, as_loaded);
  const auto wanted = wanted_numbers(restore_->kept, without);
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    std::set<std::uint64_t> there;
    for (const Run& run : restore_->ticket.places(group)) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        there.insert(run.ordinal + i);
        restore_->places[{group, run.ordinal + i}] = {run.page, run.cell + i};
      }
    }
    require(there == wanted[group], "other cells are reserved than are wanted");
  }
  if (random_.percent(70)) end_restore();
}

void StoreRun::end_restore() {
  OpenRestore mine = std::move(*restore_);
  restore_.reset();
  if (random_.percent(30)) {
    tell(story_[steps_ % story_.size()] + " abort the restore");
    count(HardState::kRestoreAborted);
    {
      const RestoreTicket ended = std::move(mine.ticket);
    }
    for (const TableId id : mine.into) require(store_->close(id) == Outcome::kDone, "a table is not empty");
    return;
  }
  tell(story_[steps_ % story_.size()] + " commit the restore");
  for (const auto& [number, at] : mine.places)
    arena_->load_cell(number.first, at, mine.kept.bytes[number.first][number.second]);
  mine.ticket.commit();
  count(HardState::kRestored);
  const auto places = [&](std::size_t group, const std::vector<CellPiece>& pieces) {
    std::vector<CellAt> cells;
    for (const std::uint64_t number : numbers_of(pieces)) cells.push_back(mine.places.at({group, number}));
    return cells;
  };
  const Layout& layout = mine.kept.layout;
  std::vector<std::shared_ptr<TwinCheckpoint>> checkpoints(layout.checkpoints.size());
  std::size_t named = 0;
  std::uint64_t encoders = 0;
  for (std::size_t i = 0; i < mine.into.size(); ++i) {
    auto twin = std::make_unique<TwinConversation>(mine.kept.twins[i]);
    const ConversationLayout& described = layout.conversations[i];
    twin->id = mine.into[i];
    twin->promised = 0;
    twin->line = {};
    twin->remembered = 0;
    if (mine.as_loaded && !twin->cells.empty()) twin->cells.front().touched = true;
    if (described.encoded != 0) twin->encoded = encodes_ + described.encoded;
    encoders = std::max(encoders, described.encoded);
    std::vector<std::shared_ptr<TwinCheckpoint>> old = std::exchange(twin->checkpoints, {});
    for (std::size_t k = 0; k < old.size(); ++k) {
      const std::uint32_t index = described.checkpoints[k];
      if (index < mine.without) continue;
      if (!checkpoints[index]) {
        checkpoints[index] = std::make_shared<TwinCheckpoint>(*old[k]);
        for (std::size_t group = 0; group < spec_.groups.size(); ++group)
          checkpoints[index]->cells[group] = places(group, layout.checkpoints[index].cells[group]);
      }
      twin->checkpoints.push_back(checkpoints[index]);
    }
    for (const std::vector<CellPiece>& pieces : described.cells) named += numbers_of(pieces).size();
    conversations_.push_back(std::move(twin));
  }
  encodes_ += encoders;
  std::size_t distinct = 0;
  for (const auto& of_group : wanted_numbers(mine.kept, layout.checkpoints.size()))
    distinct += of_group.size();
  if (named > distinct) count(HardState::kRestoredShared);
}

}  // namespace kvasir::pages::test
