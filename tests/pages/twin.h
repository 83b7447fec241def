// The naive twin of a page store: what every conversation holds, as plain lists, and what the index should
// know. It knows nothing of pages but where blocks of the index and checkpoints lie, which no public call
// tells.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "fake_arena.h"
#include "kvasir/token.h"
#include "pages/page_store.h"

namespace kvasir::pages::test {

struct TwinCell {
  Token token = 0;
  std::int64_t position = 0;  // logical
  std::int64_t stored = 0;    // what its key was last turned to
  Contents contents = 0;
  std::uint32_t turns = 0;  // how its key was turned since it was computed; see Turns
  bool touched = false;     // moved, divided, the first behind a gap, or one that saw less than it would
};

// The ways in which keys were turned: 0 is not at all.
class Turns {
 public:
  struct Turn {
    std::uint32_t before = 0;
    std::int64_t turn = 0;
  };
  [[nodiscard]] std::uint32_t add(std::uint32_t before, std::int64_t turn) {
    all_.push_back({before, turn});
    return static_cast<std::uint32_t>(all_.size());
  }
  [[nodiscard]] const Turn& at(std::uint32_t turns) const { return all_.at(turns - 1); }

 private:
  std::vector<Turn> all_;
};

struct TwinCheckpoint {
  std::uint64_t ordinal = 0;
  std::vector<std::uint64_t> floors;       // [group]
  std::vector<std::vector<CellAt>> cells;  // [group]: of windows and states
};

// Whether an edit leaves everything as it is, wherever it applies.
[[nodiscard]] bool changes_nothing(const EditOperation& operation);

struct TwinConversation {
  TableId id{};
  std::uint64_t salt = 0;
  std::uint64_t script = 0;  // whose text it mostly follows
  std::vector<TwinCell> cells;
  std::vector<Token> owed;  // that it is behind by
  std::uint64_t promised = 0;
  std::uint64_t remembered = 0;       // tokens offered to the index
  std::vector<std::uint64_t> floors;  // [group]
  std::vector<std::uint64_t> starts;  // [group]: ordinals from which on cells are held
  std::vector<std::shared_ptr<TwinCheckpoint>> checkpoints;
  std::uint64_t encoded = 0;        // which encoder's output, 0: none
  std::uint64_t encoder = 0;        // the same when its cells were written: it may have come back since
  std::uint64_t encoded_cells = 0;  // its length
  LineInTicket line;                // in the open ticket

  // Cells before the first that was touched.
  [[nodiscard]] std::uint64_t clean_length() const;
  [[nodiscard]] std::int64_t next_position() const;
  [[nodiscard]] std::vector<Token> tokens() const;

  // What the cell of `token` behind the cells `before` would hold.
  [[nodiscard]] TwinCell next_cell(std::span<const TwinCell> before, Token token) const;

  // Why begin_edit() would refuse an operation on the conversation as it is; kDone where it would not.
  [[nodiscard]] Outcome judge(const EditOperation& operation, const StoreSpec& spec) const;

  // As begin_edit() documents its operations.
  void edit(const EditOperation& operation, const StoreSpec& spec, Turns& turns);

  // Whether all that the next token would need at this length is held.
  [[nodiscard]] bool rewinds_freely(std::uint64_t length, const StoreSpec& spec) const;

  // Whether an edit has put out of sight of the token `length` what it would else see.
  [[nodiscard]] bool sees_less(std::uint64_t length, const StoreSpec& spec) const;

  // Drops what lies above the length, or above the first ordinal that an edit changes.
  void drop_checkpoints_above(std::uint64_t ordinal);
};

// The contents of the cells that a new conversation would compute for these tokens.
[[nodiscard]] std::vector<Contents> clean_contents(const TwinConversation& like,
                                                   std::span<const Token> tokens);

// Of a cell of an encoder's output.
[[nodiscard]] Contents encoded_contents(std::uint64_t encoded, std::uint64_t cell);

struct TwinBlock {
  Contents key = 0;                        // of its last cell: a hash of all tokens up to there, and the salt
  std::uint64_t used = 0;                  // greater: more recently
  std::vector<std::vector<CellAt>> cells;  // [group]; of a recurrent group the state at its end
  std::optional<Contents> parent;          // nothing behind the root
};

// The prefix index as a list, searched from end to end.
class TwinIndex {
 public:
  // As PageStore::remember(). `cells` are the conversation's, for each group.
  void remember(TwinConversation& conversation, const StoreSpec& spec,
                const std::vector<std::vector<CellAt>>& cells);

  // The blocks of the longest known beginning of `tokens`, at most `limit` tokens.
  [[nodiscard]] std::vector<const TwinBlock*> find(const TwinConversation& like,
                                                   std::span<const Token> tokens, std::uint64_t limit,
                                                   std::uint32_t page_cells) const;
  void touch(Contents key);

  // Gives up the blocks that name one of these cells, and all behind them; answers how many.
  std::size_t forget_naming(const CellRun& run);

  // Gives up the least recently used block; false where there is none.
  [[nodiscard]] bool evict();

  void copied(const CopyCells& copy);
  void swapped(const SwapCells& swap);

  [[nodiscard]] const std::vector<TwinBlock>& blocks() const { return blocks_; }
  void clear() { blocks_.clear(); }

 private:
  [[nodiscard]] std::vector<CellAt> cells_for(const TwinConversation& conversation, const StoreSpec& spec,
                                              std::size_t group, const std::vector<CellAt>& cells,
                                              std::uint64_t end) const;
  [[nodiscard]] const TwinBlock* find(Contents key) const;
  [[nodiscard]] TwinBlock* find(Contents key);

  std::vector<TwinBlock> blocks_;
  std::uint64_t clock_ = 0;
};

// Lets lists of cells follow a move or an exchange.
void follow(std::vector<CellAt>& cells, const CopyCells& copy);
void follow(std::vector<CellAt>& cells, const SwapCells& swap);

// Whether a group keeps cells of tokens.
[[nodiscard]] bool keeps_tokens(const GroupSpec& group);

// The cells of a table in order of ordinals, for each group.
[[nodiscard]] std::vector<std::vector<CellAt>> cells_of(const PageStore& store, TableId table);

}  // namespace kvasir::pages::test
