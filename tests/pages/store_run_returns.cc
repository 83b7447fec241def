// The operations of a history on what conversations share and return to: the index, rewinds, and encoders'
// outputs.

#include <algorithm>
#include <ranges>
#include <utility>

#include "store_run.h"

namespace kvasir::pages::test {

void StoreRun::remember() {
  TwinConversation* const conversation = any_conversation();
  if (conversation == nullptr) return;
  tell("remember " + std::to_string(static_cast<std::uint32_t>(conversation->id)));
  remember(*conversation);
}

void StoreRun::remember(TwinConversation& conversation) {
  const bool in_pool = spilled(conversation) == 0;
  store_->remember(conversation.id, conversation.tokens(), conversation.salt);
  if (in_pool) index_.remember(conversation, spec_, pages::test::cells_of(*store_, conversation.id));
}

// Mostly by a new conversation.
void StoreRun::adopt() {
  if (random_.percent(50)) close_conversation();
  if (conversations_.size() < most_conversations_ && random_.percent(90)) open_conversation();
  TwinConversation* conversation = conversations_.empty() ? nullptr : conversations_.back().get();
  if (random_.percent(10)) conversation = any_conversation();
  if (conversation == nullptr || busy(*conversation)) return;
  std::vector<Token> tokens;
  for (std::uint64_t length = random_.between(store_->page_cells(), 6 * store_->page_cells());
       tokens.size() < length;) {
    tokens.push_back(token_at(*conversation, tokens.size()));
  }
  const std::uint64_t limit = random_.percent(80) ? tokens.size() - 1 : random_.below(tokens.size() + 10);
  tell("adopt by " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + ", at most " +
       std::to_string(limit));
  if (!conversation->cells.empty() || !conversation->owed.empty()) {
    const std::uint64_t before = digest();
    const auto refused = store_->adopt(conversation->id, tokens, limit, conversation->salt);
    require(!refused, "a conversation that is not empty adopts");
    return require_failure(refused.error(), Outcome::kWrongState, before);
  }
  const Recount counted = recount();
  std::vector<const TwinBlock*> blocks = index_.find(*conversation, tokens, limit, store_->page_cells());
  std::optional<Shape> shape;
  bool held_evictable = false;
  for (; !blocks.empty(); blocks.pop_back()) {
    shape = shape_of_beginning(blocks);
    if (!shape) continue;
    Recount with = counted;
    held_evictable = false;
    for (std::size_t group = 0; group < store_->group_count(); ++group) {
      for (const CellAt& at : shape->cells[group]) {
        held_evictable |= with.firm(group, at) == 0;
        with.add(group, at, Holder::kFirm);
      }
    }
    if (with.fits(promised_need(with, conversation, &*shape, conversation->promised))) break;
    shape.reset();
  }
  const std::uint64_t expected = blocks.size() * store_->page_cells();
  const auto found = store_->adopt(conversation->id, tokens, limit, conversation->salt);
  require(found.has_value(), "adopt() fails");
  require(*found == expected,
          "adopt() finds " + std::to_string(*found) + " tokens, not " + std::to_string(expected));
  if (expected == 0) return;
  if (random_.percent(50)) give_beginning_back(*conversation, tokens, limit, expected);
  if (held_evictable) count(HardState::kHitHoldsEvictable);
  if (!only_full()) count(HardState::kHybridHit);
  index_.touch(blocks.back()->key);
  for (std::size_t i = 0; i < expected; ++i) {
    conversation->cells.push_back(conversation->next_cell(conversation->cells, tokens[i]));
  }
  conversation->remembered = expected;
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    if (keeps_tokens(spec_.groups[group])) conversation->starts[group] = shape->starts[group];
  }
}

// It holds nothing of the beginning then, and finds it again.
void StoreRun::give_beginning_back(const TwinConversation& conversation, std::span<const Token> tokens,
                                   std::uint64_t limit, std::uint64_t expected) {
  store_->return_beginning(conversation.id);
  if (random_.percent(20)) check_all();
  const auto again = store_->adopt(conversation.id, tokens, limit, conversation.salt);
  require(again.has_value() && *again == expected, "a beginning that was given back is not found again");
  count(HardState::kBeginningReturned);
}

