// The run behind `kvasir logits`: one conversation whose logits are wanted, others beside it, and what may be
// done to it on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir::cli {

// What is done after some of the tokens. `first` and `second` are its numbers: A and B of swap, KEEP and
// COUNT of shift, D of divide.
struct Via {
  enum class Kind : std::uint8_t {
    kNone,
    kFork,
    kRewind,
    kAbort,
    kSuspend,
    kCompact,
    kPrefix,
    kSwap,
    kShift,
    kDivide,
    kArchive,
    kSpill
  };
  Kind kind = Kind::kNone;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// "fork", "swap:A:B", ... kInvalidArgument lists what is known.
[[nodiscard]] Result<Via> parse_via(const std::string& text);

// What was done, as the line on standard error reports it.
struct LogitsReport {
  std::uint64_t steps = 0;
  std::uint64_t passes = 0;
  std::uint64_t beside_in_same_pass = 0;  // most other conversations that shared a pass with ours
  std::uint64_t cells_shared = 0;
  std::uint64_t cells_dropped = 0;
  std::uint64_t layers_undone = 0;
  std::uint64_t jobs_suspended = 0;
  std::uint64_t cells_moved = 0;
  std::uint64_t cells_reused = 0;
  std::uint64_t bytes_loaded = 0;
  std::uint64_t tokens_recomputed = 0;
  std::uint64_t bytes_spilled = 0;   // of cells that left the pool,
  std::uint64_t bytes_on_disk = 0;   // that the disk held then,
  std::uint64_t bytes_returned = 0;  // and that came back
};

// Makes another engine of the same kind, with pages of so many cells.
using MakeEngine = std::function<Result<std::unique_ptr<engine::Engine>>(std::uint32_t page_cells)>;

// One use of an engine, or of one after the other; not thread-safe. Ends with kCancelled where the user
// interrupts.
class LogitsRun {
 public:
  // `source` is what the encoder reads for ours, the others read as much; empty where the model has none.
  LogitsRun(std::unique_ptr<engine::Engine> engine, MakeEngine make_engine, std::uint32_t beside,
            std::vector<Token> source = {})
      : engine_(std::move(engine)),
        make_engine_(std::move(make_engine)),
        beside_(beside),
        source_(std::move(source)) {}

  // Opens the conversations, and lets them read their sources. For `compact` the pool is filled so that ours
  // will lie scattered.
  [[nodiscard]] Status open(const Via& via);

  // Takes one piece of our ids, beside as many random ids of each other conversation.
  [[nodiscard]] Status piece(std::span<const Token> ids);

  // Does what was asked for, now that `held` is what ours holds. kUnsupported or kInvalidArgument where it
  // cannot be done.
  [[nodiscard]] Status act(const Via& via, std::span<const Token> held);

  // The rows of logits since the last call.
  [[nodiscard]] Result<std::vector<float>> take_rows() { return engine_->take_logits(main_); }
  [[nodiscard]] Result<std::span<const float>> last_row() const { return engine_->last_logits(main_); }
  [[nodiscard]] LogitsReport report() const;

 private:
  [[nodiscard]] Result<engine::ConversationId> open_other();
  [[nodiscard]] std::vector<Token> random_tokens(std::size_t count);
  [[nodiscard]] Status read_source(engine::ConversationId id, std::span<const Token> source);
  [[nodiscard]] Status prompt_others(std::size_t count);
  [[nodiscard]] Status prompt_random(engine::ConversationId id, std::size_t count);
  [[nodiscard]] Status drain();
  [[nodiscard]] Status step();
  [[nodiscard]] Status stop_in_last_layer();
  void count(const engine::StepReport& report);
  [[nodiscard]] Status fill_pool(std::uint64_t each);
  [[nodiscard]] Status scatter();
  [[nodiscard]] Status fork();
  [[nodiscard]] Status rewind(std::uint64_t length);
  [[nodiscard]] Status exchange_cells();
  [[nodiscard]] Status compact();
  [[nodiscard]] Status find_again(std::span<const Token> held);
  [[nodiscard]] Status shift(const Via& via, std::uint64_t length);
  [[nodiscard]] Status move_by_archive();
  [[nodiscard]] Status divide(const Via& via, std::uint64_t length);
  [[nodiscard]] Status spill();
  [[nodiscard]] Status put_away(engine::ConversationId id);
  [[nodiscard]] Token next_random();

  std::unique_ptr<engine::Engine> engine_;
  MakeEngine make_engine_;
  std::uint32_t beside_;
  std::vector<Token> source_;
  engine::ConversationId main_{};
  std::vector<engine::ConversationId> others_;
  std::vector<engine::ConversationId> fillers_;  // hold every second cell of the pool
  bool abort_next_ = false;
  bool suspend_ = false;
  std::uint64_t drawn_ = 0;
  LogitsReport report_;
};

}  // namespace kvasir::cli
