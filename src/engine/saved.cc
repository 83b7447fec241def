#include "engine/saved.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {
namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr std::uint64_t kLayersMax = 65'536;  // of a group, in what is parsed

std::unexpected<Error> wrong(const std::string& what) {
  return fail(Outcome::kCorrupt, what);
}

Result<SavedGroup> parse_states(ByteReader& in, std::uint64_t count, SavedGroup group) {
  group.states.resize(count);
  for (kv::StateGeometry& state : group.states) {
    KVASIR_ASSIGN(state.pieces, in.number<std::uint32_t>());
    KVASIR_ASSIGN(state.floats, in.number<std::uint32_t>());
    if (state.all_floats() > kv::kStateEntryBytesMax / sizeof(float))
      return wrong("a state of " + std::to_string(state.all_floats()) + " numbers in one layer");
  }
  return group;
}

Result<SavedGroup> parse_group(ByteReader& in) {
  SavedGroup group;
  KVASIR_ASSIGN(const auto kind, in.number<std::uint8_t>());
  if (kind > static_cast<std::uint8_t>(pages::GroupKind::kCross))
    return wrong("a group of an unknown kind " + std::to_string(kind));
  group.kind = static_cast<pages::GroupKind>(kind);
  KVASIR_ASSIGN(group.width, in.number<std::uint64_t>());
  const bool states = group.kind == pages::GroupKind::kRecurrent;
  KVASIR_ASSIGN(const std::uint64_t layers, in.count((states ? 2 : 3) * sizeof(std::uint32_t)));
  if (layers > kLayersMax) return wrong("a group of " + std::to_string(layers) + " layers");
  if (states) return parse_states(in, layers, std::move(group));
  group.layers.resize(layers);
  for (kv::LayerGeometry& layer : group.layers) {
    KVASIR_ASSIGN(layer.kv_heads, in.number<std::uint32_t>());
    KVASIR_ASSIGN(layer.key_dims, in.number<std::uint32_t>());
    KVASIR_ASSIGN(layer.value_dims, in.number<std::uint32_t>());
  }
  return group;
}

void append_queue(const Queue& queue, ByteWriter& out) {
  out.number(std::uint64_t{queue.tokens.size()});
  out.integers(queue.tokens);
  out.bytes(std::as_bytes(std::span(queue.every)));
  out.number(std::uint64_t{queue.vectors.size()});
  out.floats(queue.vectors);
}

Result<Queue> parse_queue(ByteReader& in) {
  Queue queue;
  KVASIR_ASSIGN(const std::uint64_t tokens, in.count(sizeof(Token) + 1));
  KVASIR_ASSIGN(queue.tokens, in.integers(tokens));
  queue.every.resize(tokens);
  for (std::uint8_t& every : queue.every) {
    KVASIR_ASSIGN(const bool wanted, in.flag());
    every = wanted ? 1 : 0;
  }
  KVASIR_ASSIGN(const std::uint64_t floats, in.count(sizeof(float)));
  KVASIR_ASSIGN(queue.vectors, in.floats(floats));
  return queue;
}

Result<SavedConversation> parse_conversation(ByteReader& in) {
  SavedConversation one;
  KVASIR_ASSIGN(const auto id, in.number<std::uint64_t>());
  one.id = ConversationId{id};
  KVASIR_ASSIGN(const auto priority, in.number<std::uint32_t>());
  one.settings.priority = static_cast<std::int32_t>(priority);
  KVASIR_ASSIGN(one.settings.pinned, in.flag());
  KVASIR_ASSIGN(one.settings.salt, in.number<std::uint64_t>());
  KVASIR_ASSIGN(one.settings.max_length, in.number<std::uint64_t>());
  KVASIR_ASSIGN(one.settings.seed, in.number<std::uint64_t>());
  KVASIR_ASSIGN(one.accepted, in.number<std::uint64_t>());
  KVASIR_ASSIGN(one.forks, in.number<std::uint64_t>());
  KVASIR_ASSIGN(one.arrival, in.number<std::uint64_t>());
  KVASIR_ASSIGN(one.drawn_queued, in.flag());
  KVASIR_ASSIGN(const std::uint64_t tokens, in.count(sizeof(Token)));
  KVASIR_ASSIGN(one.tokens, in.integers(tokens));
  KVASIR_ASSIGN(one.queue, parse_queue(in));
  KVASIR_ASSIGN(const bool has_last, in.flag());
  KVASIR_ASSIGN(const auto last, in.number<std::uint64_t>());
  if (has_last) one.last_row = last;
  KVASIR_ASSIGN(const std::uint64_t kept, in.count(2 * sizeof(std::uint64_t)));
  one.kept.resize(kept);
  for (SavedConversation::Kept& row : one.kept) {
    KVASIR_ASSIGN(row.ordinal, in.number<std::uint64_t>());
    KVASIR_ASSIGN(row.row, in.number<std::uint64_t>());
  }
  KVASIR_ASSIGN(const std::uint64_t source, in.count(sizeof(Token)));
  KVASIR_ASSIGN(one.source, in.integers(source));
  return one;
}

}  // namespace