// What a new conversation would hold of these blocks; nothing where a group cannot serve their end.
std::optional<StoreRun::Shape> StoreRun::shape_of_beginning(std::span<const TwinBlock* const> blocks) const {
  const std::uint64_t end = blocks.size() * store_->page_cells();
  Shape shape{std::vector<std::uint64_t>(spec_.groups.size()),
              std::vector<std::vector<CellAt>>(spec_.groups.size())};
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    std::vector<CellAt>& cells = shape.cells[group];
    switch (spec_.groups[group].kind) {
      case GroupKind::kFull:
        for (const TwinBlock* block : blocks) {
          cells.insert(cells.end(), block->cells[group].begin(), block->cells[group].end());
        }
        break;
      case GroupKind::kWindow: {
        // Backwards as far as there are cells, no more than are kept.
        std::vector<CellAt> backwards;
        for (const TwinBlock* block : blocks | std::views::reverse) {
          if (block->cells[group].empty()) break;
          backwards.insert(backwards.end(), block->cells[group].rbegin(), block->cells[group].rend());
        }
        if (backwards.size() > kept_behind(group)) backwards.resize(kept_behind(group));
        if (backwards.size() < std::min(end, spec_.groups[group].width)) return std::nullopt;
        cells.assign(backwards.rbegin(), backwards.rend());
        shape.starts[group] = end - cells.size();
        break;
      }
      case GroupKind::kRecurrent:
        cells = blocks.back()->cells[group];
        if (cells.empty()) return std::nullopt;
        break;
      case GroupKind::kCross:
        break;
    }
  }
  return shape;
}

// What a rewind of a conversation to a length leaves of its cells, or a checkpoint brings.
StoreRun::Shape StoreRun::shape_after_rewind(const TwinConversation& conversation, std::uint64_t length,
                                             const TwinCheckpoint* checkpoint) const {
  Shape shape = shape_of(conversation);
  const bool freely = conversation.rewinds_freely(length, spec_);
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    const GroupKind kind = spec_.groups[group].kind;
    if (kind == GroupKind::kCross) continue;
    if (kind == GroupKind::kFull || freely) {
      const std::uint64_t kept = freely ? length : checkpoint == nullptr ? 0 : checkpoint->ordinal;
      if (kind != GroupKind::kRecurrent) shape.cells[group].resize(kept - shape.starts[group]);
      continue;
    }
    shape.cells[group] = checkpoint == nullptr ? std::vector<CellAt>() : checkpoint->cells[group];
    shape.starts[group] = 0;
    if (kind == GroupKind::kWindow && checkpoint != nullptr)
      shape.starts[group] = checkpoint->ordinal - shape.cells[group].size();
  }
  return shape;
}

void StoreRun::rewind() {
  TwinConversation* conversation = any_conversation();
  for (int attempt = 0; attempt < 4 && conversation != nullptr && conversation->checkpoints.empty();
       ++attempt) {
    conversation = any_conversation();
  }
  if (conversation == nullptr) return;
  const std::uint64_t all = conversation->cells.size() + conversation->owed.size();
  std::uint64_t length = random_.below(all + 1);
  if (random_.percent(30)) length = all - std::min(all, random_.below(20));
  // Behind a checkpoint.
  if (!conversation->checkpoints.empty() && random_.percent(60)) {
    const std::uint64_t from = random_.one_of(conversation->checkpoints)->ordinal;
    length = from + random_.below(std::min<std::uint64_t>(all - from, 12) + 1);
  }
  if (random_.percent(3)) length = all + 1;
  tell("rewind " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + " to " +
       std::to_string(length));
  if (length > all || busy(*conversation)) {
    const std::uint64_t before = digest();
    const auto refused = store_->rewind(conversation->id, length);
    require(!refused, "an impossible rewind succeeds");
    if (busy(*conversation)) count(HardState::kRefusedBusy);
    return require_failure(refused.error(), busy(*conversation) ? Outcome::kBusy : Outcome::kInvalidArgument,
                           before);
  }
  expect_rewound(*conversation, length);
}

