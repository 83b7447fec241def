#include <xxhash.h>

#include <cstring>
#include <new>
#include <vector>

#include "engine/engine.h"

namespace kvasir::engine {
namespace {

// Bytes appended one after another, hashed at the end.
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
  try {
    DigestBytes digest;
    digest.number(store_->tokens_free());
    for (const Conversation& conversation : conversations_) {
      digest.number(conversation.open ? 1 : 0);
      if (!conversation.open) continue;
      digest.array(conversation.tokens);
      digest.array(conversation.queue);
      digest.array(conversation.every);
      digest.array(conversation.last_logits != nullptr ? *conversation.last_logits : Row());
      digest.array(conversation.every_logit);
      for (std::size_t group = 0; group < store_->group_count(); ++group) {
        const std::vector<kv::LayerGeometry>& layers = model_->network().groups[group].layers;
        for (const pages::Run& run : store_->runs(conversation.table, group)) {
          for (std::uint32_t cell = run.cell; cell < run.cell + run.count; ++cell) {
            digest.number(static_cast<std::uint64_t>(store_->position(group, run.page, cell)) +
                          static_cast<std::uint64_t>(run.shift));
            for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
              arena_.append_cell(layers[layer], store_->frame(group, run.page, layer), cell, digest.bytes());
            }
          }
        }
      }
    }
    return digest.hash();
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "no memory for a digest");
  }
}

}  // namespace kvasir::engine
