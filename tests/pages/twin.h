// The naive twin of a page store: what every conversation holds, as plain lists, and what the index should
// know. It knows nothing of pages but where the blocks of the index lie, which no public call tells.
#pragma once

#include <cstdint>
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
  Contents contents = 0;
  bool touched = false;  // moved, divided, or the first behind a gap
};

struct TwinConversation {
  TableId id{};
  std::uint64_t salt = 0;
  std::uint64_t script = 0;  // whose text it mostly follows
  std::vector<TwinCell> cells;
  std::uint64_t promised = 0;
  std::uint64_t remembered = 0;  // tokens offered to the index

  // Cells before the first that was touched.
  [[nodiscard]] std::uint64_t clean_length() const;
  [[nodiscard]] std::int64_t next_position() const;
  [[nodiscard]] std::vector<Token> tokens() const;

  // What the cell of `token` behind the cells `before` would hold.
  [[nodiscard]] TwinCell next_cell(std::span<const TwinCell> before, Token token) const;

  // As begin_edit() documents its operations.
  void edit(const EditOperation& operation);
};

// The contents of the cells that a new conversation would compute for these tokens.
[[nodiscard]] std::vector<Contents> clean_contents(std::uint64_t salt, std::span<const Token> tokens);

struct TwinBlock {
  Contents key = 0;                        // of its last cell: a hash of all tokens up to there, and the salt
  std::uint64_t used = 0;                  // greater: more recently
  std::vector<std::vector<CellAt>> cells;  // [group]
  std::optional<Contents> parent;          // nothing behind the root
};

// The prefix index as a list, searched from end to end.
class TwinIndex {
 public:
  // As PageStore::remember(). `cells` are the conversation's, for each group.
  void remember(TwinConversation& conversation, std::uint32_t page_cells,
                const std::vector<std::vector<CellAt>>& cells);

  // The blocks of the longest known beginning of `tokens`, at most `limit` tokens.
  [[nodiscard]] std::vector<const TwinBlock*> find(std::uint64_t salt, std::span<const Token> tokens,
                                                   std::uint64_t limit, std::uint32_t page_cells) const;
  void touch(Contents key);

  // Gives up the least recently used block; false where there is none.
  [[nodiscard]] bool evict();

  void copied(const CopyCells& copy);
  void swapped(const SwapCells& swap);

  [[nodiscard]] const std::vector<TwinBlock>& blocks() const { return blocks_; }
  void clear() { blocks_.clear(); }

 private:
  [[nodiscard]] const TwinBlock* find(Contents key) const;
  [[nodiscard]] TwinBlock* find(Contents key);

  std::vector<TwinBlock> blocks_;
  std::uint64_t clock_ = 0;
};

// The cells of a table in order of ordinals, for each group.
[[nodiscard]] std::vector<std::vector<CellAt>> cells_of(const PageStore& store, TableId table);

}  // namespace kvasir::pages::test
