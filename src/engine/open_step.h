// A step from its plan to its commit: the ticket, the passes and what they are to deliver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/conversation.h"
#include "engine/engine.h"
#include "engine/planner.h"

namespace kvasir::engine {

// Room for `size` elements, growing as a vector does by itself: what grows by a token a step is not copied at
// each of them.
template <class T>
void make_room(std::vector<T>& vector, std::size_t size) {
  if (vector.capacity() < size) vector.reserve(std::max(size, vector.capacity() * 2));
}

struct Engine::OpenStep {
  // What one conversation contributes, in the order of the ticket's plan.
  struct Line {
    std::size_t index = 0;  // of its conversation
    ConversationId id{};
    std::uint64_t borrowed = 0;                   // of the front of its queue, which are not computed
    std::uint64_t tokens = 0;                     // behind those
    std::uint64_t embedded = 0;                   // of them vectors
    std::vector<float> vectors;                   // of those
    bool ends_queue = false;                      // its last token gets logits
    std::shared_ptr<Row> last_row;                // of the last token, if it ends the queue
    std::vector<KeptRow> kept;                    // of the tokens that want one
    std::vector<std::shared_ptr<Row>> kept_rows;  // the same rows, to be written
    std::size_t kept_written = 0;
    bool withdrawn = false;          // its conversation is taken out
    std::shared_ptr<Drawer> drawer;  // who draws from last_row; with what the draw depends on
    std::uint64_t seed = 0;
    std::uint64_t accepted = 0;
    std::uint64_t room = 0;
    std::optional<Draw> draw;
    std::shared_ptr<const Error> failure;  // why its draw brought nothing

    // Holds nothing, but for memory.
    void clear() noexcept {
      Line empty;
      empty.vectors.swap(vectors);
      empty.kept.swap(kept);
      empty.kept_rows.swap(kept_rows);
      empty.vectors.clear();
      empty.kept.clear();
      empty.kept_rows.clear();
      *this = std::move(empty);
    }
  };

  // Tokens [first, first + count) of a line.
  struct Piece {
    std::size_t line = 0;
    std::uint64_t first = 0;
    std::uint32_t count = 0;
  };

  [[nodiscard]] std::size_t passes() const noexcept { return pass_ends.size(); }
  [[nodiscard]] std::span<const Piece> pieces_of(std::size_t index) const noexcept {
    const std::size_t begin = index == 0 ? 0 : pass_ends[index - 1];
    return std::span(pieces).subspan(begin, pass_ends[index] - begin);
  }

  // One more line, empty.
  Line& add_line() {
    const std::size_t count = lines.size();
    if (count == all_lines.size()) all_lines.emplace_back();
    lines = std::span(all_lines).first(count + 1);
    return lines.back();
  }

  // Empty again, with the memory it has.
  void reset() noexcept {
    ticket.reset();
    for (Line& line : lines) line.clear();
    lines = {};
    accepted.clear();
    pieces.clear();
    pass_ends.clear();
    pass = 0;
    pass_started = false;
  }

  // There is one from begin_step() until the step ends.
  [[nodiscard]] pages::Ticket& reservation() noexcept {
    return *ticket;  // NOLINT(bugprone-unchecked-optional-access): see above
  }
  [[nodiscard]] const pages::Ticket& reservation() const noexcept {
    return *ticket;  // NOLINT(bugprone-unchecked-optional-access): see above
  }

  std::optional<pages::Ticket> ticket;
  std::span<Line> lines;
  std::vector<Line> all_lines;          // those of this step and, behind them, empty ones
  std::vector<std::uint64_t> accepted;  // [line]: tokens of it that are committed
  std::vector<Piece> pieces;            // pass after pass
  std::vector<std::size_t> pass_ends;   // [pass]: where its pieces end
  std::vector<Piece> at_work;           // those pieces of this pass that are computed
  std::size_t pass = 0;                 // at work
  bool pass_started = false;            // forward holds it
  std::int64_t pass_ns = 0;             // that its jobs took so far

  // Of planning.
  std::vector<std::size_t> waiting;  // indices of conversations
  PassPlan plan;
  std::vector<Demand> demands;
  std::vector<std::size_t> who;        // [demand]: index of its conversation
  std::vector<std::uint64_t> totals;   // [demand]: tokens
  std::vector<std::size_t> line_of;    // [demand]
  std::vector<pages::Growth> growths;  // [line]
};

}  // namespace kvasir::engine
