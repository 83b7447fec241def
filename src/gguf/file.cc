#include <fmt/format.h>

#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "gguf/checks.h"
#include "gguf/gguf.h"
#include "gguf/index.h"
#include "gguf/shard.h"
#include "gguf/split.h"

namespace kvasir::gguf {

// Puts validated shards together and checks what concerns them jointly.
class Assembler {
 public:
  static Result<File> assemble(std::vector<Shard> shards) {
    KVASIR_TRY(check_places(shards));
    File file;
    file.version_ = shards[0].version;
    file.alignment_ = shards[0].alignment;
    file.metadata_ = std::move(shards[0].metadata);
    file.keys_by_name_ = std::move(shards[0].keys_by_name);
    file.tensors_ = gather_tensors(shards);
    for (Shard& shard : shards) file.shards_.push_back(std::move(shard.file));
    file.tensors_by_name_ = index_by_name(file.tensors(), &Tensor::name);
    const Tensor* twin = find_duplicate(file.tensors(), file.tensors_by_name_, &Tensor::name);
    if (twin != nullptr)
      return fail(Outcome::kCorrupt, "the tensor name " + quoted(twin->name) + " occurs twice");
    return file;
  }

 private:
  static Status check_places(const std::vector<Shard>& shards) {
    std::uint64_t tensors = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      KVASIR_ASSIGN(const SplitPlace place, split_place(shards[i]));
      if (place.number != i || place.count != shards.size()) {
        return fail(Outcome::kCorrupt, fmt::format("shard {} of {} says it is shard {} of {}", i + 1,
                                                   shards.size(), place.number + 1, place.count));
      }
      tensors += shards[i].tensors.size();
    }
    return shards.size() == 1 ? Status{} : check_tensor_count(shards[0], tensors);
  }

  static Status check_tensor_count(const Shard& first, std::uint64_t tensors) {
    KVASIR_ASSIGN(const SplitPlace place, split_place(first));
    if (place.tensors == tensors) return {};
    if (!place.tensors)
      return fail(Outcome::kCorrupt, "the first shard lacks the metadata key split.tensors.count");
    return fail(
        Outcome::kCorrupt,
        fmt::format("split.tensors.count is {}, but the shards hold {} tensors", *place.tensors, tensors),
        {.wanted = place.tensors, .available = tensors});
  }

  static std::vector<Tensor> gather_tensors(std::vector<Shard>& shards) {
    if (shards.size() == 1) return std::move(shards[0].tensors);
    std::size_t count = 0;
    for (const Shard& shard : shards) count += shard.tensors.size();
    std::vector<Tensor> all;
    all.reserve(count);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      for (Tensor& tensor : std::exchange(shards[i].tensors, {})) {
        tensor.shard = static_cast<std::uint32_t>(i);
        all.push_back(std::move(tensor));
      }
    }
    return all;
  }
};

namespace {

Result<Shard> open_shard(base::FileSystem& files, const std::string& path) {
  KVASIR_ASSIGN(std::unique_ptr<base::ReadFile> file, files.open_read(path));
  Result<Shard> shard = read_shard(std::move(file));
  if (!shard) return fail(shard.error().within("'" + path + "'"));
  return shard;
}

// The shards of a file as they are opened: holds no more of each than is needed.
class ShardList {
 public:
  explicit ShardList(std::size_t count) : shards_(count) {}

  Status put(std::size_t number, Shard shard) {
    tensors_ += shard.tensors.size();
    if (tensors_ > kMaxTensors) {
      return fail(
          Outcome::kUnsupported,
          fmt::format("{} tensors up to shard {}; at most {} are read", tensors_, number + 1, kMaxTensors),
          {.wanted = tensors_, .limit = kMaxTensors});
    }
    if (number > 0) keep_place_only(shard);
    shards_[number] = std::move(shard);
    return {};
  }

  [[nodiscard]] std::vector<Shard> take() { return std::move(shards_); }

