// What a pass is to compute: tokens of many conversations, and where their cells lie.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kvasir/token.h"
#include "pages/ticket.h"
#include "pages/types.h"

namespace kvasir::model {

// Where a token's cell lies in one group.
struct CellPlace {
  pages::PageId page{};
  std::uint32_t cell = 0;
};

// One token of a pass.
struct PassRow {
  static constexpr std::uint32_t kNoLogits = UINT32_MAX;

  Token token = 0;
  const float* vector = nullptr;  // embedding floats in the place of the token's; they outlive the pass
  std::uint32_t sequence = 0;     // index into Pass::sequences
  std::uint64_t ordinal = 0;      // in its conversation
  std::int64_t position = 0;      // logical: what windows and biases use; rotation takes the shift off
  std::uint32_t logits_row = kNoLogits;  // where its logits go in the workspace
};

// Of a recurrent group: what the scan of a sequence starts from and leaves.
struct PassStates {
  std::optional<pages::PageId> from;      // the state before this pass's first row; nothing: that before any
                                          // token, zeros
  std::vector<pages::StateWrite> writes;  // (ordinal, state): the scan leaves the state behind all tokens
                                          // below `ordinal` there; ascending, the last is the end of the rows
};

// The rows [first_row, first_row + rows) of one conversation, of ascending ordinals, and all cells they may
// see.
struct PassSequence {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  // [group], in order of ordinals, up to and with the rows' own cells; of a recurrent group none. What is
  // made of them has as much memory as they have: who expects more than there are reserves it here.
  std::vector<std::vector<pages::Run>> runs;
  std::vector<std::uint64_t> floors;  // [group]: first ordinal that may be seen (windows), else 0
  std::vector<PassStates> states;     // [group]: of recurrent groups
};

struct Pass {
  std::vector<PassRow> rows;
  std::vector<PassSequence> sequences;
  std::vector<std::vector<CellPlace>> places;  // [group][row]: reserved cells; of a recurrent group none
  std::uint32_t logit_rows = 0;
};

// Where a pass stands.
struct PassProgress {
  std::uint32_t layer = 0;  // layers finished; the embedding and the output count for none
  std::uint32_t layers = 0;
  std::uint64_t jobs = 0;  // done so far
  bool attended = false;   // whether the last of them was one of attention
};

}  // namespace kvasir::model