void append_origin(const Origin& origin, std::vector<std::byte>& bytes) {
  ByteWriter out(bytes);
  for (const std::uint64_t part : origin.model.weights) out.number(part);
  out.number(origin.model.rotary);
  out.number(origin.model.vocabulary);
  for (const std::string& text : {origin.architecture, origin.numerics, origin.keys, origin.values})
    out.text(text);
  out.number(origin.vocabulary);
  out.number(origin.embedding);
  out.number(std::uint64_t{origin.groups.size()});
  for (const SavedGroup& group : origin.groups) {
    out.number(static_cast<std::uint8_t>(group.kind));
    out.number(group.width);
    if (group.kind == pages::GroupKind::kRecurrent) {
      out.number(std::uint64_t{group.states.size()});
      for (const kv::StateGeometry& state : group.states) {
        out.number(state.pieces);
        out.number(state.floats);
      }
      continue;
    }
    out.number(std::uint64_t{group.layers.size()});
    for (const kv::LayerGeometry& layer : group.layers) {
      out.number(layer.kv_heads);
      out.number(layer.key_dims);
      out.number(layer.value_dims);
    }
  }
}

Result<Origin> parse_origin(std::span<const std::byte> bytes) {
  return base::within_memory([&]() -> Result<Origin> {
    ByteReader in(bytes);
    Origin origin;
    for (std::uint64_t& part : origin.model.weights) {
      KVASIR_ASSIGN(part, in.number<std::uint64_t>());
    }
    KVASIR_ASSIGN(origin.model.rotary, in.number<std::uint64_t>());
    KVASIR_ASSIGN(origin.model.vocabulary, in.number<std::uint64_t>());
    for (std::string* const text : {&origin.architecture, &origin.numerics, &origin.keys, &origin.values}) {
      KVASIR_ASSIGN(const std::string_view its_text, in.text());
      *text = its_text;
    }
    KVASIR_ASSIGN(origin.vocabulary, in.number<std::uint32_t>());
    KVASIR_ASSIGN(origin.embedding, in.number<std::uint32_t>());
    if (origin.vocabulary == 0 || origin.embedding == 0) return wrong("a model without tokens or dimensions");
    KVASIR_ASSIGN(const std::uint64_t groups, in.count(1 + 2 * sizeof(std::uint64_t)));
    if (groups > pages::kGroupsMax) return wrong(std::to_string(groups) + " groups");
    for (std::uint64_t i = 0; i < groups; ++i) {
      KVASIR_ASSIGN(SavedGroup group, parse_group(in));
      origin.groups.push_back(std::move(group));
    }
    KVASIR_TRY(in.end());
    return origin;
  });
}

void append_conversations(std::span<const SavedConversation> conversations, std::vector<std::byte>& bytes) {
  ByteWriter out(bytes);
  out.number(std::uint64_t{conversations.size()});
  for (const SavedConversation& one : conversations) {
    out.number(static_cast<std::uint64_t>(one.id));
    out.number(static_cast<std::uint32_t>(one.settings.priority));
    out.number(static_cast<std::uint8_t>(one.settings.pinned ? 1 : 0));
    for (const std::uint64_t number : {one.settings.salt, one.settings.max_length, one.settings.seed,
                                       one.accepted, one.forks, one.arrival}) {
      out.number(number);
    }
    out.number(static_cast<std::uint8_t>(one.drawn_queued ? 1 : 0));
    out.number(std::uint64_t{one.tokens.size()});
    out.integers(one.tokens);
    append_queue(one.queue, out);
    out.number(static_cast<std::uint8_t>(one.last_row ? 1 : 0));
    out.number(one.last_row.value_or(0));
    out.number(std::uint64_t{one.kept.size()});
    for (const SavedConversation::Kept& row : one.kept) {
      out.number(row.ordinal);
      out.number(row.row);
    }
    out.number(std::uint64_t{one.source.size()});
    out.integers(one.source);
  }
}