 private:
  // What later shards say in their metadata is checked and then let go of, but for their place.
  static void keep_place_only(Shard& shard) {
    std::erase_if(shard.metadata, [](const KeyValue& entry) { return !entry.key.starts_with("split."); });
    shard.metadata.shrink_to_fit();
    shard.keys_by_name = index_by_name(std::span<const KeyValue>(shard.metadata), &KeyValue::key);
  }

  std::vector<Shard> shards_;
  std::uint64_t tensors_ = 0;
};

Result<std::vector<Shard>> open_split(base::FileSystem& files, const std::string& path, Shard found,
                                      const SplitPlace& place) {
  const auto name = parse_split_name(path);
  if (!name) {
    return fail(
        Outcome::kNotFound,
        fmt::format("'{}' is shard {} of {}, but the others cannot be found: its name does not end with "
                    "-{:05}-of-{:05}.gguf",
                    path, place.number + 1, place.count, place.number + 1, place.count));
  }
  if (name->number != place.number || name->count != place.count) {
    return fail(Outcome::kCorrupt, fmt::format("'{}' says inside that it is shard {} of {}", path,
                                               place.number + 1, place.count));
  }
  ShardList shards(place.count);
  KVASIR_TRY(shards.put(place.number, std::move(found)));
  for (std::uint64_t i = 0; i < place.count; ++i) {
    if (i == place.number) continue;
    KVASIR_ASSIGN(Shard shard, open_shard(files, name->sibling(i)));
    KVASIR_TRY(shards.put(i, std::move(shard)));
  }
  return shards.take();
}

Result<File> open_all(base::FileSystem& files, const std::string& path) {
  KVASIR_ASSIGN(Shard found, open_shard(files, path));
  const Result<SplitPlace> place = split_place(found);
  if (!place) return fail(place.error().within("'" + path + "'"));
  std::vector<Shard> shards;
  if (place->count == 1) {
    shards.push_back(std::move(found));
  } else {
    KVASIR_ASSIGN(shards, open_split(files, path, std::move(found), *place));
  }
  Result<File> file = Assembler::assemble(std::move(shards));
  if (!file) return fail(file.error().within("'" + path + "'"));
  return file;
}

Result<File> parse_all(std::vector<std::unique_ptr<base::ReadFile>> files) {
  if (files.empty()) return fail(Outcome::kInvalidArgument, "no file was given");
  ShardList shards(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    Result<Shard> shard = read_shard(std::move(files[i]));
    if (!shard && files.size() == 1) return fail(std::move(shard).error());
    if (!shard) return fail(shard.error().within(fmt::format("shard {} of {}", i + 1, files.size())));
    KVASIR_TRY(shards.put(i, *std::move(shard)));
  }
  return Assembler::assemble(shards.take());
}

// A value as an error shows it.
std::string described(const Value& value) {
  const std::string_view type = value_type_name(value.type());
  if (value.is_array())
    return fmt::format("an array of {} {}", value.size(), value_type_name(value.element_type()));
  if (const auto number = value.as_int()) return fmt::format("the {} {}", type, *number);
  if (const auto number = value.as_uint()) return fmt::format("the {} {}", type, *number);
  if (const auto number = value.as_float()) return fmt::format("the {} {}", type, *number);
  if (const auto text = value.as_string()) return "the string " + quoted(*text);
  return fmt::format("a {}", type);
}

std::unexpected<Error> unfit(std::string_view key, const Value& value, std::string_view wanted) {
  return fail(Outcome::kCorrupt,
              fmt::format("the metadata key {} is {}; {} is needed", quoted(key), described(value), wanted));
}

Result<const Value*> present(const File& file, std::string_view key) {
  const Value* value = file.find(key);
  if (value == nullptr) return fail(Outcome::kNotFound, "the metadata key " + quoted(key) + " is missing");
  return value;
}

// One value: `read` a member of Value that answers an optional.
template <class T>
Result<T> get_one(const File& file, std::string_view key, std::optional<T> (Value::*read)() const noexcept,
                  std::string_view wanted) {
  return base::within_memory([&]() -> Result<T> {
    KVASIR_ASSIGN(const Value* value, present(file, key));
    const std::optional<T> one = (value->*read)();
    if (!one) return unfit(key, *value, wanted);
    return *one;
  });
}

template <class T>
Result<std::vector<T>> get_many(const File& file, std::string_view key,
                                std::optional<T> (Value::*read)(std::uint64_t) const noexcept,
                                std::string_view wanted) {
  return base::within_memory([&]() -> Result<std::vector<T>> {
    KVASIR_ASSIGN(const Value* value, present(file, key));
    if (!value->is_array()) return unfit(key, *value, wanted);
    std::vector<T> many;
    // An array of another kind is refused at its first element, before memory is taken for all of them.
    if (value->size() == 0 || (value->*read)(0)) many.reserve(value->size());
    for (std::uint64_t i = 0; i < value->size(); ++i) {
      const std::optional<T> one = (value->*read)(i);
      if (!one) return fail(unfit(key, *value, wanted).error().within(fmt::format("element {}", i)));
      many.push_back(*one);
    }
    return many;
  });
}

}  // namespace

