#include "gguf/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/try.h"
#include "gguf/byte_reader.h"
#include "gguf/checks.h"
#include "gguf/index.h"
#include "gguf/value_reader.h"

namespace kvasir::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kOldestVersion = 2;
constexpr std::uint32_t kNewestVersion = 3;

// The least bytes that one entry can have: a length, one byte of name, and the shortest rest.
constexpr std::uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

struct Counts {
  std::uint64_t tensors = 0;
  std::uint64_t keys = 0;
};

// Reads a Shard field by field, in file order.
class ShardReader {
 public:
  explicit ShardReader(Shard& shard) : shard_(shard), bytes_(*shard.file) {}

  Status read() {
    KVASIR_TRY(read_magic());
    KVASIR_TRY(read_version());
    KVASIR_ASSIGN(const Counts counts, read_counts());
    KVASIR_TRY(read_metadata(counts.keys));
    KVASIR_TRY(choose_alignment());
    KVASIR_TRY(read_tensors(counts.tensors));
    return place_tensors();
  }

 private:
  Status read_magic();
  Status read_version();
  Result<Counts> read_counts();
  Status read_metadata(std::uint64_t count);
  Result<KeyValue> read_key_value(ValueReader& values);
  Status choose_alignment();
  Status read_tensors(std::uint64_t count);
  Status read_tensor(Tensor& tensor);
  Status place_tensors();
  Status place_tensor(Tensor& tensor, std::uint64_t data_start) const;
  Status check_overlaps() const;
  Result<std::string> read_name(std::string_view field);

  Shard& shard_;
  ByteReader bytes_;
};

Status ShardReader::read_magic() {
  std::array<char, kMagic.size()> magic{};
  KVASIR_TRY(bytes_.read(std::as_writable_bytes(std::span(magic)), "magic"));
  const std::string_view found(magic.data(), magic.size());
  if (found == kMagic) return {};
  return fail(Outcome::kCorrupt,
              "this is not a GGUF file: it begins with " + quoted(found) + ", not with 'GGUF'");
}

Status ShardReader::read_version() {
  KVASIR_ASSIGN(shard_.version, bytes_.number<std::uint32_t>("version"));
  const std::uint32_t version = shard_.version;
  if (version >= kOldestVersion && version <= kNewestVersion) return {};
  const ErrorNumbers numbers{.wanted = version, .limit = kNewestVersion};
  if (version == 1) {
    return fail(Outcome::kUnsupported,
                "this is GGUF version 1, an early format; only 2 and 3 are read: convert the model anew",
                numbers);
  }
  const std::uint32_t swapped = std::byteswap(version);
  if (swapped >= 1 && swapped <= kNewestVersion) {
    return fail(
        Outcome::kUnsupported,
        fmt::format("this is a big-endian GGUF file (version {}); only little-endian ones are read", swapped),
        numbers);
  }
  return fail(Outcome::kUnsupported, fmt::format("this is GGUF version {}; only 2 and 3 are read", version),
              numbers);
}

Result<Counts> ShardReader::read_counts() {
  Counts counts;
  KVASIR_ASSIGN(counts.tensors, bytes_.number<std::uint64_t>("tensor count"));
  KVASIR_ASSIGN(counts.keys, bytes_.number<std::uint64_t>("metadata key count"));
  KVASIR_TRY(bytes_.expect(counts.keys, kLeastKeyBytes, "list of metadata keys"));
  KVASIR_TRY(bytes_.expect(counts.tensors, kLeastTensorBytes, "list of tensors"));
  if (counts.keys > kMaxKeys) {
    return fail(Outcome::kUnsupported,
                fmt::format("{} metadata keys; at most {} are read", counts.keys, kMaxKeys),
                {.wanted = counts.keys, .limit = kMaxKeys});
  }
  if (counts.tensors > kMaxTensors) {
    return fail(Outcome::kUnsupported,
                fmt::format("{} tensors; at most {} are read", counts.tensors, kMaxTensors),
                {.wanted = counts.tensors, .limit = kMaxTensors});
  }
  return counts;
}

Result<std::string> ShardReader::read_name(std::string_view field) {
  KVASIR_ASSIGN(const auto length, bytes_.number<std::uint64_t>("name length"));
  if (length > kMaxNameBytes) {
    return fail(Outcome::kCorrupt,
                fmt::format("the name has {} bytes, at most {} are allowed", length, kMaxNameBytes),
                {.wanted = length, .limit = kMaxNameBytes});
  }
  KVASIR_TRY(bytes_.expect(length, 1, field));
  std::string name(length, '\0');
  KVASIR_TRY(bytes_.read(std::as_writable_bytes(std::span(name)), field));
  KVASIR_TRY(check_name(name, Outcome::kCorrupt));
  return name;
}

Result<KeyValue> ShardReader::read_key_value(ValueReader& values) {
  KVASIR_ASSIGN(std::string key, read_name("key"));
  Result<Value> value = values.read();
  if (!value) return fail(value.error().within(quoted(key)));
  return KeyValue{std::move(key), *std::move(value)};
}

Status ShardReader::read_metadata(std::uint64_t count) {
  ValueReader values(bytes_);
  shard_.metadata.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Result<KeyValue> entry = read_key_value(values);
    if (!entry) return fail(entry.error().within(fmt::format("metadata key {} of {}", i + 1, count)));
    shard_.metadata.push_back(*std::move(entry));
  }
  const std::span<const KeyValue> metadata = shard_.metadata;
  shard_.keys_by_name = index_by_name(metadata, &KeyValue::key);
  const KeyValue* twin = find_duplicate(metadata, shard_.keys_by_name, &KeyValue::key);
  if (twin == nullptr) return {};
  return fail(Outcome::kCorrupt, "the metadata key " + quoted(twin->key) + " occurs twice");
}

