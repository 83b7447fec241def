#include "cli/ceilings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "simd/ceilings.h"
#include "simd/panels.h"

namespace kvasir::cli {
namespace {

constexpr int kRepeats = 4;                 // the best counts
constexpr std::size_t kSlices = 8;          // of a thread, so that none waits long for another
constexpr std::size_t kRoundsASlice = 512;  // about two milliseconds on processors of today
constexpr std::size_t kReadSlice = std::size_t{1} << 20;
constexpr std::size_t kReadSlices = 1024;   // of a thread, at most
constexpr std::size_t kFewReadSlices = 64;  // more than caches hold
constexpr std::size_t kHugeBytes = std::size_t{128} << 20;
constexpr std::uint64_t kReadsOfWeights = 4;  // so much memory is read as so many times all weights
constexpr std::uint64_t kShareOfMemory = 8;   // of what is free one in so many may be taken for reading

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

std::size_t read_slices(int threads, double weight_bytes) {
  const std::uint64_t free = base::available_memory() / kShareOfMemory;
  const auto wanted = static_cast<std::uint64_t>(weight_bytes) * kReadsOfWeights;
  const std::uint64_t each = std::min(free, wanted) / kReadSlice / static_cast<std::uint64_t>(threads);
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(each, kFewReadSlices, kReadSlices)) *
         static_cast<std::size_t>(threads);
}

// Bytes per second that all threads together read of memory, whole slices of it.
double read_per_second(parallel::ThreadPool& pool, std::span<const std::byte> memory) {
  std::atomic<std::uint64_t> seen = 0;
  const double rate = best_rate(pool, memory.size() / kReadSlice, [&](std::size_t begin, std::size_t end) {
    seen += simd::read_through(memory.subspan(begin * kReadSlice, (end - begin) * kReadSlice));
  });
  return rate * static_cast<double>(memory.size());
}

// As any program gets it, in which each thread has written its own part.
Result<std::unique_ptr<std::byte[]>> plain_memory(parallel::ThreadPool& pool, std::size_t slices) {
  const std::size_t bytes = slices * kReadSlice;
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
  if (memory == nullptr) {
    return fail(Outcome::kOutOfMemory, "no memory to measure how fast it is read",
                {.wanted = bytes, .available = {}, .limit = {}, .setting = {}});
  }
  pool.run(slices, 1, [&](std::size_t begin, std::size_t end) {
    std::memset(memory.get() + begin * kReadSlice, 1, (end - begin) * kReadSlice);
  });
  return memory;
}

Status go_on() {
  return interrupted() ? fail(Outcome::kCancelled, "interrupted") : Status();
}

Status measure_reading(parallel::ThreadPool& pool, double weight_bytes, Ceilings& ceilings) {
  const std::size_t slices = read_slices(pool.threads(), weight_bytes);
  {
    KVASIR_ASSIGN(const auto memory, plain_memory(pool, slices));
    ceilings.read = read_per_second(pool, {memory.get(), slices * kReadSlice});
  }
  KVASIR_ASSIGN(const base::Buffer huge, base::Buffer::allocate(kHugeBytes));
  ceilings.read_huge = read_per_second(pool, huge.as<std::byte>());
  return {};
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
  read_huge = std::max(read_huge, other.read_huge);
}

Result<Ceilings> measure_ceilings(parallel::ThreadPool& pool, double weight_bytes) {
  Ceilings ceilings;
  ceilings.bytes = operations_per_second(pool, simd::byte_ceiling());
  ceilings.bfloats = operations_per_second(pool, simd::bfloat_ceiling());
  ceilings.floats = operations_per_second(pool, simd::float_ceiling());
  KVASIR_TRY(go_on());
  KVASIR_TRY(measure_reading(pool, weight_bytes, ceilings));
  KVASIR_TRY(go_on());
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