std::uint64_t Tensor::rows() const noexcept {
  std::uint64_t rows = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) rows *= dims[i];
  return rows;
}

Result<File> File::open(base::FileSystem& files, const std::string& path) {
  return base::within_memory([&] { return open_all(files, path); });
}

Result<File> File::parse(std::vector<std::unique_ptr<base::ReadFile>> shards) {
  return base::within_memory([&] { return parse_all(std::move(shards)); });
}

const Value* File::find(std::string_view key) const noexcept {
  const KeyValue* entry = find_by_name(metadata(), keys_by_name_, key, &KeyValue::key);
  return entry == nullptr ? nullptr : &entry->value;
}

Result<std::uint64_t> File::get_uint(std::string_view key) const {
  return get_one(*this, key, &Value::as_uint, "an integer of 0 or more");
}

Result<std::int64_t> File::get_int(std::string_view key) const {
  return get_one(*this, key, &Value::as_int, "an integer below 2^63");
}

Result<double> File::get_float(std::string_view key) const {
  return get_one(*this, key, &Value::as_float, "a number");
}

Result<bool> File::get_bool(std::string_view key) const {
  return get_one(*this, key, &Value::as_bool, "a bool");
}

Result<std::string_view> File::get_string(std::string_view key) const {
  return get_one(*this, key, &Value::as_string, "a string");
}

Result<std::vector<double>> File::get_float_array(std::string_view key) const {
  return get_many(*this, key, &Value::float_at, "an array of numbers");
}

Result<std::vector<std::int64_t>> File::get_int_array(std::string_view key) const {
  return get_many(*this, key, &Value::int_at, "an array of integers below 2^63");
}

Result<std::vector<std::string_view>> File::get_string_array(std::string_view key) const {
  return get_many(*this, key, &Value::string_at, "an array of strings");
}

const Tensor* File::find_tensor(std::string_view name) const noexcept {
  return find_by_name(tensors(), tensors_by_name_, name, &Tensor::name);
}

Status File::read(const Tensor& tensor, std::uint64_t offset_in_tensor, std::span<std::byte> into) const {
  if (tensor.shard >= shards_.size()) {
    return fail(Outcome::kInvalidArgument, fmt::format("tensor {} lies in shard {}; the file has {}",
                                                       quoted(tensor.name), tensor.shard, shards_.size()));
  }
  if (offset_in_tensor > tensor.bytes || into.size() > tensor.bytes - offset_in_tensor) {
    return fail(Outcome::kInvalidArgument,
                fmt::format("tensor {} has {} bytes; {} from {} on were asked for", quoted(tensor.name),
                            tensor.bytes, into.size(), offset_in_tensor),
                {.wanted = into.size(), .available = tensor.bytes});
  }
  const Status read = shards_[tensor.shard]->read_at(tensor.offset + offset_in_tensor, into);
  if (!read) return fail(read.error().within("tensor " + quoted(tensor.name)));
  return {};
}

std::uint64_t File::size_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->size();
  return bytes;
}

}  // namespace kvasir::gguf
