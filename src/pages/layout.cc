// Whether a layout, wherever it comes from, describes conversations as a store could hold them.

#include "pages/layout.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::pages {
namespace {

std::unexpected<Error> wrong(const std::string& what) {
  return fail(Outcome::kCorrupt, what);
}

template <class T>
Result<std::uint64_t> sum_of_counts(std::span<const T> list) {
  std::uint64_t sum = 0;
  for (const T& one : list) {
    const auto more = base::checked_add(sum, one.count);
    if (!more) return wrong("more cells than can be counted");
    sum = *more;
  }
  return sum;
}

bool keeps_tokens(GroupKind kind) {
  return kind == GroupKind::kFull || kind == GroupKind::kWindow;
}

// Ordinals whose logical positions go on by one.
struct Positions {
  std::uint64_t ordinal = 0;
  std::uint64_t count = 0;
  std::int64_t position = 0;

  friend bool operator==(const Positions&, const Positions&) = default;
};

void join(std::vector<Positions>& all, const Positions& more) {
  if (!all.empty()) {
    Positions& last = all.back();
    if (last.position + static_cast<std::int64_t>(last.count) == more.position) {
      last.count += more.count;
      return;
    }
  }
  all.push_back(more);
}

// The same from an ordinal on.
std::vector<Positions> from(std::span<const Positions> all, std::uint64_t ordinal) {
  std::vector<Positions> rest;
  for (Positions one : all) {
    if (one.ordinal + one.count <= ordinal) continue;
    const std::uint64_t cut = one.ordinal < ordinal ? ordinal - one.ordinal : 0;
    one.ordinal += cut;
    one.count -= cut;
    one.position += static_cast<std::int64_t>(cut);
    rest.push_back(one);
  }
  return rest;
}

// The cells of one group, to be found by their numbers.
class Numbered {
 public:
  [[nodiscard]] static Result<Numbered> make(std::span<const CellStretch> stretches, GroupKind kind) {
    // A state's position is an ordinal, which may be that behind the last.
    const auto most = static_cast<std::uint64_t>(kPositionMax) + (kind == GroupKind::kRecurrent ? 1 : 0);
    Numbered numbered;
    numbered.stretches_ = stretches;
    numbered.firsts_.reserve(stretches.size());
    for (const CellStretch& stretch : stretches) {
      if (stretch.count == 0 || stretch.count > most + 1 || stretch.position > most + 1 - stretch.count)
        return wrong("cells at positions beyond " + std::to_string(most));
      numbered.firsts_.push_back(numbered.total_);
      const auto total = base::checked_add(numbered.total_, stretch.count);
      if (!total) return wrong("more cells than can be counted");
      numbered.total_ = *total;
    }
    return numbered;
  }

  [[nodiscard]] std::uint64_t position(std::uint64_t number) const {
    const std::size_t at = stretch_of(number);
    return stretches_[at].position + (number - firsts_[at]);
  }

  // Whether the pieces are cells of the group, none twice.
  [[nodiscard]] Status check(std::span<const CellPiece> pieces) const {
    for (const CellPiece& piece : pieces) {
      if (piece.count == 0 || piece.first > total_ || piece.count > total_ - piece.first)
        return wrong("a piece of cells that are not described");
    }
    std::vector<CellPiece> sorted(pieces.begin(), pieces.end());
    std::ranges::sort(sorted, {}, &CellPiece::first);
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i - 1].first + sorted[i - 1].count > sorted[i].first) return wrong("a cell is named twice");
    }
    return {};
  }

  // The logical positions of checked pieces, the first at `ordinal`.
  [[nodiscard]] Result<std::vector<Positions>> positions(std::span<const CellPiece> pieces,
                                                         std::uint64_t ordinal) const {
    std::vector<Positions> all;
    for (const CellPiece& piece : pieces) {
      if (piece.shift < -kPositionMax || piece.shift > kPositionMax)
        return wrong("a shift beyond all positions");
      std::uint64_t number = piece.first;
      for (std::size_t at = stretch_of(number); number < piece.first + piece.count; ++at) {
        const std::uint64_t end = std::min(piece.first + piece.count, firsts_[at] + stretches_[at].count);
        const auto position =
            static_cast<std::int64_t>(stretches_[at].position + (number - firsts_[at])) + piece.shift;
        const auto last = position + static_cast<std::int64_t>(end - number) - 1;
        if (position < 0 || last > kPositionMax) return wrong("a token at a position that there is not");
        join(all, {ordinal, end - number, position});
        ordinal += end - number;
        number = end;
      }
    }
    return all;
  }

 private:
  [[nodiscard]] std::size_t stretch_of(std::uint64_t number) const {
    const auto behind = std::ranges::upper_bound(firsts_, number);
    return static_cast<std::size_t>(behind - firsts_.begin()) - 1;
  }

  std::span<const CellStretch> stretches_;
  std::vector<std::uint64_t> firsts_;
  std::uint64_t total_ = 0;
};