// Back behind a checkpoint, a refusal, and all that is missing computed again.
void StoreRun::return_and_catch_up() {
  TwinConversation* conversation = nullptr;
  for (int attempt = 0; attempt < 6; ++attempt) {
    conversation = idle_conversation();
    if (conversation != nullptr && !conversation->checkpoints.empty()) break;
  }
  if (conversation == nullptr || conversation->checkpoints.empty()) return;
  const std::uint64_t all = conversation->cells.size() + conversation->owed.size();
  const std::uint64_t from = random_.one_of(conversation->checkpoints)->ordinal;
  const std::uint64_t length = from + random_.below(std::min<std::uint64_t>(all - from, 12) + 1);
  tell("return " + std::to_string(static_cast<std::uint32_t>(conversation->id)) + " to " +
       std::to_string(length) + " and catch up");
  expect_rewound(*conversation, length);
  if (conversation->owed.empty()) return;
  refuse_behind(*conversation);
  if (ticket_ || random_.percent(15)) return;
  begin({{conversation->id, conversation->owed.size()}}, {conversation});
  if (ticket_) commit_ticket();
}

void StoreRun::refuse_behind(const TwinConversation& conversation) {
  count(HardState::kRefusedBehind);
  const std::uint64_t before = digest();
  const EditOperation operation{EditOperation::Kind::kRemove, 0, 0, 0};
  const auto edit = store_->begin_edit(conversation.id, {&operation, 1});
  require(!edit, "an edit of a conversation that is behind");
  require_failure(edit.error(), Outcome::kWrongState, before);
}

// A line of a page or two of which only a beginning is accepted.
void StoreRun::speculate() {
  TwinConversation* const conversation = idle_conversation();
  if (ticket_ || conversation == nullptr) return;
  begin({{conversation->id, random_.between(store_->page_cells(), 2 * store_->page_cells())}},
        {conversation});
  if (!ticket_) return;
  in_part_ = true;
  commit_ticket();
  in_part_ = false;
}

// A prompt that takes all that can be had, and is given up.
void StoreRun::press() {
  TwinConversation* const conversation = idle_conversation();
  if (ticket_ || conversation == nullptr) return;
  const Recount counted = recount();
  const auto fits = [&](std::uint64_t count) {
    Need others{};
    Need need = need_of_plan(counted, {{conversation->id, count}}, {conversation}, others);
    for (std::size_t group = 0; group < need.size(); ++group) need[group] += others[group];
    return counted.fits(need);
  };
  std::uint64_t count = 1;
  for (std::uint64_t step = 512; step > 0; step /= 2) count += fits(count + step) ? step : 0;
  begin({{conversation->id, count}}, {conversation});
  if (ticket_) abort_ticket();
}

void StoreRun::expect_rewound(TwinConversation& conversation, std::uint64_t length) {
  const std::uint64_t user =
      conversation.promised - std::min(conversation.promised, conversation.owed.size());
  std::vector<Token> tokens = conversation.tokens();
  tokens.insert(tokens.end(), conversation.owed.begin(), conversation.owed.end());
  tokens.resize(length);
  if (length >= conversation.cells.size()) {
    const std::uint64_t dropped = conversation.cells.size() + conversation.owed.size() - length;
    require(store_->rewind_cost(conversation.id, length) == length - conversation.cells.size(),
            "rewind_cost() of tokens that are missing anyway");
    const auto behind = store_->rewind(conversation.id, length);
    require(behind && *behind == length - conversation.cells.size(), "a rewind of missing tokens");
    conversation.owed.resize(*behind);
    conversation.promised -= std::min(conversation.promised, dropped);
    return;
  }
  const bool freely = conversation.rewinds_freely(length, spec_);
  std::shared_ptr<TwinCheckpoint> checkpoint;
  for (const auto& one : conversation.checkpoints) {
    if (one->ordinal <= length) checkpoint = one;
  }
  const std::uint64_t kept = freely ? length : checkpoint ? checkpoint->ordinal : 0;
  const Shape shape = shape_after_rewind(conversation, length, checkpoint.get());
  Recount counted = recount();
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    for (const CellAt& at : shape.cells[group]) counted.add(group, at, Holder::kFirm);
    for (const Run& run : store_->runs(conversation.id, group)) counted.remove(group, run, Holder::kFirm);
  }
  const std::uint64_t behind = length - kept;
  const std::uint64_t promised = user + behind;
  const bool fits = counted.fits(promised_need(counted, &conversation, &shape, promised));
  const std::uint64_t before = fits ? 0 : digest();
  require(store_->rewind_cost(conversation.id, length) == behind, "rewind_cost() differs");
  const auto rewound = store_->rewind(conversation.id, length);
  require(rewound.has_value() == fits, "rewind() and the rule differ");
  if (!fits) {
    count(HardState::kShortage);
    return require_failure(rewound.error(), Outcome::kNoSpace, before);
  }
  require(*rewound == behind, "rewind() leaves a conversation behind by another number");
  if (freely && has(GroupKind::kWindow)) count(HardState::kFreeRewind);
  if (!freely && checkpoint) count(HardState::kCheckpointRestored);
  conversation.cells.resize(kept);
  conversation.starts = shape.starts;
  if (!freely) {
    conversation.floors = checkpoint ? checkpoint->floors : std::vector<std::uint64_t>(spec_.groups.size());
  }
  conversation.owed.assign(tokens.begin() + static_cast<std::ptrdiff_t>(kept), tokens.end());
  conversation.promised = promised;
  conversation.remembered = std::min(conversation.remembered, kept);
  conversation.drop_checkpoints_above(kept);
}

