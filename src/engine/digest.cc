#include <xxhash.h>

#include <cstring>
#include <vector>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"

namespace kvasir::engine {
namespace {

// Bytes appended one after another, hashed at the end. Tests compare the hash around what must show nowhere
// (E2).
class DigestBytes {
 public:
  void number(std::uint64_t value) { raw(&value, sizeof(value)); }
  template <class T>
  void array(const std::vector<T>& values) {
    number(values.size());
    raw(values.data(), values.size() * sizeof(T));
  }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  [[nodiscard]] std::uint64_t hash() const { return XXH3_64bits(bytes_.data(), bytes_.size()); }

 private:
  void raw(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<std::uint64_t> Engine::digest() const {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    DigestBytes digest;
    digest.number(store_->tokens_free());
    for (std::size_t index = 0; index < conversations_.size(); ++index) {
      const Conversation& conversation = conversations_[index];
      if (!conversation.open()) continue;
      digest.number(static_cast<std::uint64_t>(id_of(conversation, index)));
      digest.array(conversation.tokens);
      digest.array(conversation.dropped);
      digest.number(conversation.again);
      digest.array(conversation.queue.tokens);
      digest.array(conversation.queue.every);
      digest.array(conversation.queue.vectors);
      digest.number(conversation.settings.seed);
      digest.array(conversation.last_logits != nullptr ? *conversation.last_logits : Row());
      for (const KeptRow& kept : conversation.kept) {
        digest.number(kept.ordinal);
        digest.array(*kept.row);
      }
      for (std::size_t group = 0; group < store_->group_count() && conversation.borrowed == 0; ++group) {
        digest.number(store_->floor(conversation.table, group));
        for (const pages::Run& run : store_->runs(conversation.table, group))
          KVASIR_TRY(append_run(group, run, digest.bytes()));
      }
    }
    return digest.hash();
  });
}

// The logical positions and contents of a run's cells, wherever they lie.
Status Engine::append_run(std::size_t group, const pages::Run& run, std::vector<std::byte>& out) const {
  tiers::BytesOfBlock away;
  std::size_t cells_away = 0;
  if (pages::in_tier(run.page)) {
    const pages::TierRunId id = pages::tier_run(run.page);
    cells_away = store_->tier_runs().cells(id);
    KVASIR_ASSIGN(away, tiers_->read(store_->tier_runs().block(id)));
  }
  const auto its_group = static_cast<std::uint32_t>(group);
  for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
    const std::int64_t position =
        static_cast<std::int64_t>(store_->position(group, run.page, cell)) + run.shift;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&position);
    out.insert(out.end(), bytes, bytes + sizeof(position));
    auto from = away.all().begin();
    for (std::uint32_t part = 0; part < part_count(group); ++part) {
      const auto size = static_cast<std::ptrdiff_t>(part_bytes(group, part));
      if (cells_away == 0) {
        const std::size_t before = out.size();
        out.resize(before + static_cast<std::size_t>(size));
        read_part({its_group, part, {run.page, cell}}, std::span(out).subspan(before));
        continue;
      }
      out.insert(out.end(), from + cell * size, from + (cell + 1) * size);
      from += static_cast<std::ptrdiff_t>(cells_away) * size;
    }
  }
  return {};
}

}  // namespace kvasir::engine
