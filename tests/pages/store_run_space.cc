// What the twin says of space: the need of promises and tickets, found by playing them through.

#include <algorithm>

#include "store_run.h"

namespace kvasir::pages::test {
namespace {

// More than any history asks for; in a store of windows and states alone any number of tokens may fit.
constexpr std::uint64_t kTokensMax = 2000;

Need sum(Need left, const Need& right) {
  for (std::size_t group = 0; group < left.size(); ++group) left[group] += right[group];
  return left;
}

}  // namespace

bool StoreRun::has(GroupKind kind) const {
  return std::ranges::any_of(spec_.groups, [&](const GroupSpec& group) { return group.kind == kind; });
}

bool StoreRun::only_full() const {
  return std::ranges::all_of(spec_.groups,
                             [](const GroupSpec& group) { return group.kind == GroupKind::kFull; });
}

std::uint64_t StoreRun::kept_behind(std::size_t group) const {
  return spec_.groups[group].width + 64;
}

StoreRun::Shape StoreRun::shape_of(const TwinConversation& conversation) const {
  return {conversation.starts, pages::test::cells_of(*store_, conversation.id),
          return_ && return_->conversation == &conversation};
}

// Whether a cell that its conversation lets go of is free then: what lies in a tier frees nothing.
bool StoreRun::given_back(const Recount& counted, const Shape& shape, std::size_t group, CellAt at) {
  return counted.firm(group, at) == 1 && (shape.returns || !in_tier(at.page));
}

// Cells that a ticket holds for a line.
Need StoreRun::cells_of(const LineInTicket& line) const {
  Need cells{};
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    const GroupKind kind = spec_.groups[group].kind;
    if (kind == GroupKind::kFull) cells[group] = line.count;
    if (kind == GroupKind::kRecurrent) cells[group] = line.count > 0 ? 1 : 0;
    if (kind != GroupKind::kWindow) continue;
    const std::uint64_t ring = kept_behind(group) + spec_.pass_tokens + line.count - line.fewest;
    cells[group] = std::min(line.count, ring);
  }
  return cells;
}

// The most cells that are held at a time beyond those that are now, while `tokens` more are computed in steps
// of at most a pass: each step holds its new cells before its commit gives back what was passed.
std::uint64_t StoreRun::window_need(const Recount& counted, const Shape& shape, std::size_t group,
                                    std::uint64_t tokens) const {
  const std::vector<CellAt>& cells = shape.cells[group];
  const std::uint64_t start = shape.starts[group];
  const std::uint64_t length = start + cells.size();
  std::uint64_t most = 0;
  std::uint64_t freed = 0;
  std::uint64_t line = start;
  for (std::uint64_t done = 0; done < tokens; ++done) {
    for (; line + kept_behind(group) < length + done; ++line) {
      const bool is_new = line >= length;
      if (is_new || given_back(counted, shape, group, cells[line - start])) ++freed;
    }
    most = std::max(most, done + std::min<std::uint64_t>(spec_.pass_tokens, tokens - done) - freed);
  }
  return most;
}

Need StoreRun::need_of(const Recount& counted, const Shape& shape, const LineInTicket& line,
                       std::uint64_t promised) const {
  Need need{};
  if (promised == 0 && line.count == 0) return need;
  const Need held = cells_of(line);
  for (std::size_t group = 0; group < spec_.groups.size(); ++group) {
    std::uint64_t all = 0;
    switch (spec_.groups[group].kind) {
      case GroupKind::kFull:
        need[group] = promised;
        continue;
      case GroupKind::kWindow:
        all = window_need(counted, shape, group, promised + line.count);
        break;
      case GroupKind::kRecurrent: {
        const bool goes =
            !shape.cells[group].empty() && given_back(counted, shape, group, shape.cells[group][0]);
        // The line is accepted whole, in part, or not at all.
        std::uint64_t tokens = line.count > 0 && promised > 0 ? promised + 1 : promised;
        tokens = std::max(tokens, promised + line.paid);
        if (line.fewest < line.count) tokens = std::max(tokens, promised + line.count - 1);
        // One beside the present one, which stays for others or goes with the first step.
        all = goes ? std::min<std::uint64_t>(1, tokens) : std::min<std::uint64_t>(2, tokens);
        break;
      }
      case GroupKind::kCross:
        break;
    }
    need[group] = all > held[group] ? all - held[group] : 0;
  }
  return need;
}

