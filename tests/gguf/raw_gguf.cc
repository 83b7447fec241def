#include "raw_gguf.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

namespace kvasir::gguf::test {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

template <class T>
Value array(std::initializer_list<T> elements) {
  return Value::array(std::span<const T>(elements.begin(), elements.size()));
}

Value strings(std::vector<std::string> texts) {
  return Value::strings(std::span<const std::string>(texts));
}

Value deep_array() {
  const Value inner = *Value::arrays({array<std::int16_t>({-1, 2}), array<std::int16_t>({})});
  const Value texts = *Value::arrays({strings({"deep", ""})});
  return *Value::arrays({inner, texts});
}

std::uint64_t padded(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

RawGguf& RawGguf::raw(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

RawGguf& RawGguf::text(std::string_view text, const std::string& name) {
  u64(text.size(), name + " length");
  return raw(bytes_of(text));
}

RawGguf& RawGguf::pad(std::size_t alignment) {
  bytes_.resize(padded(bytes_.size(), alignment));
  return *this;
}

RawGguf& RawGguf::header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version) {
  raw(bytes_of("GGUF")).u32(version, "version");
  return u64(tensors, "tensor count").u64(keys, "key count");
}

RawGguf& RawGguf::key(std::string_view key, ValueType type) {
  text(key, "key");
  return u32(static_cast<std::uint32_t>(type), "value type");
}

RawGguf& RawGguf::entry(std::string_view key, const Value& of) {
  this->key(key, of.type());
  value(of, std::string(key));
  return *this;
}

// Integers and bools come from the accessors, so that these are tested too; floats keep their bits.
void RawGguf::value(const Value& value, const std::string& name) {
  if (value.is_array()) {
    u32(static_cast<std::uint32_t>(value.element_type()), name + " element type");
    u64(value.size(), name + " array length");
  }
  for (std::uint64_t i = 0; i < value.size(); ++i) {
    switch (value.element_type()) {
      case ValueType::kUint8:
        number(static_cast<std::uint8_t>(*value.uint_at(i)), name);
        break;
      case ValueType::kInt8:
        number(static_cast<std::int8_t>(*value.int_at(i)), name);
        break;
      case ValueType::kUint16:
        number(static_cast<std::uint16_t>(*value.uint_at(i)), name);
        break;
      case ValueType::kInt16:
        number(static_cast<std::int16_t>(*value.int_at(i)), name);
        break;
      case ValueType::kUint32:
        number(static_cast<std::uint32_t>(*value.uint_at(i)), name);
        break;
      case ValueType::kInt32:
        number(static_cast<std::int32_t>(*value.int_at(i)), name);
        break;
      case ValueType::kUint64:
        number(*value.uint_at(i), name);
        break;
      case ValueType::kInt64:
        number(*value.int_at(i), name);
        break;
      case ValueType::kBool:
        number(static_cast<std::uint8_t>(*value.bool_at(i)), name);
        break;
      case ValueType::kFloat32:
        raw(value.bytes().subspan(i * 4, 4));
        break;
      case ValueType::kFloat64:
        raw(value.bytes().subspan(i * 8, 8));
        break;
      case ValueType::kString:
        text(*value.string_at(i), name + " string");
        break;
      case ValueType::kArray:
        this->value(*value.array_at(i), name + " inner");
        break;
    }
  }
}

RawGguf& RawGguf::tensor(std::string_view name, std::span<const std::uint64_t> dims, std::uint32_t type,
                         std::uint64_t offset) {
  text(name, "tensor name").u32(static_cast<std::uint32_t>(dims.size()), "number of dimensions");
  for (const std::uint64_t dim : dims) u64(dim, "dimension");
  return u32(type, "tensor type").u64(offset, "tensor offset");
}

RawGguf image_of(const File& file) {
  // The offsets do not change its length: the first round tells where the tensor data begins.
  std::uint64_t data_start = 0;
  while (true) {
    RawGguf image;
    image.header(file.tensors().size(), file.metadata().size(), file.version());
    for (const KeyValue& entry : file.metadata()) image.entry(entry.key, entry.value);
    for (const Tensor& tensor : file.tensors()) {
      image.tensor(tensor.name, tensor.dims, static_cast<std::uint32_t>(tensor.type),
                   tensor.offset - data_start);
    }
    if (data_start != 0) return image;
    data_start = padded(image.bytes().size(), file.alignment());
  }
}

std::vector<KeyValue> sample_metadata() {
  return {
      {"general.architecture", Value::string("sample")},
      {"general.alignment", Value::scalar<std::uint32_t>(kSampleAlignment)},
      {"a.uint8", Value::scalar<std::uint8_t>(200)},
      {"a.int8", Value::scalar<std::int8_t>(-100)},
      {"a.uint16", Value::scalar<std::uint16_t>(60000)},
      {"a.int16", Value::scalar<std::int16_t>(-30000)},
      {"a.uint32", Value::scalar<std::uint32_t>(4000000000)},
      {"a.int32", Value::scalar<std::int32_t>(-2000000000)},
      {"a.float32", Value::scalar(0.1F)},
      {"a.bool", Value::scalar(true)},
      {"a.string", Value::string("gr\xC3\xBC\xC3\x9F dich\n")},
      {"a.uint64", Value::scalar(std::numeric_limits<std::uint64_t>::max())},
      {"a.int64", Value::scalar(std::numeric_limits<std::int64_t>::min())},
      {"a.float64", Value::scalar(1e300)},
      {"many.uint8", array<std::uint8_t>({0, 255, 7})},
      {"many.int8", array<std::int8_t>({-128, 127})},
      {"many.uint16", array<std::uint16_t>({0, 65535})},
      {"many.int16", array<std::int16_t>({-32768, 32767})},
      {"many.uint32", array<std::uint32_t>({0, 4294967295})},
      {"many.int32", array<std::int32_t>({-2147483647, 2147483647})},
      {"many.float32", array<float>({0.5F, -INFINITY, NAN})},
      {"many.bool", array<bool>({true, false, true})},
      {"many.string", strings({"", "one", "zwei \xF0\x9F\x90\xA6"})},
      {"many.uint64", array<std::uint64_t>({1, 1ULL << 63})},
      {"many.int64", array<std::int64_t>({-1, 1LL << 62})},
      {"many.float64", array<double>({1e-300, NAN})},
      {"many.array", deep_array()},
      {"none.string", strings({})},
      {"none.uint8", array<std::uint8_t>({})},
  };
}

std::vector<SampleTensor> sample_tensors() {
  using quant::BlockType;
  return {
      {"token_embd.weight", BlockType::kF32, {8, 5}, noise(160, 1)},
      {"half", BlockType::kF16, {6}, noise(12, 2)},
      {"brain", BlockType::kBF16, {2, 2, 2}, noise(16, 3)},
      {"blocks", BlockType::kQ8_0, {64, 1, 2}, noise(136, 4)},
      {"super", BlockType::kQ4_K, {256, 1}, noise(144, 5)},
      {"whole", BlockType::kI32, {1, 1, 1, 3}, noise(12, 6)},
  };
}

Bytes sample(std::uint32_t version) {
  const std::vector<KeyValue> metadata = sample_metadata();
  const std::vector<SampleTensor> tensors = sample_tensors();
  RawGguf file;
  file.header(tensors.size(), metadata.size(), version);
  for (const KeyValue& entry : metadata) file.entry(entry.key, entry.value);
  std::uint64_t offset = 0;
  for (const SampleTensor& tensor : tensors) {
    file.tensor(tensor.name, tensor.dims, static_cast<std::uint32_t>(tensor.type), offset);
    offset += padded(tensor.data.size(), kSampleAlignment);
  }
  for (const SampleTensor& tensor : tensors) file.pad(kSampleAlignment).raw(tensor.data);
  file.pad(kSampleAlignment);
  return file.bytes();
}

std::vector<std::unique_ptr<base::ReadFile>> in_memory(Bytes bytes) {
  std::vector<std::unique_ptr<base::ReadFile>> files;
  files.push_back(base::memory_file(std::move(bytes)));
  return files;
}

Result<File> parse(Bytes bytes) {
  return File::parse(in_memory(std::move(bytes)));
}

Bytes noise(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace kvasir::gguf::test
