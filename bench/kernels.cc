// The kernels alone, one thread: products of every kind of weights for few and many columns, weights into
// panels, activations into bytes, attention over every type of cache. Rates are of operations, a product and
// its sum counting as two.
//
//   kernels [--benchmark_filter=REGEX] and what else Google Benchmark takes

#include <benchmark/benchmark.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/fp_mode.h"
#include "kv/arena.h"
#include "quant/block_type.h"
#include "quant/draw.h"
#include "simd/attention.h"
#include "simd/byte_columns.h"
#include "simd/ceilings.h"
#include "simd/panels.h"
#include "simd/products.h"
#include "simd/vector_math.h"

namespace kvasir {
namespace {

using quant::BlockType;

constexpr std::size_t kWidth = 2048;

// Rows of weights that lie in the processor's caches, and of weights that come from memory.
constexpr std::size_t kNearRows = 1024;
constexpr std::size_t kFarRows = 131072;

void count_operations(benchmark::State& state, double each) {
  state.counters["operations"] =
      benchmark::Counter(each * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void count_bytes(benchmark::State& state, std::size_t each) {
  const double all = static_cast<double>(each) * static_cast<double>(state.iterations());
  state.counters["bytes"] = benchmark::Counter(all, benchmark::Counter::kIsRate);
}

// Random blocks as panels; nothing where memory is short.
std::vector<simd::Panels> random_panels(BlockType type, std::size_t rows) {
  const quant::BlockTypeInfo& info = quant::block_type_info(type);
  const std::size_t row_bytes = kWidth / info.values * info.bytes;
  auto panels = simd::Panels::allocate(type, rows, kWidth);
  const auto drawer = quant::BlockDrawer::create(type, {}, 1);
  if (!panels || !drawer) return {};
  std::vector<std::byte> raw(simd::kPanelRows * row_bytes);
  for (std::size_t p = 0; p < panels->panel_count(); ++p) {
    drawer->draw(p * raw.size() / info.bytes, raw);
    if (!panels->fill(p, raw)) return {};
  }
  std::vector<simd::Panels> one;
  one.push_back(*std::move(panels));
  return one;
}

std::vector<float> waves(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i) * 0.37F);
  return values;
}

void multiply(benchmark::State& state, BlockType type, std::size_t rows) {
  const base::FloatingPointMode mode;
  const auto columns = static_cast<std::size_t>(state.range(0));
  const std::vector<simd::Panels> made = random_panels(type, rows);
  if (made.empty()) return state.SkipWithError("no memory");
  const simd::Panels& weights = made[0];
  const bool codes = simd::is_codes(weights.kind());
  auto bytes = simd::ByteRows::allocate(columns, kWidth);
  if (!bytes) return state.SkipWithError("no memory");
  const std::vector<float> x = waves(columns * kWidth);
  std::vector<float> out(columns * rows);
  for (std::size_t c = 0; c < columns; ++c) bytes->pack(c, std::span(x).subspan(c * kWidth, kWidth));
  for (auto _ : state) {
    for (std::size_t p = 0; p < weights.panel_count(); p += simd::kPanelGroup) {
      const simd::ProductOutput to{out.data(), rows};
      if (codes) {
        simd::multiply(weights, p, p + simd::kPanelGroup, bytes->columns(0, columns, kWidth), to);
      } else {
        simd::multiply(weights, p, p + simd::kPanelGroup, {x.data(), columns, kWidth, kWidth}, to);
      }
    }
    benchmark::DoNotOptimize(out.data());
  }
  count_operations(state, 2.0 * static_cast<double>(rows) * kWidth * static_cast<double>(columns));
  if (rows == kFarRows) count_bytes(state, weights.size_bytes());
}

// A panel of weights from the blocks of a file, both in the processor's caches. Bytes are those of the file.
void repack(benchmark::State& state, BlockType type) {
  const quant::BlockTypeInfo& info = quant::block_type_info(type);
  auto panels = simd::Panels::allocate(type, simd::kPanelRows, kWidth);
  const auto drawer = quant::BlockDrawer::create(type, {}, 1);
  if (!panels || !drawer) return state.SkipWithError("no memory");
  std::vector<std::byte> raw(simd::kPanelRows * kWidth / info.values * info.bytes);
  drawer->draw(0, raw);
  for (auto _ : state) {
    if (!panels->fill(0, raw)) return state.SkipWithError("no memory");
    benchmark::ClobberMemory();
  }
  count_bytes(state, raw.size());
}

void pack(benchmark::State& state) {
  auto bytes = simd::ByteRows::allocate(1, kWidth);
  if (!bytes) return state.SkipWithError("no memory");
  const std::vector<float> x = waves(kWidth);
  for (auto _ : state) {
    bytes->pack(0, x);
    benchmark::ClobberMemory();
  }
  count_operations(state, kWidth);
}

// Layers of cells of 64 dimensions in pages whose frames follow one another, as a pool that one conversation
// fills has them.
struct Cells {
  static constexpr std::size_t kDims = 64;
  static constexpr std::uint32_t kPage = 32;

  kv::LayerGeometry geometry;
  std::optional<kv::Arena> arena;
  std::vector<kv::ResolvedRuns> layers;

