#include "cli/ceilings.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/try.h"
#include "simd/ceilings.h"
#include "simd/panels.h"

namespace kvasir::cli {
namespace {

constexpr int kRepeats = 4;                 // the best counts
constexpr std::size_t kSlices = 8;          // of a thread, so that none waits long for another
constexpr std::size_t kRoundsASlice = 512;  // about two milliseconds on processors of today
constexpr std::size_t kReadBytes = std::size_t{128} << 20;  // more than caches hold
constexpr std::size_t kReadSlice = std::size_t{1} << 20;

// How often a second all threads together do `slices` slices of work.
double best_rate(parallel::ThreadPool& pool, std::size_t slices, const parallel::RangeFunction& work) {
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const std::int64_t start = base::system_clock().now_ns();
    pool.run(slices, 1, work);
    const auto ns = static_cast<double>(std::max<std::int64_t>(1, base::system_clock().now_ns() - start));
    best = std::max(best, 1e9 / ns);
  }
  return best;
}

double operations_per_second(parallel::ThreadPool& pool, const simd::CeilingLoop& loop) {
  if (loop.run == nullptr) return 0;
  const std::size_t slices = kSlices * static_cast<std::size_t>(pool.threads());
  const double rate = best_rate(
      pool, slices, [&](std::size_t begin, std::size_t end) { loop.run((end - begin) * kRoundsASlice); });
  return rate * static_cast<double>(slices * kRoundsASlice) * loop.operations;
}

void add(const gguf::Tensor& tensor, double share, ProductWork& work) {
  const simd::PanelKind kind = simd::panel_kind(tensor.type);
  const auto elements = static_cast<double>(tensor.elements()) * share;
  (simd::is_codes(kind) ? work.on_bytes : work.on_floats) += 2 * elements;
  work.weight_bytes += static_cast<double>(tensor.bytes) * share;
}

// Seconds that so many tokens take where products are all there is.
double product_seconds(const ProductWork& work, const Ceilings& ceilings, double tokens) {
  double seconds = 0;
  for (const auto& [operations, ceiling] :
       {std::pair(work.on_bytes, ceilings.bytes), std::pair(work.on_floats, ceilings.floats)}) {
    if (operations > 0)
      seconds += ceiling > 0 ? operations * tokens / ceiling : std::numeric_limits<double>::infinity();
  }
  return seconds;
}

// 0 where the time is not known.
double rate_of(double tokens, double seconds) {
  return seconds > 0 ? tokens / seconds : 0;
}

}  // namespace

void Ceilings::take(const Ceilings& other) noexcept {
  bytes = std::max(bytes, other.bytes);
  bfloats = std::max(bfloats, other.bfloats);
  floats = std::max(floats, other.floats);
  read = std::max(read, other.read);
}

Result<Ceilings> measure_ceilings(parallel::ThreadPool& pool) {
  Ceilings ceilings;
  ceilings.bytes = operations_per_second(pool, simd::byte_ceiling());
  ceilings.bfloats = operations_per_second(pool, simd::bfloat_ceiling());
  ceilings.floats = operations_per_second(pool, simd::float_ceiling());
  KVASIR_ASSIGN(const base::Buffer buffer, base::Buffer::allocate(kReadBytes));
  std::atomic<std::uint64_t> seen = 0;
  const double rate = best_rate(pool, kReadBytes / kReadSlice, [&](std::size_t begin, std::size_t end) {
    const auto all = buffer.as<std::byte>();
    seen += simd::read_through(all.subspan(begin * kReadSlice, (end - begin) * kReadSlice));
  });
  ceilings.read = rate * static_cast<double>(kReadBytes);
  return ceilings;
}

ModelWork work_of(const gguf::File& file, const model::Model& model, const kv::CacheTypes& types) {
  ModelWork work;
  const model::Hyperparameters& sizes = model.sizes();
  for (const gguf::Tensor& tensor : file.tensors()) {
    const bool experts = sizes.experts > 0 && tensor.dims.size() == 3 && tensor.dims[2] == sizes.experts;
    const double share = experts ? static_cast<double>(sizes.experts_used) / sizes.experts : 1;
    if (tensor.name.starts_with("blk.") && tensor.dims.size() > 1) add(tensor, share, work.layers);
  }
  const gguf::Tensor* output = file.find_tensor("output.weight");
  if (output == nullptr) output = file.find_tensor("token_embd.weight");
  if (output != nullptr) add(*output, 1, work.output);
  for (const model::CacheGroup& group : model.network().groups) {
    for (const kv::StateGeometry& state : group.states)
      work.state_bytes += 2 * static_cast<double>(state.bytes());
    for (const kv::LayerGeometry& layer : group.layers) {
      work.cell_bytes += static_cast<double>(layer.kv_heads) *
                         static_cast<double>(kv::row_bytes(types.keys, layer.key_dims) +
                                             kv::row_bytes(types.values, layer.value_dims));
    }
  }
  return work;
}

double prompt_limit(const ModelWork& work, const Ceilings& ceilings, std::uint64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return rate_of(count, product_seconds(work.layers, ceilings, count));
}

double generation_limit(const ModelWork& work, const Ceilings& ceilings, std::uint64_t conversations,
                        std::uint64_t depth) {
  const auto count = static_cast<double>(conversations);
  const double bytes = work.layers.weight_bytes + work.output.weight_bytes +
                       count * (static_cast<double>(depth) * work.cell_bytes + work.state_bytes);
  const double reading = ceilings.read > 0 ? bytes / ceilings.read : 0;
  const double computing =
      product_seconds(work.layers, ceilings, count) + product_seconds(work.output, ceilings, count);
  return rate_of(count, std::max(reading, computing));
}

}  // namespace kvasir::cli