// Of all conversations, one of them perhaps with another shape and promise.
Need StoreRun::promised_need(const Recount& counted, const TwinConversation* instead, const Shape* shape,
                             std::uint64_t promised) const {
  Need need = edit_more_;
  for (const auto& conversation : conversations_) {
    if (conversation.get() == instead) {
      need = sum(need, need_of(counted, *shape, conversation->line, promised));
    } else if (conversation->promised > 0 || conversation->line.count > 0) {
      const Shape own = only_full() ? Shape() : shape_of(*conversation);
      need = sum(need, need_of(counted, own, conversation->line, conversation->promised));
    }
  }
  return need;
}

Need StoreRun::promised_but(const Recount& counted, const TwinConversation& conversation) const {
  Need need = promised_need(counted);
  const Need own = need_of(counted, shape_of(conversation), conversation.line, conversation.promised);
  for (std::size_t group = 0; group < need.size(); ++group) need[group] -= own[group];
  return need;
}

// The longest prompt of a new conversation, accepted whole, that fits.
std::uint64_t StoreRun::largest(const Recount& counted, const Need& beside) const {
  std::uint64_t least = 0;
  std::uint64_t too_many = kTokensMax + 1;
  while (least + 1 < too_many) {
    const std::uint64_t middle = (least + too_many) / 2;
    const bool fits = counted.fits(sum(beside, cells_of({.count = middle, .fewest = middle})));
    (fits ? least : too_many) = middle;
  }
  return least;
}

// The most tokens that can be promised to a conversation beyond those that it is behind by; 0 where not even
// they fit.
std::uint64_t StoreRun::largest_for(const Recount& counted, const TwinConversation& conversation) const {
  const Shape shape = shape_of(conversation);
  const Need beside = promised_but(counted, conversation);
  std::uint64_t least = 0;
  std::uint64_t too_many = kTokensMax + 1;
  while (least + 1 < too_many) {
    const std::uint64_t middle = (least + too_many) / 2;
    const std::uint64_t all = conversation.owed.size() + middle;
    (counted.fits(sum(beside, need_of(counted, shape, conversation.line, all))) ? least : too_many) = middle;
  }
  return least;
}

void StoreRun::require_shortage(const Error& error, const Recount& counted, const Need& need,
                                const Need& beside) const {
  const auto fits = [&](std::uint64_t cells) {
    Need some = need;
    for (std::uint64_t& of_group : some) of_group = std::min(of_group, cells);
    return counted.fits(sum(beside, some));
  };
  const std::uint64_t wanted = *std::ranges::max_element(need);
  const std::uint64_t available = error.numbers().available.value_or(UINT64_MAX);
  require(error.numbers().wanted == wanted && available < wanted && (available == 0 || fits(available)) &&
              !fits(available + 1),
          "the numbers of a shortage: " + error.message());
}

void StoreRun::check_space(const Recount& counted) const {
  const Need promises = promised_need(counted);
  require(counted.fits(promises), "what is promised does not fit (S6)");
  const std::uint64_t free = store_->tokens_free();
  const std::uint64_t expected = largest(counted, promises);
  require(free == expected || (free > expected && expected == kTokensMax),
          "tokens_free() is " + std::to_string(free) + ", counted " + std::to_string(expected));
  const SpaceReport space = store_->space();
  require(space.free == free && space.promised == promised() && space.frames == spec_.frames &&
              space.frames_free == counted.frames_free(),
          "the report of space differs");
  // Each of them now and then: it is the dearest of all comparisons.
  for (std::size_t i = 0; i < conversations_.size(); ++i) {
    if (!only_full() && (steps_ + i) % 16 != 0) continue;
    const TwinConversation& conversation = *conversations_[i];
    const std::uint64_t most = largest_for(counted, conversation);
    if (most == kTokensMax) continue;
    // One that is behind as a fork is may lack the room for that alone.
    const bool may_lack = most == 0 && conversation.promised < conversation.owed.size();
    require((may_lack || store_->fits(conversation.id, most)) && !store_->fits(conversation.id, most + 1),
            "fits() differs at " + std::to_string(most));
  }
}

}  // namespace kvasir::pages::test