Result<std::vector<SavedConversation>> parse_conversations(std::span<const std::byte> bytes) {
  return base::within_memory([&]() -> Result<std::vector<SavedConversation>> {
    ByteReader in(bytes);
    // The least that one takes: nothing is kept of it but its numbers.
    constexpr std::uint64_t kLeast = 1 + 1 + 1 + 4 + 13 * sizeof(std::uint64_t);
    KVASIR_ASSIGN(const std::uint64_t count, in.count(kLeast));
    std::vector<SavedConversation> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      KVASIR_ASSIGN(SavedConversation one, parse_conversation(in));
      all.push_back(std::move(one));
    }
    KVASIR_TRY(in.end());
    return all;
  });
}

Result<std::vector<std::shared_ptr<const Row>>> parse_rows(std::span<const std::byte> bytes,
                                                           std::uint32_t vocabulary) {
  return base::within_memory([&]() -> Result<std::vector<std::shared_ptr<const Row>>> {
    ByteReader in(bytes);
    std::vector<std::shared_ptr<const Row>> rows;
    while (in.left() > 0) {
      KVASIR_ASSIGN(Row row, in.floats(vocabulary));
      rows.push_back(std::make_shared<const Row>(std::move(row)));
    }
    return rows;
  });
}

namespace {

Status check_tokens(std::span<const Token> tokens, std::uint32_t vocabulary) {
  const auto bad = std::ranges::find_if(tokens, [&](Token token) {
    return token != kEmbedded && (token < 0 || static_cast<std::uint32_t>(token) >= vocabulary);
  });
  if (bad == tokens.end()) return {};
  return wrong("there is no token " + std::to_string(*bad) + " in a vocabulary of " +
               std::to_string(vocabulary));
}

Status check_conversation(const SavedConversation& one, const pages::ConversationLayout& layout,
                          const Saved& saved, std::vector<bool>& named) {
  if (layout.length != one.tokens.size()) {
    return wrong("a conversation of " + std::to_string(one.tokens.size()) + " tokens holds cells of " +
                 std::to_string(layout.length));
  }
  if (layout.behind > one.queue.tokens.size()) {
    return wrong("a conversation that is behind by " + std::to_string(layout.behind) + " tokens has queued " +
                 std::to_string(one.queue.tokens.size()));
  }
  const auto again = std::span(one.queue.tokens).first(layout.behind);
  if (std::ranges::find(again, kEmbedded) != again.end())
    return wrong("a conversation is behind by a vector");
  KVASIR_TRY(check_tokens(one.tokens, saved.origin.vocabulary));
  KVASIR_TRY(check_tokens(one.queue.tokens, saved.origin.vocabulary));
  KVASIR_TRY(check_tokens(one.source, saved.origin.vocabulary));
  if (one.source.empty() != (layout.encoded == 0) ||
      std::ranges::find(one.source, kEmbedded) != one.source.end())
    return wrong("a source of " + std::to_string(one.source.size()) +
                 " tokens, which is not what was encoded");
  const auto embedded = static_cast<std::uint64_t>(std::ranges::count(one.queue.tokens, kEmbedded));
  if (base::checked_mul<std::uint64_t>(embedded, saved.origin.embedding) != one.queue.vectors.size())
    return wrong("a queue with too few or too many vectors");
  if (!std::ranges::all_of(one.queue.vectors, [](float value) { return std::isfinite(value); }))
    return wrong("a queued vector is not finite");
  if (one.last_row && (*one.last_row >= saved.rows.size() || one.tokens.empty()))
    return wrong("a row of logits that is not there");
  if (one.last_row) named[*one.last_row] = true;
  std::uint64_t least = 0;
  for (const SavedConversation::Kept& row : one.kept) {
    if (row.row >= saved.rows.size() || row.ordinal < least || row.ordinal >= one.tokens.size())
      return wrong("a row of logits of token " + std::to_string(row.ordinal));
    least = row.ordinal + 1;
    named[row.row] = true;
  }
  return {};
}

}  // namespace

Status check_saved(const Saved& saved) {
  return base::within_memory([&]() -> Status {
    if (saved.layout.conversations.size() != saved.conversations.size()) {
      return wrong(std::to_string(saved.conversations.size()) + " conversations, and cells of " +
                   std::to_string(saved.layout.conversations.size()));
    }
    std::vector<bool> named(saved.rows.size());
    for (std::size_t i = 0; i < saved.conversations.size(); ++i) {
      const Status sound =
          check_conversation(saved.conversations[i], saved.layout.conversations[i], saved, named);
      if (!sound) return fail(sound.error().within("conversation " + std::to_string(i)));
    }
    if (std::ranges::find(named, false) != named.end()) return wrong("a row of logits that nobody has");
    return {};
  });
}

