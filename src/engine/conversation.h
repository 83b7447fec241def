// What the engine keeps of one conversation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/row_pool.h"
#include "kvasir/report.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "pages/types.h"

namespace kvasir::engine {

struct ConversationSettings {
  int priority = 0;                       // higher goes first
  bool pinned = false;                    // never gives up its cells for others
  std::uint64_t salt = 0;                 // beginnings are shared only among conversations of one salt
  std::uint64_t max_length = UINT64_MAX;  // tokens; at most the engine's context
  std::uint64_t seed = 0;                 // of its draws
};

// What a draw brought.
struct Draw {
  std::optional<Token> token;  // to go on with; nothing where the history ends here
  bool goes_on = false;        // whether another is to be drawn after `token`
};

// Draws tokens for a conversation that generates. The engine calls it between the last job of a step and its
// commit, with no conversation locked but its own.
class Drawer {
 public:
  virtual ~Drawer() = default;

  // Whether what the next draw brings can be delivered. A conversation whose drawer is full is not planned.
  [[nodiscard]] virtual bool has_place() const noexcept = 0;

  // Tokens that it may still draw, for whoever reserves room for them.
  [[nodiscard]] virtual std::uint64_t tokens_ahead() const noexcept = 0;

  // Tokens that it may still draw, for whoever takes memory for them beforehand.
  [[nodiscard]] virtual std::uint64_t tokens_left() const noexcept { return 0; }

  // Draws from the row of logits of the last of `length` tokens, when the conversation has accepted
  // `accepted` tokens in its life. `room` is how many more it could take. An error takes the conversation out
  // of the step and ends the generation.
  [[nodiscard]] virtual Result<Draw> draw(const Row& logits, std::uint64_t seed, std::uint64_t accepted,
                                          std::uint64_t room) = 0;

  // The step is committed: what was drawn becomes visible.
  virtual void publish() noexcept = 0;

  // The generation ends for another reason than its own: nullptr where it was cancelled.
  virtual void end(const Error* error) noexcept = 0;
};

// A row of logits and the token it belongs to.
struct KeptRow {
  std::uint64_t ordinal = 0;
  std::shared_ptr<const Row> row;
};

// Tokens that wait to be computed.
struct Queue {
  std::vector<Token> tokens;        // kEmbedded for a vector
  std::vector<std::uint8_t> every;  // [token]: whether its logits are wanted wherever it stands
  std::vector<float> vectors;       // of the kEmbedded ones, one behind the other

  [[nodiscard]] std::uint64_t size() const noexcept { return tokens.size(); }
  [[nodiscard]] bool empty() const noexcept { return tokens.empty(); }
  void clear() noexcept {
    tokens.clear();
    every.clear();
    vectors.clear();
  }
  // Takes the first `count` off.
  void pop(std::uint64_t count, std::size_t vector_width) noexcept;
};

struct Conversation {
  enum class Life : std::uint8_t {
    kFree,
    kOpen,
    kClosing,  // when the open step ends
    kLoading,  // a load keeps its slot
  };

  Life life = Life::kFree;
  std::uint32_t generation = 0;  // of its slot: part of its id
  pages::TableId table{};
  ConversationSettings settings;

  // Committed.
  std::vector<Token> tokens;  // kEmbedded for a vector
  // That it attends to, in a model that reads one; shared with its forks.
  std::shared_ptr<const std::vector<Token>> source;
  std::uint64_t accepted = 0;                 // tokens that it ever committed
  std::uint64_t first_embedded = UINT64_MAX;  // no token from this ordinal on may serve others
  std::shared_ptr<const Row> last_logits;     // of the last token; null where there are none
  std::vector<KeptRow> kept;                  // rows that were asked for, by ordinal

  // Tokens behind those that are computed whose cells were dropped: they are queued again, before all else,
  // by whatever is queued next. From then on they are the first `again` of the queue.
  std::vector<Token> dropped;
  std::uint64_t again = 0;

  Queue queue;
  bool drawn_queued = false;       // its first token, behind those again, was drawn, not prompted
  std::shared_ptr<Drawer> drawer;  // while it generates
  std::uint64_t forks = 0;         // that were made of it

  // Planning.
  std::uint64_t reserved = 0;     // tokens promised to it whatever it queues
  std::uint64_t arrival = 0;      // of what it waits for
  std::uint64_t waited = 0;       // passes since its last piece
  std::uint64_t passed_over = 0;  // times that another was admitted before it although it came first
  bool refused = false;           // it was offered room and there was not enough
  bool admitted = false;          // all that is queued is promised
  bool asked_index = false;       // its beginning was looked for
  bool draw_due = false;          // its drawer is to draw from the last logits, before anything is computed
  bool drawing = false;           // its drawer draws the first token, without the lock
  bool in_step = false;
  std::uint64_t step_tokens = 0;  // of the queue, that the open step takes; `borrowed` ones first
  std::uint64_t borrowed = 0;     // of the queue, whose cells it holds by the index, to be shown at commit
  std::shared_ptr<const Error> shortage;  // why it is not admitted
  std::uint64_t short_of = 0;             // that time: what it needed
  std::uint64_t short_free = 0;           // and what was free
  // Where the step that is open has admitted it: what was promised to it before.
  std::optional<std::uint64_t> promised_before;

  // Tiers.
  std::uint64_t used = 0;   // greater: more recently
  std::uint64_t begun = 0;  // when what it waits for was asked for; a drawn token is no new wish
  bool paused = false;      // its cells make room for others although it is not idle
  // Its source is on its way through the encoder; and that is to end without effect.
  bool reads_source = false;
  bool reading_ended = false;
  // Why its cells did not come back; nothing is tried until it is asked again.
  std::shared_ptr<const Error> return_error;

  [[nodiscard]] bool open() const noexcept { return life == Life::kOpen; }

  // Tokens of its history, computed now or before; and those that wait behind them.
  [[nodiscard]] std::uint64_t length() const noexcept { return tokens.size() + dropped.size() + again; }
  [[nodiscard]] std::uint64_t asked() const noexcept { return queue.size() - again; }
};

}  // namespace kvasir::engine
