// A step from its plan to its commit: the ticket, the passes and what they are to deliver.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.h"

namespace kvasir::engine {

struct Engine::OpenStep {
  explicit OpenStep(pages::Ticket reserved) : ticket(std::move(reserved)) {}

  // What one conversation contributes, in the order of the ticket's plan.
  struct Line {
    ConversationId id{};
    std::uint64_t tokens = 0;          // from the front of its queue
    bool ends_queue = false;           // its last token gets logits
    std::shared_ptr<Row> last_logits;  // of the last token, if it ends the queue
    std::vector<float> every_logit;    // row after row, of the tokens that want one
    std::size_t rows_gathered = 0;     // of every_logit
  };

  // Tokens [first, first + count) of a line.
  struct Piece {
    std::size_t line = 0;
    std::uint64_t first = 0;
    std::uint32_t count = 0;
  };

  pages::Ticket ticket;
  std::vector<Line> lines;
  std::vector<std::uint64_t> accepted;  // [line]: all of its tokens
  std::vector<std::vector<Piece>> passes;
  std::size_t pass = 0;       // at work
  bool pass_started = false;  // forward holds it
};

}  // namespace kvasir::engine