  Cells(kv::CacheElement element, std::uint32_t kv_heads, std::uint32_t cells, std::uint32_t layer_count)
      : geometry{.kv_heads = kv_heads, .key_dims = kDims, .value_dims = kDims}, layers(layer_count) {
    auto made = kv::Arena::create({&geometry, 1}, {element, element}, kPage, layer_count * cells / kPage);
    if (!made) return;
    arena = std::move(*made);
    const std::vector<float> row = waves(kDims * kv_heads + 256);
    for (std::uint32_t layer = 0; layer < layer_count; ++layer) {
      std::vector<kv::FrameRun> runs;
      for (std::uint32_t cell = 0; cell < cells; ++cell) {
        const auto frame = static_cast<pages::FrameId>(cell / kPage * layer_count + layer);
        const std::span<const float> at = std::span(row).subspan(cell % 256, kDims * kv_heads);
        arena->store(geometry, frame, cell % kPage, at, at);
        if (cell % kPage == 0) runs.push_back({frame, 0, kPage, cell});
      }
      arena->resolve(geometry, runs, layers[layer]);
    }
  }
};

// Some queries over all cells of every head and layer: of one head they come from a cache, of eight heads in
// sixteen layers from memory.
void attend(benchmark::State& state, kv::CacheElement element, std::uint32_t kv_heads,
            std::uint32_t layer_count) {
  const base::FloatingPointMode mode;
  constexpr std::size_t kDims = Cells::kDims;
  const auto count = static_cast<std::uint32_t>(state.range(0));
  const auto queries = static_cast<std::size_t>(state.range(1));
  const Cells cells(element, kv_heads, count, layer_count);
  if (!cells.arena) return state.SkipWithError("no memory");
  const std::vector<float> row = waves(kDims * 8);
  std::vector<float> out(8 * kDims);
  std::vector<simd::AttentionQuery> all;
  all.reserve(queries);
  for (std::size_t q = 0; q < queries; ++q)
    all.push_back({.query = row.data() + q * kDims, .out = out.data() + q * kDims, .visible = count});
  for (auto _ : state) {
    for (const kv::ResolvedRuns& layer : cells.layers) {
      for (std::uint32_t head = 0; head < kv_heads; ++head)
        cells.arena->attend(cells.geometry, head, {.scale = 0.125F}, layer, all);
    }
    benchmark::DoNotOptimize(out.data());
  }
  count_operations(state, 4.0 * kDims * count * static_cast<double>(queries) * kv_heads * layer_count);
}

void norm(benchmark::State& state) {
  const std::vector<float> x = waves(kWidth);
  std::vector<float> out(kWidth);
  for (auto _ : state) {
    simd::rms_norm(x, x, 1e-5F, out);
    benchmark::DoNotOptimize(out.data());
  }
  count_operations(state, kWidth);
}

void silu(benchmark::State& state) {
  const std::vector<float> x = waves(kWidth);
  std::vector<float> gate = x;
  for (auto _ : state) {
    simd::activate_gate(simd::Activation::kSilu, gate, x);
    benchmark::DoNotOptimize(gate.data());
  }
  count_operations(state, kWidth);
}

void ceiling(benchmark::State& state, simd::CeilingLoop (*of)() noexcept) {
  const simd::CeilingLoop loop = of();
  if (loop.run == nullptr) return state.SkipWithError("no such instruction here");
  for (auto _ : state) loop.run(16);
  count_operations(state, 16 * loop.operations);
}

void read_memory(benchmark::State& state) {
  const auto bytes = base::Buffer::allocate(std::size_t{256} << 20);
  if (!bytes) return state.SkipWithError("no memory");
  for (auto _ : state) benchmark::DoNotOptimize(simd::read_through({bytes->data(), bytes->size()}));
  count_bytes(state, bytes->size());
}

void add_products(const quant::BlockTypeInfo& info) {
  const std::string name(info.name);
  for (const std::int64_t columns : {1, 4, 16, 128})
    benchmark::RegisterBenchmark(("product/" + name).c_str(), multiply, info.type, kNearRows)->Arg(columns);
  for (const std::int64_t columns : {1, 2, 3, 4, 8})
    benchmark::RegisterBenchmark(("memory/" + name).c_str(), multiply, info.type, kFarRows)->Arg(columns);
}

void add_benchmarks() {
  benchmark::RegisterBenchmark("ceiling/bytes", ceiling, simd::byte_ceiling);
  benchmark::RegisterBenchmark("ceiling/bf16", ceiling, simd::bfloat_ceiling);
  benchmark::RegisterBenchmark("ceiling/floats", ceiling, simd::float_ceiling);
  benchmark::RegisterBenchmark("ceiling/memory", read_memory);
  for (const quant::BlockTypeInfo& info : quant::block_types()) {
    if (!info.unpacks) continue;
    const bool own = info.type == BlockType::kF32 || simd::panel_kind(info.type) != simd::PanelKind::kF32;
    if (!own) continue;
    add_products(info);
    benchmark::RegisterBenchmark(("repack/" + std::string(info.name)).c_str(), repack, info.type);
  }
  for (const kv::CacheElement element :
       {kv::CacheElement::kF32, kv::CacheElement::kF16, kv::CacheElement::kBF16, kv::CacheElement::kQ8_0,
        kv::CacheElement::kQ4_0}) {
    const std::string name(kv::element_name(element));
    for (const std::int64_t queries : {4, 8}) {
      benchmark::RegisterBenchmark(("attention/" + name).c_str(), attend, element, 1U, 1U)
          ->Args({4096, queries});
      benchmark::RegisterBenchmark(("attention/memory/" + name).c_str(), attend, element, 8U, 16U)
          ->Args({4096, queries});
    }
  }
  benchmark::RegisterBenchmark("pack", pack);
  benchmark::RegisterBenchmark("norm", norm);
  benchmark::RegisterBenchmark("silu", silu);
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) {
  kvasir::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
