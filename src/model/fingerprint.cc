#include "model/fingerprint.h"

#include <xxhash.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "parallel/first_error.h"
#include "simd/attention.h"
#include "simd/products.h"

namespace kvasir::model {
namespace {

// Raised whenever a change of the kernels changes a bit of any result.
constexpr int kKernelRevision = 4;

// Where the sampled blocks of so many bytes begin, and how long they are.
template <class Visit>
Status visit_samples(std::uint64_t bytes, const Visit& visit) {
  if (bytes <= Fingerprint::kSampledBytes) {
    for (std::uint64_t at = 0; at < bytes; at += Fingerprint::kSampleBytes)
      KVASIR_TRY(visit(at, std::min(Fingerprint::kSampleBytes, bytes - at)));
    return {};
  }
  const std::uint64_t last = bytes - Fingerprint::kSampleBytes;
  for (std::uint64_t i = 0; i < Fingerprint::kSamples; ++i) {
    // Without an overflow: a tensor's size times 63 may not fit.
    const std::uint64_t at = last / (Fingerprint::kSamples - 1) * i +
                             last % (Fingerprint::kSamples - 1) * i / (Fingerprint::kSamples - 1);
    KVASIR_TRY(visit(at, Fingerprint::kSampleBytes));
  }
  return {};
}

std::uint64_t rotary_hash(const Network& network) {
  std::vector<std::byte> bytes;
  base::ByteWriter out(bytes);
  out.number(std::uint64_t{network.rotary.size()});
  for (const simd::RotaryTable& table : network.rotary) {
    out.number(static_cast<std::uint8_t>(table.pairing()));
    const double magnitude = table.magnitude();
    out.bytes(std::as_bytes(std::span(&magnitude, 1)));
    out.number(std::uint64_t{table.frequencies().size()});
    out.bytes(std::as_bytes(table.frequencies()));
  }
  for (const CacheGroup& group : network.groups) {
    for (const std::uint32_t table : group.rotary) out.number(table);
  }
  return base::checksum(bytes);
}

std::uint64_t vocabulary_hash(const gguf::File& file) {
  std::vector<std::byte> bytes;
  base::ByteWriter out(bytes);
  for (const char* const key : {"tokenizer.ggml.model", "tokenizer.ggml.pre"}) {
    const gguf::Value* const value = file.find(key);
    out.text(value != nullptr ? value->as_string().value_or("") : "");
  }
  const gguf::Value* const tokens = file.find("tokenizer.ggml.tokens");
  const std::uint64_t count = tokens != nullptr ? tokens->size() : 0;
  // A value has as many numbers beside its texts as this has.
  if (tokens != nullptr) bytes.reserve(bytes.size() + tokens->bytes().size());
  out.number(count);
  for (std::uint64_t i = 0; i < count; ++i) out.text(tokens->string_at(i).value_or(""));
  return base::checksum(bytes);
}

// What the file says of the architecture, in order of keys, but for its rotation, which has a hash of its
// own, and for the trained length, on which no number depends.
void append_keys(const gguf::File& file, const std::string& architecture, base::ByteWriter& out) {
  out.text(architecture);
  std::vector<const gguf::KeyValue*> entries;
  for (const gguf::KeyValue& entry : file.metadata()) {
    if (entry.key.starts_with(architecture + ".") && !entry.key.starts_with(architecture + ".rope.") &&
        entry.key != architecture + ".context_length")
      entries.push_back(&entry);
  }
  std::ranges::sort(entries, {},
                    [](const gguf::KeyValue* entry) -> const std::string& { return entry->key; });
  for (const gguf::KeyValue* const entry : entries) {
    out.text(entry->key);
    out.number(static_cast<std::uint32_t>(entry->value.type()));
    out.number(std::uint64_t{entry->value.bytes().size()});
    out.bytes(entry->value.bytes());
  }
}

// A tensor's name, type and shape, and its data: one hash for each block.
Status append_tensor(const gguf::File& file, const gguf::Tensor& tensor, base::ByteWriter& out) {
  out.text(tensor.name);
  out.number(static_cast<std::uint32_t>(tensor.type));
  out.number(std::uint64_t{tensor.dims.size()});
  for (const std::uint64_t dim : tensor.dims) out.number(dim);
  std::vector<std::byte> block(Fingerprint::kSampleBytes);
  return visit_samples(tensor.bytes, [&](std::uint64_t at, std::uint64_t size) -> Status {
    const std::span<std::byte> some = std::span(block).first(size);
    KVASIR_TRY(file.read(tensor, at, some));
    out.number(base::checksum(some));
    return {};
  });
}

// The tensors in order of names, and the vocabulary's hash, which one thread makes meanwhile.
Status append_tensors(const gguf::File& file, parallel::ThreadPool& pool, base::ByteWriter& out,
                      std::uint64_t& vocabulary) {
  std::vector<const gguf::Tensor*> tensors;
  for (const gguf::Tensor& tensor : file.tensors()) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {},
                    [](const gguf::Tensor* tensor) -> const std::string& { return tensor->name; });
  std::vector<std::vector<std::byte>> parts(tensors.size());
  parallel::FirstError first;
  pool.run(tensors.size() + 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Status done = base::within_memory([&]() -> Status {
        if (i == tensors.size()) {
          vocabulary = vocabulary_hash(file);
          return {};
        }
        base::ByteWriter part(parts[i]);
        return append_tensor(file, *tensors[i], part);
      });
      if (!done) first.keep(done.error());
    }
  });
  KVASIR_TRY(std::move(first).status());
  for (const std::vector<std::byte>& part : parts) out.bytes(part);
  return {};
}

}  // namespace

Result<Fingerprint> fingerprint_of(const gguf::File& file, parallel::ThreadPool& pool,
                                   const Hyperparameters& sizes, const Network& network) {
  std::vector<std::byte> bytes;
  base::ByteWriter out(bytes);
  append_keys(file, sizes.architecture, out);
  std::uint64_t vocabulary = 0;
  KVASIR_TRY(append_tensors(file, pool, out, vocabulary));
  const XXH128_hash_t weights = XXH3_128bits(bytes.data(), bytes.size());
  return Fingerprint{
      .weights = {weights.low64, weights.high64}, .rotary = rotary_hash(network), .vocabulary = vocabulary};
}

std::string numerics_id() {
  return std::to_string(kKernelRevision) + " " + std::string(simd::instruction_set()) + " " +
         std::to_string(simd::kTile);
}

}  // namespace kvasir::model
