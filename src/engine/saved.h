// Conversations as an archive holds them, detached from any engine: what the sections "ORIG", "CONV" and
// "ROWS" say. The layout of their cells is pages' own section, "PAGE"; the bytes of cells are kv's, "CELL".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "archive/format.h"
#include "engine/conversation.h"
#include "engine/row_pool.h"
#include "kv/arena.h"
#include "kvasir/result.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "pages/layout.h"
#include "pages/types.h"

namespace kvasir::engine {

inline constexpr archive::Kind kOriginSection = archive::kind_of("ORIG");
inline constexpr archive::Kind kConversationsSection = archive::kind_of("CONV");
inline constexpr archive::Kind kRowsSection = archive::kind_of("ROWS");
inline constexpr archive::Kind kLayoutSection = archive::kind_of("PAGE");
inline constexpr archive::Kind kCellsSection = archive::kind_of("CELL");

// What one layer keeps for each cell, and what kind of cache it belongs to.
struct SavedGroup {
  pages::GroupKind kind = pages::GroupKind::kFull;
  std::uint64_t width = 0;
  std::vector<kv::LayerGeometry> layers;  // of a recurrent group none
  std::vector<kv::StateGeometry> states;  // of a recurrent group
};

// Which model and which kind of cache the conversations belong to.
struct Origin {
  model::Fingerprint model;
  std::string architecture;
  std::string numerics;          // model::numerics_id()
  std::string keys;              // types of the cache, as kv::element_name() names them
  std::string values;            //
  std::uint32_t vocabulary = 0;  // tokens, and floats in a row of logits
  std::uint32_t embedding = 0;   // floats in a vector
  std::vector<SavedGroup> groups;
};

// One conversation, as Conversation has it.
struct SavedConversation {
  ConversationId id{};  // that it had
  ConversationSettings settings;
  std::uint64_t accepted = 0;
  std::uint64_t forks = 0;
  std::uint64_t arrival = 0;
  bool drawn_queued = false;
  std::vector<Token> tokens;
  Queue queue;
  // Indices of rows.
  struct Kept {
    std::uint64_t ordinal = 0;
    std::uint64_t row = 0;
  };
  std::optional<std::uint64_t> last_row;
  std::vector<Kept> kept;
  std::vector<Token> source;  // that it attends to
};

// All but the cells.
struct Saved {
  Origin origin;
  std::vector<SavedConversation> conversations;
  std::vector<std::shared_ptr<const Row>> rows;  // each once
  pages::Layout layout;
};

// As bytes and back; docs/formats/archive.md says which. Append throws std::bad_alloc. Parse answers kCorrupt
// for what has not this form; the counts of what is parsed agree with one another, as check_saved() says.
void append_origin(const Origin& origin, std::vector<std::byte>& bytes);
[[nodiscard]] Result<Origin> parse_origin(std::span<const std::byte> bytes);
void append_conversations(std::span<const SavedConversation> conversations, std::vector<std::byte>& bytes);
[[nodiscard]] Result<std::vector<SavedConversation>> parse_conversations(std::span<const std::byte> bytes);
[[nodiscard]] Result<std::vector<std::shared_ptr<const Row>>> parse_rows(std::span<const std::byte> bytes,
                                                                         std::uint32_t vocabulary);

// Whether conversations, rows and layout agree: lengths, tokens of the vocabulary, vectors, indices. kCorrupt
// says what does not.
[[nodiscard]] Status check_saved(const Saved& saved);

// Where conversations of this model with these types of cache come from.
[[nodiscard]] Origin origin_of(const model::Model& model, const kv::CacheTypes& types);

// Bytes of one cell of a group in each of its layers, or of a state's entries. kUnsupported for a type of
// cache that is not known; kCorrupt where they cannot be counted; kOutOfMemory.
[[nodiscard]] Result<std::vector<std::uint64_t>> part_bytes(const Origin& origin, std::size_t group);

// Whether the tokens of an archive mean the same here; kUnsupported names what differs.
[[nodiscard]] Status check_model(const Origin& theirs, const Origin& mine);
// Whether its keys and values can be used here; kUnsupported names what differs.
[[nodiscard]] Status check_cache(const Origin& theirs, const Origin& mine);

}  // namespace kvasir::engine