Origin origin_of(const model::Model& model, const kv::CacheTypes& types) {
  Origin origin;
  origin.model = model.fingerprint();
  origin.architecture = model.sizes().architecture;
  origin.numerics = model::numerics_id();
  origin.keys = kv::element_name(types.keys);
  origin.values = kv::element_name(types.values);
  origin.vocabulary = model.sizes().vocabulary;
  origin.embedding = model.sizes().embedding;
  for (const model::CacheGroup& group : model.network().groups) {
    origin.groups.push_back({group.kind, group.width, group.layers, group.states});
  }
  return origin;
}

Result<std::vector<std::uint64_t>> part_bytes(const Origin& origin, std::size_t group) {
  return base::within_memory([&]() -> Result<std::vector<std::uint64_t>> {
    KVASIR_ASSIGN(const kv::CacheElement keys, kv::parse_element(origin.keys));
    KVASIR_ASSIGN(const kv::CacheElement values, kv::parse_element(origin.values));
    std::vector<std::uint64_t> parts;
    std::uint64_t all = 0;
    const auto add = [&](std::optional<std::uint64_t> bytes) -> Status {
      const auto sum = bytes ? base::checked_add(all, *bytes) : std::nullopt;
      if (!sum) return wrong("cells of more bytes than can be counted");
      all = *sum;
      parts.push_back(*bytes);
      return {};
    };
    for (const kv::LayerGeometry& layer : origin.groups[group].layers) {
      const std::uint64_t key = kv::row_bytes(keys, layer.key_dims);
      const std::uint64_t value = kv::row_bytes(values, layer.value_dims);
      KVASIR_TRY(add(base::checked_mul<std::uint64_t>(layer.kv_heads, key + value)));
    }
    for (const kv::StateGeometry& state : origin.groups[group].states) KVASIR_TRY(add(state.bytes()));
    return parts;
  });
}

namespace {

std::unexpected<Error> differs(const std::string& what) {
  return fail(Outcome::kUnsupported, what);
}

bool same(const kv::LayerGeometry& a, const kv::LayerGeometry& b) {
  return a.kv_heads == b.kv_heads && a.key_dims == b.key_dims && a.value_dims == b.value_dims;
}

}  // namespace

Status check_model(const Origin& theirs, const Origin& mine) {
  return base::within_memory([&]() -> Status {
    if (theirs.architecture != mine.architecture) {
      return differs("the archive is of another model: of a " + theirs.architecture + ", this is a " +
                     mine.architecture);
    }
    if (theirs.vocabulary != mine.vocabulary || theirs.model.vocabulary != mine.model.vocabulary) {
      return differs("the archive is of a model with another vocabulary, of " +
                     std::to_string(theirs.vocabulary) + " tokens; this one has " +
                     std::to_string(mine.vocabulary));
    }
    if (theirs.model.weights != mine.model.weights || theirs.embedding != mine.embedding)
      return differs("the archive is of another model: its weights differ");
    return {};
  });
}

Status check_cache(const Origin& theirs, const Origin& mine) {
  return base::within_memory([&]() -> Status {
    if (theirs.model.rotary != mine.model.rotary)
      return differs(
          "the archive's keys were turned by another rotary table; load with another --ctx, or recompute");
    if (theirs.keys != mine.keys || theirs.values != mine.values) {
      return differs("the archive's cache is of type " + theirs.keys + ":" + theirs.values +
                     ", this one is " + mine.keys + ":" + mine.values +
                     "; load into a cache of that type, or recompute");
    }
    if (theirs.numerics != mine.numerics) {
      return differs("the archive was computed with the numerics '" + theirs.numerics + "', these are '" +
                     mine.numerics + "'; recompute");
    }
    const auto same_group = [](const SavedGroup& a, const SavedGroup& b) {
      return a.kind == b.kind && a.width == b.width && a.states == b.states &&
             std::ranges::equal(a.layers, b.layers, same);
    };
    if (!std::ranges::equal(theirs.groups, mine.groups, same_group))
      return differs("the archive's cells have another geometry; recompute");
    return {};
  });
}

}  // namespace kvasir::engine
