// A layout as bytes.
//
//   u64 groups
//   for each group       u64 stretches, then for each u64 count, u64 position
//   u64 checkpoints      then for each: u64 ordinal, for each group u64 floor and a list of pieces
//   u64 conversations    then for each: u64 length, u64 behind, u64 clean, u64 encoded, for each group u64
//                        floor and a list of pieces, u64 checkpoints and for each u32 index
//   a list of pieces     u64 pieces, then for each u64 first, u64 count, i64 shift

#include "base/bytes.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "pages/layout.h"

namespace kvasir::pages {
namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr std::uint64_t kStretchBytes = 16;
constexpr std::uint64_t kPieceBytes = 24;

void append_groups(const std::array<std::uint64_t, kGroupsMax>& floors,
                   std::span<const std::vector<CellPiece>> groups, ByteWriter& out) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    out.number(floors[group]);
    out.number(std::uint64_t{groups[group].size()});
    for (const CellPiece& piece : groups[group]) {
      out.number(piece.first);
      out.number(piece.count);
      out.signed_number(piece.shift);
    }
  }
}

Result<std::vector<CellPiece>> parse_pieces(ByteReader& in) {
  KVASIR_ASSIGN(const std::uint64_t count, in.count(kPieceBytes));
  std::vector<CellPiece> pieces(count);
  for (CellPiece& piece : pieces) {
    KVASIR_ASSIGN(piece.first, in.number<std::uint64_t>());
    KVASIR_ASSIGN(piece.count, in.number<std::uint64_t>());
    KVASIR_ASSIGN(piece.shift, in.signed_number());
  }
  return pieces;
}

Status parse_groups(ByteReader& in, std::size_t groups, std::array<std::uint64_t, kGroupsMax>& floors,
                    std::vector<std::vector<CellPiece>>& cells) {
  cells.resize(groups);
  for (std::size_t group = 0; group < groups; ++group) {
    KVASIR_ASSIGN(floors[group], in.number<std::uint64_t>());
    KVASIR_ASSIGN(cells[group], parse_pieces(in));
  }
  return {};
}

Result<std::vector<CellStretch>> parse_stretches(ByteReader& in) {
  KVASIR_ASSIGN(const std::uint64_t count, in.count(kStretchBytes));
  std::vector<CellStretch> stretches(count);
  for (CellStretch& stretch : stretches) {
    KVASIR_ASSIGN(stretch.count, in.number<std::uint64_t>());
    KVASIR_ASSIGN(stretch.position, in.number<std::uint64_t>());
  }
  return stretches;
}

Result<ConversationLayout> parse_conversation(ByteReader& in, std::size_t groups) {
  ConversationLayout conversation;
  KVASIR_ASSIGN(conversation.length, in.number<std::uint64_t>());
  KVASIR_ASSIGN(conversation.behind, in.number<std::uint64_t>());
  KVASIR_ASSIGN(conversation.clean, in.number<std::uint64_t>());
  KVASIR_ASSIGN(conversation.encoded, in.number<std::uint64_t>());
  KVASIR_TRY(parse_groups(in, groups, conversation.floors, conversation.cells));
  KVASIR_ASSIGN(const std::uint64_t checkpoints, in.count(sizeof(std::uint32_t)));
  conversation.checkpoints.resize(checkpoints);
  for (std::uint32_t& checkpoint : conversation.checkpoints) {
    KVASIR_ASSIGN(checkpoint, in.number<std::uint32_t>());
  }
  return conversation;
}

Result<Layout> parse(ByteReader& in) {
  Layout layout;
  KVASIR_ASSIGN(const std::uint64_t groups, in.number<std::uint64_t>());
  if (groups == 0 || groups > kGroupsMax) {
    return fail(Outcome::kCorrupt, std::to_string(groups) + " groups",
                {.wanted = groups, .limit = kGroupsMax});
  }
  for (std::uint64_t group = 0; group < groups; ++group) {
    KVASIR_ASSIGN(std::vector<CellStretch> stretches, parse_stretches(in));
    layout.cells.push_back(std::move(stretches));
  }
  const std::uint64_t lists = groups * 2 * sizeof(std::uint64_t);
  KVASIR_ASSIGN(const std::uint64_t checkpoints, in.count(sizeof(std::uint64_t) + lists));
  for (std::uint64_t i = 0; i < checkpoints; ++i) {
    CheckpointLayout& checkpoint = layout.checkpoints.emplace_back();
    KVASIR_ASSIGN(checkpoint.ordinal, in.number<std::uint64_t>());
    KVASIR_TRY(parse_groups(in, groups, checkpoint.floors, checkpoint.cells));
  }
  KVASIR_ASSIGN(const std::uint64_t conversations, in.count(5 * sizeof(std::uint64_t) + lists));
  for (std::uint64_t i = 0; i < conversations; ++i) {
    KVASIR_ASSIGN(ConversationLayout conversation, parse_conversation(in, groups));
    layout.conversations.push_back(std::move(conversation));
  }
  KVASIR_TRY(in.end());
  return layout;
}

}  // namespace

void append_layout(const Layout& layout, std::vector<std::byte>& bytes) {
  ByteWriter out(bytes);
  out.number(std::uint64_t{layout.cells.size()});
  for (const std::vector<CellStretch>& stretches : layout.cells) {
    out.number(std::uint64_t{stretches.size()});
    for (const CellStretch& stretch : stretches) {
      out.number(stretch.count);
      out.number(stretch.position);
    }
  }
  out.number(std::uint64_t{layout.checkpoints.size()});
  for (const CheckpointLayout& checkpoint : layout.checkpoints) {
    out.number(checkpoint.ordinal);
    append_groups(checkpoint.floors, checkpoint.cells, out);
  }
  out.number(std::uint64_t{layout.conversations.size()});
  for (const ConversationLayout& conversation : layout.conversations) {
    for (const std::uint64_t number :
         {conversation.length, conversation.behind, conversation.clean, conversation.encoded}) {
      out.number(number);
    }
    append_groups(conversation.floors, conversation.cells, out);
    out.number(std::uint64_t{conversation.checkpoints.size()});
    for (const std::uint32_t checkpoint : conversation.checkpoints) out.number(checkpoint);
  }
}

Result<Layout> parse_layout(std::span<const std::byte> bytes) {
  return base::within_memory([&] {
    ByteReader in(bytes);
    return parse(in);
  });
}

}  // namespace kvasir::pages
