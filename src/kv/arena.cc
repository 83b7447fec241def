#include "kv/arena.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/checked.h"
#include "base/try.h"
#include "quant/half.h"

namespace kvasir::kv {
namespace {

constexpr std::size_t kFrameAlign = 64;
constexpr std::size_t kValueStep = 16;  // dimensions of a value are padded to this

struct NamedElement {
  std::string_view name;
  CacheElement element;
};
constexpr NamedElement kElements[] = {
    {"f32", CacheElement::kF32}, {"f16", CacheElement::kF16}, {"bf16", CacheElement::kBF16}};

std::size_t padded(std::size_t dims) {
  return (dims + kValueStep - 1) / kValueStep * kValueStep;
}

// Writes values[i] as elements `step` apart.
void put(CacheElement element, std::span<const float> values, std::byte* to, std::size_t step) noexcept {
  const std::size_t stride = step * simd::element_bytes(element);
  for (const float value : values) {
    if (element == CacheElement::kF32) {
      std::memcpy(to, &value, sizeof(value));
    } else {
      const std::uint16_t bits =
          element == CacheElement::kF16 ? quant::float_to_half(value) : quant::float_to_bfloat(value);
      std::memcpy(to, &bits, sizeof(bits));
    }
    to += stride;
  }
}

}  // namespace

Result<CacheElement> parse_element(std::string_view name) {
  for (const NamedElement& entry : kElements) {
    if (entry.name == name) return entry.element;
  }
  return fail(Outcome::kInvalidArgument,
              "'" + std::string(name) + "' is no cache type; known are f32, f16, bf16");
}

std::string_view element_name(CacheElement element) noexcept {
  for (const NamedElement& entry : kElements) {
    if (entry.element == element) return entry.name;
  }
  return "?";
}

std::size_t Arena::key_head_bytes(const LayerGeometry& layer) const noexcept {
  return std::size_t{page_cells_} * layer.key_dims * simd::element_bytes(types_.keys);
}

std::size_t Arena::value_head_bytes(const LayerGeometry& layer) const noexcept {
  return std::size_t{page_cells_} * padded(layer.value_dims) * simd::element_bytes(types_.values);
}

std::size_t Arena::keys_at(const LayerGeometry& layer, pages::FrameId frame,
                           std::uint32_t head) const noexcept {
  return static_cast<std::size_t>(frame) * frame_bytes_ + head * key_head_bytes(layer);
}

std::size_t Arena::values_at(const LayerGeometry& layer, pages::FrameId frame,
                             std::uint32_t head) const noexcept {
  return keys_at(layer, frame, layer.kv_heads) + head * value_head_bytes(layer);
}

Result<std::size_t> Arena::frame_bytes(std::span<const LayerGeometry> layers, const CacheTypes& types,
                                       std::uint32_t page_cells) {
  std::size_t largest = 0;
  for (const LayerGeometry& layer : layers) {
    if (layer.kv_heads == 0 || layer.key_dims == 0 || layer.value_dims == 0) {
      return fail(Outcome::kInvalidArgument, "a layer without KV heads or dimensions cannot be cached");
    }
    const auto bytes =
        base::checked_product<std::size_t>(std::size_t{page_cells}, std::size_t{layer.kv_heads},
                                           std::size_t{layer.key_dims} * simd::element_bytes(types.keys) +
                                               padded(layer.value_dims) * simd::element_bytes(types.values));
    if (!bytes) return fail(Outcome::kInvalidArgument, "a layer's cells are larger than memory can be");
    largest = std::max(largest, base::div_up(*bytes, kFrameAlign) * kFrameAlign);
  }
  return largest;
}

Result<Arena> Arena::create(std::span<const LayerGeometry> layers, const CacheTypes& types,
                            std::uint32_t page_cells, std::uint32_t frames) {
  Arena arena;
  KVASIR_ASSIGN(arena.frame_bytes_, frame_bytes(layers, types, page_cells));
  arena.types_ = types;
  arena.page_cells_ = page_cells;
  const auto bytes = base::checked_mul<std::size_t>(arena.frame_bytes_, frames);
  if (!bytes)
    return fail(Outcome::kInvalidArgument, "the pool is larger than memory can be", {.setting = "--pool"});
  KVASIR_ASSIGN(arena.bytes_, base::Buffer::allocate(*bytes));
  return arena;
}

void Arena::store(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
                  std::span<const float> keys, std::span<const float> values) noexcept {
  const std::size_t key_bytes = simd::element_bytes(types_.keys);
  const std::size_t value_bytes = simd::element_bytes(types_.values);
  const std::size_t lane = cell % simd::kCellLanes;
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
    std::byte* key = bytes_.data() + keys_at(layer, frame, head);
    key += ((cell - lane) * layer.key_dims + lane) * key_bytes;
    put(types_.keys, keys.subspan(std::size_t{head} * layer.key_dims, layer.key_dims), key, simd::kCellLanes);
    std::byte* value = bytes_.data() + values_at(layer, frame, head);
    value += cell * padded(layer.value_dims) * value_bytes;
    put(types_.values, values.subspan(std::size_t{head} * layer.value_dims, layer.value_dims), value, 1);
    const std::size_t rest = padded(layer.value_dims) - layer.value_dims;
    std::memset(value + layer.value_dims * value_bytes, 0, rest * value_bytes);
  }
}

void Arena::resolve(const LayerGeometry& layer, std::span<const FrameRun> runs, ResolvedRuns& out) const {
  out.runs_.clear();
  for (const FrameRun& run : runs) {
    out.runs_.push_back({bytes_.data() + keys_at(layer, run.frame, 0),
                         bytes_.data() + values_at(layer, run.frame, 0), run.cell, run.count, run.ordinal});
  }
}

void Arena::attend(const LayerGeometry& layer, std::uint32_t head, float scale, const ResolvedRuns& runs,
                   std::span<const simd::AttentionQuery> queries) const noexcept {
  const simd::AttentionShape shape{.key_dims = layer.key_dims,
                                   .value_dims = layer.value_dims,
                                   .key_element = types_.keys,
                                   .value_element = types_.values,
                                   .keys_offset = head * key_head_bytes(layer),
                                   .values_offset = head * value_head_bytes(layer),
                                   .scale = scale};
  simd::attend(shape, runs.runs_, queries);
}

void Arena::append_cell(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
                        std::vector<std::byte>& out) const {
  const std::size_t key_bytes = simd::element_bytes(types_.keys);
  const std::size_t value_bytes = simd::element_bytes(types_.values);
  const std::size_t lane = cell % simd::kCellLanes;
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
    const std::byte* key = bytes_.data() + keys_at(layer, frame, head);
    for (std::size_t d = 0; d < layer.key_dims; ++d) {
      const std::byte* element =
          key + ((cell - lane) * layer.key_dims + d * simd::kCellLanes + lane) * key_bytes;
      out.insert(out.end(), element, element + key_bytes);
    }
    const std::byte* value = bytes_.data() + values_at(layer, frame, head);
    value += cell * padded(layer.value_dims) * value_bytes;
    out.insert(out.end(), value, value + layer.value_dims * value_bytes);
  }
}

}  // namespace kvasir::kv
