#include "gguf/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "gguf/checks.h"
#include "gguf/index.h"
#include "gguf/value.h"

namespace kvasir::gguf {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

// Where the fields of the header go: they are counted first, then written, by the same code.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status put(std::span<const std::byte> bytes) = 0;

  template <class T>
  Status number(T value) {
    return put(std::as_bytes(std::span(&value, 1)));
  }
  Status text(std::string_view text) {
    KVASIR_TRY(number<std::uint64_t>(text.size()));
    return put(std::as_bytes(std::span(text)));
  }
};

class Counter final : public Sink {
 public:
  Status put(std::span<const std::byte> bytes) override {
    bytes_ += bytes.size();
    return {};
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

class BufferedFile final : public Sink {
 public:
  explicit BufferedFile(base::ReplacingFile& file) : file_(file) {}

  Status put(std::span<const std::byte> bytes) override {
    if (buffer_.size() + bytes.size() > kBufferBytes) KVASIR_TRY(flush());
    if (bytes.size() >= kBufferBytes) return file_.write(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Status flush() {
    KVASIR_TRY(file_.write(buffer_));
    buffer_.clear();
    return {};
  }

 private:
  base::ReplacingFile& file_;
  std::vector<std::byte> buffer_;
};

Status put_type(Sink& sink, ValueType type) {
  return sink.number(static_cast<std::uint32_t>(type));
}

Status put_array(Sink& sink, const Value& array) {
  KVASIR_TRY(put_type(sink, array.element_type()));
  KVASIR_TRY(sink.number<std::uint64_t>(array.size()));
  KVASIR_TRY(sink.put(array.bytes()));
  if (array.element_type() == ValueType::kString) {
    for (std::uint64_t i = 0; i < array.size(); ++i) KVASIR_TRY(sink.text(array.string_at(i).value_or("")));
  }
  if (array.element_type() == ValueType::kArray) {
    for (std::uint64_t i = 0; i < array.size(); ++i) KVASIR_TRY(put_array(sink, *array.array_at(i)));
  }
  return {};
}

Status put_value(Sink& sink, const Value& value) {
  KVASIR_TRY(put_type(sink, value.type()));
  if (value.is_array()) return put_array(sink, value);
  if (const auto text = value.as_string()) return sink.text(*text);
  return sink.put(value.bytes());
}

// `data_start` is where the tensor data begins in the file: offsets count from there.
Status put_tensor(Sink& sink, const Tensor& tensor, std::uint64_t data_start) {
  KVASIR_TRY(sink.text(tensor.name));
  KVASIR_TRY(sink.number(static_cast<std::uint32_t>(tensor.dims.size())));
  KVASIR_TRY(sink.put(std::as_bytes(std::span(tensor.dims))));
  KVASIR_TRY(sink.number(static_cast<std::uint32_t>(tensor.type)));
  return sink.number<std::uint64_t>(tensor.offset - data_start);
}

Status put_header(Sink& sink, std::span<const KeyValue> metadata, std::span<const Tensor> tensors,
                  std::uint64_t data_start) {
  KVASIR_TRY(sink.put(std::as_bytes(std::span("GGUF", 4))));
  KVASIR_TRY(sink.number(kVersion));
  KVASIR_TRY(sink.number<std::uint64_t>(tensors.size()));
  KVASIR_TRY(sink.number<std::uint64_t>(metadata.size()));
  for (const KeyValue& entry : metadata) {
    KVASIR_TRY(sink.text(entry.key));
    KVASIR_TRY(put_value(sink, entry.value));
  }
  for (const Tensor& tensor : tensors) KVASIR_TRY(put_tensor(sink, tensor, data_start));
  return {};
}

std::uint64_t header_bytes(std::span<const KeyValue> metadata, std::span<const Tensor> tensors) {
  Counter counter;
  (void)put_header(counter, metadata, tensors, 0);  // counting cannot fail
  return counter.bytes();
}

// `value` was checked to be far below 2^64.
std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return base::div_up(value, step) * step;
}

// Bytes of the whole file, or nothing where they overflow.
std::optional<std::uint64_t> finished_bytes(std::uint64_t header, std::uint64_t alignment,
                                            std::span<const Tensor> tensors) {
  auto end = base::checked_round_up(header, alignment);
  for (const Tensor& tensor : tensors) {
    const auto padded = base::checked_round_up(tensor.bytes, alignment);
    end = end && padded ? base::checked_add(*end, *padded) : std::nullopt;
  }
  return end;
}

std::uint64_t nested_arrays(const Value& value) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; value.array_at(i) != nullptr; ++i) count += 1 + nested_arrays(*value.array_at(i));
  return count;
}

Status check_limit(std::string_view what, std::uint64_t count, std::uint64_t limit) {
  if (count <= limit) return {};
  return fail(Outcome::kInvalidArgument,
              fmt::format("{} {}; a GGUF file that is read holds at most {}", count, what, limit),
              {.wanted = count, .limit = limit});
}

template <class T>
Status check_distinct(const std::vector<T>& things, std::string T::* name, std::string_view what) {
  const std::span<const T> all = things;
  const T* twin = find_duplicate(all, std::span<const std::uint32_t>(index_by_name(all, name)), name);
  if (twin == nullptr) return {};
  return fail(Outcome::kInvalidArgument, fmt::format("the {} {} occurs twice", what, quoted(twin->*name)));
}

Status write_zeros(base::ReplacingFile& file, std::uint64_t count) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (count > 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(count, kZeros.size());
    KVASIR_TRY(file.write(std::span(kZeros).first(piece)));
    count -= piece;
  }
  return {};
}

}  // namespace

