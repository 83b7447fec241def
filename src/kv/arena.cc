#include "kv/arena.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/try.h"

namespace kvasir::kv {
namespace {

constexpr std::size_t kFrameAlign = 64;

// What a thread touches at once: no two of them clear the same, and others that use the pool wait no longer.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct NamedElement {
  std::string_view name;
  CacheElement element;
};
constexpr NamedElement kElements[] = {{"f32", CacheElement::kF32},
                                      {"f16", CacheElement::kF16},
                                      {"bf16", CacheElement::kBF16},
                                      {"q8_0", CacheElement::kQ8_0},
                                      {"q4_0", CacheElement::kQ4_0}};

Status check_layer(const LayerGeometry& layer) {
  if (layer.kv_heads == 0 || layer.key_dims == 0 || layer.value_dims == 0) {
    return fail(Outcome::kInvalidArgument, "a layer without KV heads or dimensions cannot be cached");
  }
  const std::size_t dims = std::max(layer.key_dims, layer.value_dims);
  if (dims > simd::kMaxHeadDims) {
    return fail(Outcome::kUnsupported,
                "a head of " + std::to_string(dims) + " dimensions cannot be cached, at most " +
                    std::to_string(simd::kMaxHeadDims) + " can",
                {.wanted = dims, .limit = simd::kMaxHeadDims});
  }
  return {};
}

}  // namespace