class Check {
 public:
  Check(const Layout& layout, const StoreSpec& spec) : layout_(&layout), spec_(&spec) {
    for (const GroupSpec& group : spec.groups) {
      moves_ = moves_ && group.kind != GroupKind::kRecurrent;
      has_other_ = has_other_ || group.kind == GroupKind::kWindow || group.kind == GroupKind::kRecurrent;
      has_encoder_ = has_encoder_ || group.kind == GroupKind::kCross;
    }
    moves_ = moves_ && spec.positions_can_move;
    first_of_.resize(layout.conversations.size() + 1);
    for (std::size_t i = layout.conversations.size(); i-- > 0;) {
      const std::uint64_t encoded = layout.conversations[i].encoded;
      if (encoded < first_of_.size()) first_of_[encoded] = i;
    }
  }

  [[nodiscard]] Status all() {
    if (layout_->cells.size() != spec_->groups.size()) {
      return wrong("the cells of " + std::to_string(layout_->cells.size()) + " groups, the cache has " +
                   std::to_string(spec_->groups.size()));
    }
    for (std::size_t group = 0; group < spec_->groups.size(); ++group) {
      KVASIR_ASSIGN(Numbered cells, Numbered::make(layout_->cells[group], kind(group)));
      numbered_.push_back(std::move(cells));
    }
    for (const CheckpointLayout& checkpoint : layout_->checkpoints) KVASIR_TRY(check(checkpoint));
    for (const ConversationLayout& conversation : layout_->conversations) KVASIR_TRY(check(conversation));
    return {};
  }

 private:
  [[nodiscard]] GroupKind kind(std::size_t group) const { return spec_->groups[group].kind; }

  // Whether pieces are those of a window that ends at `length`; its release line.
  [[nodiscard]] Status check_window(std::size_t group, std::span<const CellPiece> pieces,
                                    std::uint64_t length, std::uint64_t floor) const {
    KVASIR_ASSIGN(const std::uint64_t held, cells_in(pieces));
    const std::uint64_t width = spec_->groups[group].width;
    if (held > length || held > width + kReleaseSlack || floor > length)
      return wrong("a window of " + std::to_string(held) + " cells at " + std::to_string(length));
    const std::uint64_t start = length - held;
    if (start > std::max(floor, length - std::min(length, width)))
      return wrong("a window that begins at " + std::to_string(start) + " of " + std::to_string(length));
    return {};
  }

  [[nodiscard]] Status check_state(std::size_t group, std::span<const CellPiece> pieces,
                                   std::uint64_t ordinal) const {
    KVASIR_ASSIGN(const std::uint64_t states, cells_in(pieces));
    if (states != (ordinal > 0 ? 1 : 0))
      return wrong(std::to_string(states) + " states at " + std::to_string(ordinal));
    if (ordinal == 0) return {};
    if (numbered_[group].position(pieces.front().first) != ordinal || pieces.front().shift != 0)
      return wrong("a state that is not of " + std::to_string(ordinal));
    return {};
  }

  [[nodiscard]] Status check(const CheckpointLayout& checkpoint) const {
    if (checkpoint.cells.size() != spec_->groups.size() || checkpoint.ordinal == 0)
      return wrong("a checkpoint of another kind");
    for (std::size_t group = 0; group < spec_->groups.size(); ++group) {
      const std::span<const CellPiece> pieces = checkpoint.cells[group];
      KVASIR_TRY(numbered_[group].check(pieces));
      if (kind(group) == GroupKind::kRecurrent) {
        KVASIR_TRY(check_state(group, pieces, checkpoint.ordinal));
      } else if (kind(group) == GroupKind::kWindow) {
        KVASIR_TRY(check_window(group, pieces, checkpoint.ordinal, checkpoint.floors[group]));
        KVASIR_TRY(numbered_[group].positions(pieces, 0));
        KVASIR_TRY(check_shifts(pieces));
      } else if (!pieces.empty() || checkpoint.floors[group] != 0) {
        return wrong("a checkpoint that keeps what needs no keeping");
      }
    }
    return {};
  }

  [[nodiscard]] Status check_shifts(std::span<const CellPiece> pieces) const {
    if (moves_ || std::ranges::all_of(pieces, [](const CellPiece& piece) { return piece.shift == 0; }))
      return {};
    return wrong("positions have moved that cannot in this model");
  }