Status Writer::add(std::string key, Value value) {
  return base::within_memory([&] { return describe(std::move(key), std::move(value)); });
}

Status Writer::describe(std::string key, Value value) {
  if (phase_ != Phase::kDescribing) return fail(Outcome::kWrongState, "metadata is added before begin()");
  KVASIR_TRY(check_name(key, Outcome::kInvalidArgument));
  if (key == "general.alignment") {
    const auto alignment = value.as_uint();
    if (value.type() != ValueType::kUint32 || !alignment) {
      return fail(Outcome::kInvalidArgument, fmt::format("general.alignment must be a uint32, not of type {}",
                                                         value_type_name(value.type())));
    }
    KVASIR_TRY(check_alignment(*alignment, Outcome::kInvalidArgument));
    alignment_ = *alignment;
  }
  metadata_.push_back({std::move(key), std::move(value)});
  return {};
}

Status Writer::add_tensor(std::string name, quant::BlockType type, std::vector<std::uint64_t> dims) {
  return base::within_memory([&] { return describe_tensor(std::move(name), type, std::move(dims)); });
}

Status Writer::describe_tensor(std::string name, quant::BlockType type, std::vector<std::uint64_t> dims) {
  if (phase_ != Phase::kDescribing) return fail(Outcome::kWrongState, "tensors are added before begin()");
  KVASIR_TRY(check_name(name, Outcome::kInvalidArgument));
  const quant::BlockTypeInfo* info = quant::find_block_type(static_cast<std::uint32_t>(type));
  if (info == nullptr) {
    return fail(Outcome::kInvalidArgument, fmt::format("tensor {}: the type {} is not known", quoted(name),
                                                       static_cast<std::uint32_t>(type)));
  }
  const Result<std::uint64_t> bytes = tensor_bytes(*info, dims, Outcome::kInvalidArgument);
  if (!bytes) return fail(bytes.error().within("tensor " + quoted(name)));
  tensors_.push_back({std::move(name), type, std::move(dims), 0, 0, *bytes});
  return {};
}

std::uint64_t Writer::file_bytes() const noexcept {
  const std::uint64_t header = header_bytes(metadata_, tensors_);
  return finished_bytes(header, alignment_, tensors_).value_or(UINT64_MAX);
}