Status ShardReader::choose_alignment() {
  const Value* value = shard_.find("general.alignment");
  if (value == nullptr) return {};
  const auto alignment = value->as_uint();
  if (value->type() != ValueType::kUint32 || !alignment) {
    return fail(Outcome::kCorrupt, fmt::format("general.alignment is a {}; it must be a uint32",
                                               value_type_name(value->type())));
  }
  shard_.alignment = *alignment;
  return check_alignment(shard_.alignment, Outcome::kCorrupt);
}

Status ShardReader::read_tensors(std::uint64_t count) {
  shard_.tensors.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Tensor& tensor = shard_.tensors.emplace_back();
    Result<std::string> name = read_name("tensor name");
    if (!name) return fail(name.error().within(fmt::format("tensor {} of {}", i + 1, count)));
    tensor.name = *std::move(name);
    if (const Status read = read_tensor(tensor); !read)
      return fail(read.error().within("tensor " + quoted(tensor.name)));
  }
  return {};
}

Status ShardReader::read_tensor(Tensor& tensor) {
  KVASIR_ASSIGN(const auto n_dims, bytes_.number<std::uint32_t>("number of dimensions"));
  if (n_dims == 0 || n_dims > kMaxDimensions) {
    return fail(Outcome::kCorrupt,
                fmt::format("it has {} dimensions; 1 to {} are allowed", n_dims, kMaxDimensions),
                {.wanted = n_dims, .limit = kMaxDimensions});
  }
  tensor.dims.resize(n_dims);
  KVASIR_TRY(bytes_.read(std::as_writable_bytes(std::span(tensor.dims)), "dimensions"));
  KVASIR_ASSIGN(const auto number, bytes_.number<std::uint32_t>("type"));
  const quant::BlockTypeInfo* type = quant::find_block_type(number);
  if (type == nullptr) {
    return fail(Outcome::kUnsupported, fmt::format("its type is {}, which is not known", number),
                {.wanted = number});
  }
  tensor.type = type->type;
  KVASIR_ASSIGN(tensor.bytes, tensor_bytes(*type, tensor.dims, Outcome::kCorrupt));
  KVASIR_ASSIGN(tensor.offset, bytes_.number<std::uint64_t>("offset"));
  return {};
}

// Turns offsets that count from the start of the tensor data into offsets in the file.
Status ShardReader::place_tensors() {
  // The metadata ends within kMaxMetadataBytes, so that this cannot overflow.
  const std::uint64_t data_start =
      base::checked_round_up(bytes_.position(), shard_.alignment).value_or(UINT64_MAX);
  for (Tensor& tensor : shard_.tensors) {
    if (const Status placed = place_tensor(tensor, data_start); !placed) {
      return fail(placed.error().within("tensor " + quoted(tensor.name)));
    }
  }
  return check_overlaps();
}

Status ShardReader::place_tensor(Tensor& tensor, std::uint64_t data_start) const {
  if (tensor.offset % shard_.alignment != 0) {
    return fail(
        Outcome::kCorrupt,
        fmt::format("its offset {} is no multiple of the alignment {}", tensor.offset, shard_.alignment),
        {.wanted = tensor.offset, .limit = shard_.alignment});
  }
  const std::uint64_t size = shard_.file->size();
  const auto start = base::checked_add(data_start, tensor.offset);
  const auto end = start ? base::checked_add(*start, tensor.bytes) : std::nullopt;
  if (!end || *end > size) {
    return fail(
        Outcome::kCorrupt,
        fmt::format(
            "the file is incomplete or damaged: {} bytes at offset {} of the tensor data, which begins "
            "at byte {}, end beyond the file's {} bytes",
            tensor.bytes, tensor.offset, data_start, size),
        {.wanted = end.value_or(UINT64_MAX), .available = size});
  }
  tensor.offset = *start;
  return {};
}

Status ShardReader::check_overlaps() const {
  const std::vector<Tensor>& tensors = shard_.tensors;
  std::vector<std::uint32_t> order = counted(tensors.size());
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return tensors[i].offset; });
  const auto bad = std::ranges::adjacent_find(order, [&](std::uint32_t a, std::uint32_t b) {
    return tensors[a].offset + tensors[a].bytes > tensors[b].offset;
  });
  if (bad == order.end()) return {};
  const Tensor& first = tensors[*bad];
  const Tensor& second = tensors[*(bad + 1)];
  return fail(Outcome::kCorrupt,
              fmt::format("the tensors {} and {} overlap: bytes {} to {} and {} to {}", quoted(first.name),
                          quoted(second.name), first.offset, first.offset + first.bytes, second.offset,
                          second.offset + second.bytes));
}

}  // namespace

const Value* Shard::find(std::string_view key) const noexcept {
  const KeyValue* entry =
      find_by_name(std::span<const KeyValue>(metadata), keys_by_name, key, &KeyValue::key);
  return entry == nullptr ? nullptr : &entry->value;
}

Result<Shard> read_shard(std::unique_ptr<base::ReadFile> file) {
  Shard shard;
  shard.file = std::move(file);
  KVASIR_TRY(ShardReader(shard).read());
  return shard;
}

}  // namespace kvasir::gguf