  [[nodiscard]] Status check(const ConversationLayout& conversation) const {
    constexpr auto kMost = static_cast<std::uint64_t>(kPositionMax) + 1;
    const std::uint64_t length = conversation.length;
    if (length > kMost || conversation.behind > kMost - length)
      return wrong("a conversation of " + std::to_string(length) + " tokens");
    if (conversation.cells.size() != spec_->groups.size()) return wrong("a conversation of another kind");
    if (conversation.clean > length) return wrong("more clean tokens than there are");
    if (conversation.behind > 0 && !has_other_) return wrong("a conversation is behind that cannot be");
    std::vector<std::vector<Positions>> positions;
    std::vector<std::uint64_t> starts;
    for (std::size_t group = 0; group < spec_->groups.size(); ++group) {
      const std::span<const CellPiece> pieces = conversation.cells[group];
      KVASIR_TRY(numbered_[group].check(pieces));
      KVASIR_TRY(check_shifts(pieces));
      if (kind(group) != GroupKind::kWindow && conversation.floors[group] != 0)
        return wrong("a floor where there is no window");
      if (kind(group) == GroupKind::kRecurrent) KVASIR_TRY(check_state(group, pieces, length));
      if (kind(group) == GroupKind::kWindow)
        KVASIR_TRY(check_window(group, pieces, length, conversation.floors[group]));
      if (!keeps_tokens(kind(group))) continue;
      KVASIR_ASSIGN(const std::uint64_t held, cells_in(pieces));
      if (kind(group) == GroupKind::kFull && held != length)
        return wrong(std::to_string(held) + " cells of " + std::to_string(length) + " tokens");
      starts.push_back(length - held);
      KVASIR_ASSIGN(std::vector<Positions> of_group, numbered_[group].positions(pieces, length - held));
      positions.push_back(std::move(of_group));
    }
    KVASIR_TRY(check_agreement(positions, starts));
    KVASIR_TRY(check_encoded(conversation));
    return check_checkpoints(conversation);
  }

  // A token has one position, whichever group keeps its cell.
  [[nodiscard]] static Status check_agreement(std::span<const std::vector<Positions>> positions,
                                              std::span<const std::uint64_t> starts) {
    for (std::size_t group = 1; group < positions.size(); ++group) {
      const std::uint64_t both = std::max(starts[0], starts[group]);
      if (from(positions[0], both) != from(positions[group], both)) return wrong("a token has two positions");
    }
    return {};
  }

  // Those of one encoder's output attend to the same cells.
  [[nodiscard]] Status check_encoded(const ConversationLayout& conversation) const {
    if (conversation.encoded > layout_->conversations.size())
      return wrong("an encoder's output without a number");
    for (std::size_t group = 0; group < spec_->groups.size(); ++group) {
      if (kind(group) != GroupKind::kCross) continue;
      const std::vector<CellPiece>& cells = conversation.cells[group];
      if (cells.empty() != (conversation.encoded == 0)) return wrong("an encoder's output without cells");
      const ConversationLayout& first = layout_->conversations[first_of_[conversation.encoded]];
      if (first.cells.size() != spec_->groups.size() || first.cells[group] != cells)
        return wrong("an encoder's output of two kinds");
    }
    if (!has_encoder_ && conversation.encoded != 0)
      return wrong("an encoder's output where there is no encoder");
    return {};
  }

  [[nodiscard]] Status check_checkpoints(const ConversationLayout& conversation) const {
    std::uint64_t before = 0;
    for (const std::uint32_t index : conversation.checkpoints) {
      if (index >= layout_->checkpoints.size()) return wrong("a checkpoint that is not described");
      const std::uint64_t ordinal = layout_->checkpoints[index].ordinal;
      if (ordinal <= before || ordinal > conversation.length)
        return wrong("a checkpoint at " + std::to_string(ordinal) + " of " +
                     std::to_string(conversation.length));
      before = ordinal;
    }
    return {};
  }

  const Layout* layout_;
  const StoreSpec* spec_;
  std::vector<Numbered> numbered_;
  bool moves_ = true;       // positions can
  bool has_other_ = false;  // groups that a rewind may leave behind
  bool has_encoder_ = false;
  std::vector<std::size_t> first_of_;  // [encoder's output]: the first conversation that attends to it
};

}  // namespace

Result<std::uint64_t> cells_in(std::span<const CellStretch> stretches) {
  return sum_of_counts(stretches);
}

Result<std::uint64_t> cells_in(std::span<const CellPiece> pieces) {
  return sum_of_counts(pieces);
}

Status check_layout(const Layout& layout, const StoreSpec& spec) {
  return base::within_memory([&]() -> Status { return Check(layout, spec).all(); });
}

}  // namespace kvasir::pages