Result<CacheElement> parse_element(std::string_view name) {
  std::string known;
  for (const NamedElement& entry : kElements) {
    if (entry.name == name) return entry.element;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return fail(Outcome::kInvalidArgument, "'" + std::string(name) + "' is no cache type; known are " + known,
              {.setting = "--kv"});
}

std::string_view element_name(CacheElement element) noexcept {
  for (const NamedElement& entry : kElements) {
    if (entry.element == element) return entry.name;
  }
  return "?";
}

std::size_t row_bytes(CacheElement element, std::size_t dims) noexcept {
  return HeadPart(HeadPart::Kind::kKeys, element, dims, pages::kCellsStep, 0).row_bytes();
}

HeadPart Arena::keys_of(const LayerGeometry& layer, std::uint32_t head) const noexcept {
  const std::size_t bytes = page_cells_ * simd::key_layout(types_.keys, layer.key_dims).bytes();
  return {HeadPart::Kind::kKeys, types_.keys, layer.key_dims, page_cells_, head * bytes};
}

HeadPart Arena::values_of(const LayerGeometry& layer, std::uint32_t head) const noexcept {
  const std::size_t keys = page_cells_ * simd::key_layout(types_.keys, layer.key_dims).bytes();
  const std::size_t bytes = page_cells_ * simd::value_layout(types_.values, layer.value_dims).bytes();
  return {HeadPart::Kind::kValues, types_.values, layer.value_dims, page_cells_,
          layer.kv_heads * keys + head * bytes};
}

Result<std::size_t> Arena::frame_bytes(std::span<const LayerGeometry> layers, const CacheTypes& types,
                                       std::uint32_t page_cells) {
  if (page_cells == 0 || page_cells % simd::kCellLanes != 0 || page_cells > pages::kPageCellsMax) {
    return fail(Outcome::kInvalidArgument,
                "a page must have a multiple of " + std::to_string(simd::kCellLanes) + " cells, at most " +
                    std::to_string(pages::kPageCellsMax) + ", not " + std::to_string(page_cells),
                {.wanted = page_cells, .limit = pages::kPageCellsMax, .setting = "--page"});
  }
  std::size_t largest = 0;
  for (const LayerGeometry& layer : layers) {
    KVASIR_TRY(check_layer(layer));
    const std::size_t cell = simd::key_layout(types.keys, layer.key_dims).bytes() +
                             simd::value_layout(types.values, layer.value_dims).bytes();
    const auto bytes = base::checked_product<std::size_t>(page_cells, std::size_t{layer.kv_heads}, cell);
    if (!bytes) return fail(Outcome::kInvalidArgument, "a layer's cells are larger than memory can be");
    largest = std::max(largest, base::div_up(*bytes, kFrameAlign) * kFrameAlign);
  }
  return largest;
}

Result<Arena> Arena::create(std::span<const LayerGeometry> layers, const CacheTypes& types,
                            std::uint32_t page_cells, std::uint32_t frames, std::size_t least_bytes) {
  Arena arena;
  KVASIR_ASSIGN(arena.frame_bytes_, frame_bytes(layers, types, page_cells));
  arena.frame_bytes_ = std::max(arena.frame_bytes_, base::div_up(least_bytes, kFrameAlign) * kFrameAlign);
  arena.types_ = types;
  arena.page_cells_ = page_cells;
  const auto bytes = base::checked_mul<std::size_t>(arena.frame_bytes_, frames);
  if (!bytes) {
    return fail(Outcome::kInvalidArgument, "the pool is larger than memory can be", {.setting = "--pool"});
  }
  KVASIR_ASSIGN(arena.bytes_, base::Buffer::allocate_on_touch(*bytes));
  return arena;
}

void Arena::touch(parallel::ThreadPool& pool) noexcept {
  const std::size_t pages = base::div_up(bytes_.size(), kHugePage);
  const auto at_once = static_cast<std::size_t>(pool.threads());
  for (std::size_t from = 0; from < pages; from += at_once) {
    pool.run(std::min(at_once, pages - from), 1, [&](std::size_t first, std::size_t last) {
      bytes_.touch((from + first) * kHugePage, std::min((from + last) * kHugePage, bytes_.size()));
    });
  }
}

void Arena::store(const LayerGeometry& layer, pages::FrameId frame, std::uint32_t cell,
                  std::span<const float> keys, std::span<const float> values) noexcept {
  std::byte* const at = frame_at(frame);
  for (std::uint32_t head = 0; head < layer.kv_heads; ++head) {
    keys_of(layer, head)
        .store(at, cell, keys.subspan(std::size_t{head} * layer.key_dims, layer.key_dims), layer.key_dims);
    values_of(layer, head)
        .store(at, cell, values.subspan(std::size_t{head} * layer.value_dims, layer.value_dims),
               layer.value_dims);
  }
}

void Arena::resolve(const LayerGeometry& layer, std::span<const FrameRun> runs, ResolvedRuns& out) const {
  const std::size_t keys = keys_of(layer, 0).numbers().offset;
  const std::size_t values = values_of(layer, 0).numbers().offset;
  out.runs_.clear();
  for (const FrameRun& run : runs) {
    const std::byte* const at = frame_at(run.frame);
    out.runs_.push_back({at + keys, at + values, run.cell, run.count, run.ordinal, run.query});
  }
}

simd::AttentionShape Arena::shape_of(const LayerGeometry& layer, std::uint32_t head,
                                     const Scoring& scoring) const noexcept {
  const HeadPart keys = keys_of(layer, head);
  const HeadPart values = values_of(layer, head);
  const std::size_t first_values = values_of(layer, 0).numbers().offset;
  return {.key_dims = layer.key_dims,
          .value_dims = layer.value_dims,
          .key_element = types_.keys,
          .value_element = types_.values,
          .keys_offset = keys.numbers().offset,
          .values_offset = values.numbers().offset - first_values,
          .key_scales_offset = keys.scales().offset,
          .value_scales_offset = values.scales().offset - first_values,
          .scale = scoring.scale,
          .soft_cap = scoring.soft_cap,
          .positions = scoring.positions,
          .reach = scoring.reach};
}

// Reads the visible cells of the runs as they are stored, and no other (A2, A3).
void Arena::attend(const LayerGeometry& layer, std::uint32_t head, const Scoring& scoring,
                   const ResolvedRuns& runs, std::span<const simd::AttentionQuery> queries) const noexcept {
  simd::attend(shape_of(layer, head, scoring), runs.runs_, queries);
}

void Arena::attend_tiles(const LayerGeometry& layer, std::uint32_t head, const Scoring& scoring,
                         const ResolvedRuns& runs, std::span<const simd::AttentionQuery> queries,
                         const simd::KeptTiles& tiles) const noexcept {
  simd::attend_tiles(shape_of(layer, head, scoring), runs.runs_, queries, tiles);
}

void Arena::merge_tiles(const LayerGeometry& layer, std::span<const simd::AttentionQuery> queries,
                        const simd::KeptTiles& tiles) const noexcept {
  simd::merge_tiles(shape_of(layer, 0, {}), queries, tiles);
}

}  // namespace kvasir::kv