void StoreRun::begin_encode() {
  TwinConversation* conversation = any_conversation();
  if (encode_ || conversation == nullptr) return;
  for (int attempt = 0; attempt < 4 && conversation->encoded == 0; ++attempt)
    conversation = any_conversation();
  // Another output takes the place of what there was once the tokens are gone.
  if (!busy(*conversation) && random_.percent(60)) expect_rewound(*conversation, 0);
  const std::uint64_t cells = random_.between(1, 3 * store_->page_cells());
  tell("encode " + std::to_string(cells) + " for " +
       std::to_string(static_cast<std::uint32_t>(conversation->id)));
  const Recount counted = recount();
  const Need promises = promised_need(counted);
  Need need{};
  Need total = promises;
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    if (spec_.groups[group].kind == GroupKind::kCross) need[group] = cells;
    total[group] += need[group];
  }
  Outcome outcome = Outcome::kDone;
  if (busy(*conversation)) {
    outcome = Outcome::kBusy;
    count(HardState::kRefusedBusy);
  } else if (!conversation->cells.empty() || !conversation->owed.empty()) {
    outcome = Outcome::kWrongState;
  } else if (!counted.fits(total)) {
    outcome = Outcome::kNoSpace;
    count(HardState::kShortage);
  }
  const std::uint64_t before = outcome == Outcome::kDone ? 0 : digest();
  auto ticket = store_->begin_encode(conversation->id, cells);
  require(ticket.has_value() == (outcome == Outcome::kDone), "begin_encode() and the rule differ");
  if (outcome == Outcome::kNoSpace) require_shortage(ticket.error(), counted, need, promises);
  if (!ticket) return require_failure(ticket.error(), outcome, before);
  encode_.emplace(std::move(*ticket), conversation, cells, encodes_ + 1);
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    std::uint64_t cell = 0;
    for (const Run& run : encode_->ticket.new_runs(group)) {
      for (std::uint32_t i = 0; i < run.count; ++i, ++cell) {
        arena_->write(group, {run.page, run.cell + i}, encoded_contents(encode_->encoder, cell));
      }
    }
    require(cell == need[group], "an encoder's output has another number of cells");
  }
  if (random_.percent(80)) end_encode();
}

void StoreRun::end_encode() {
  tell(story_[steps_ % story_.size()] + " end the encoding");
  TwinConversation& conversation = *encode_->conversation;
  if (random_.percent(85)) {
    if (conversation.encoded != 0) count(HardState::kCrossReplaced);
    conversation.encoded = ++encodes_;
    conversation.encoder = encode_->encoder;
    conversation.encoded_cells = encode_->count;
    encode_->ticket.commit();
  } else {
    // Its place in the count of outputs is used by the next.
  }
  encode_.reset();
}

}  // namespace kvasir::pages::test