Status Writer::check_description(std::uint64_t header) const {
  KVASIR_TRY(check_distinct(metadata_, &KeyValue::key, "metadata key"));
  KVASIR_TRY(check_distinct(tensors_, &Tensor::name, "tensor name"));
  std::uint64_t nested = 0;
  for (const KeyValue& entry : metadata_) nested += nested_arrays(entry.value);
  KVASIR_TRY(check_limit("metadata keys", metadata_.size(), kMaxKeys));
  KVASIR_TRY(check_limit("tensors", tensors_.size(), kMaxTensors));
  KVASIR_TRY(check_limit("arrays inside arrays", nested, kMaxNestedArrays));
  KVASIR_TRY(check_limit("bytes of metadata", header, kMaxMetadataBytes));
  if (finished_bytes(header, alignment_, tensors_)) return {};
  return fail(Outcome::kInvalidArgument,
              fmt::format("{} tensors have more than 2^64 bytes together", tensors_.size()));
}

Status Writer::begin(std::unique_ptr<base::ReplacingFile> file) {
  if (phase_ != Phase::kDescribing) return fail(Outcome::kWrongState, "begin() was called before");
  return base::within_memory([&] { return write_header(std::move(file)); });
}

Status Writer::write_header(std::unique_ptr<base::ReplacingFile> file) {
  const std::uint64_t header = header_bytes(metadata_, tensors_);
  KVASIR_TRY(check_description(header));
  const std::uint64_t data_start = round_up(header, alignment_);
  std::uint64_t offset = data_start;
  for (Tensor& tensor : tensors_) {
    tensor.offset = offset;
    offset += round_up(tensor.bytes, alignment_);
  }
  file_ = std::move(file);
  phase_ = Phase::kFailed;  // until all of the header is written
  BufferedFile sink(*file_);
  KVASIR_TRY(put_header(sink, metadata_, tensors_, data_start));
  KVASIR_TRY(sink.flush());
  KVASIR_TRY(write_zeros(*file_, data_start - header));
  phase_ = Phase::kStreaming;
  return {};
}

const Tensor* Writer::current() const noexcept {
  return phase_ == Phase::kStreaming && next_ < tensors_.size() ? &tensors_[next_] : nullptr;
}

Status Writer::check_streaming() const {
  switch (phase_) {
    case Phase::kDescribing:
      return fail(Outcome::kWrongState, "call begin() first");
    case Phase::kFailed:
      return fail(Outcome::kWrongState, "writing failed before; start the file anew");
    case Phase::kDone:
      return fail(Outcome::kWrongState, "the file is finished");
    case Phase::kStreaming:
      break;
  }
  return {};
}

Status Writer::write(std::span<const std::byte> bytes) {
  KVASIR_TRY(check_streaming());
  if (bytes.empty()) return {};
  const Tensor* tensor = current();
  if (tensor == nullptr) {
    return fail(Outcome::kWrongState,
                fmt::format("all {} tensors are written; call commit()", tensors_.size()));
  }
  if (bytes.size() > tensor->bytes - written_) {
    return fail(Outcome::kInvalidArgument,
                fmt::format("{} bytes for tensor {}, which lacks only {} of {}", bytes.size(),
                            quoted(tensor->name), tensor->bytes - written_, tensor->bytes),
                {.wanted = bytes.size(), .available = tensor->bytes - written_});
  }
  phase_ = Phase::kFailed;  // until they are written
  KVASIR_TRY(file_->write(bytes));
  written_ += bytes.size();
  if (written_ == tensor->bytes) {
    KVASIR_TRY(write_zeros(*file_, round_up(tensor->bytes, alignment_) - tensor->bytes));
    ++next_;
    written_ = 0;
  }
  phase_ = Phase::kStreaming;
  return {};
}

Status Writer::commit() {
  KVASIR_TRY(check_streaming());
  if (const Tensor* tensor = current(); tensor != nullptr) {
    return fail(Outcome::kWrongState,
                fmt::format("tensor {} has {} of its {} bytes, and {} of {} tensors are written",
                            quoted(tensor->name), written_, tensor->bytes, next_, tensors_.size()),
                {.wanted = tensor->bytes, .available = written_});
  }
  phase_ = Phase::kFailed;  // until it is in place
  KVASIR_TRY(file_->commit());
  phase_ = Phase::kDone;
  return {};
}

}  // namespace kvasir::gguf
