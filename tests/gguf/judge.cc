#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "support/allocations.h"

namespace kvasir::gguf::test {
namespace {

constexpr std::int64_t kMemoryBeyondFile = std::int64_t{64} << 20;
constexpr std::size_t kComplaintsKept = 10;

std::optional<std::string> judge_refusal(const Error& error) {
  if (error.message().size() < 12) return "the refusal is no sentence: " + error.message();
  if (!base::is_utf8(error.message())) return "the refusal is not UTF-8";
  if (error.code() != Outcome::kCorrupt && error.code() != Outcome::kUnsupported) {
    return fmt::format("the refusal is of kind {}: {}", outcome_name(error.code()), error.message());
  }
  return std::nullopt;
}

std::optional<std::string> judge_tensor(const File& file, const Tensor& tensor, const Bytes& bytes) {
  if (file.find_tensor(tensor.name) != &tensor) return "the tensor is not found by its name";
  if (tensor.dims.empty() || tensor.dims.size() > 4) return "the tensor has a wrong number of dimensions";
  if (tensor.elements() == 0 || tensor.bytes == 0) return "the tensor is empty";
  if (tensor.offset > bytes.size() || tensor.bytes > bytes.size() - tensor.offset) {
    return "the tensor goes beyond the file";
  }
  Bytes data(tensor.bytes);
  if (!file.read(tensor, 0, data)) return "the tensor cannot be read";
  if (!std::equal(data.begin(), data.end(), bytes.begin() + static_cast<std::ptrdiff_t>(tensor.offset))) {
    return "the tensor reads as other bytes";
  }
  return std::nullopt;
}

std::optional<std::string> judge_overlaps(const File& file) {
  std::vector<const Tensor*> order;
  for (const Tensor& tensor : file.tensors()) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const Tensor* tensor) { return tensor->offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) return "tensors overlap";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> judge_accepted(const File& file, const Bytes& bytes) {
  const Bytes image = image_of(file).bytes();
  if (image.size() > bytes.size() || !std::equal(image.begin(), image.end(), bytes.begin())) {
    return "what it tells does not give back its bytes";
  }
  for (const KeyValue& entry : file.metadata()) {
    if (file.find(entry.key) != &entry.value) return "a key is not found by its name";
  }
  for (const Tensor& tensor : file.tensors()) {
    if (tensor.offset < image.size()) return "a tensor lies in the header";
    if (auto complaint = judge_tensor(file, tensor, bytes)) return complaint;
  }
  return judge_overlaps(file);
}

std::optional<std::string> judge(const Bytes& bytes, Tally& tally) {
  auto files = in_memory(bytes);
  const kvasir::test::AllocationMeter meter;
  const Result<File> file = File::parse(std::move(files));
  const std::int64_t beyond = meter.peak() - static_cast<std::int64_t>(bytes.size());
  tally.most_beyond_size = std::max(tally.most_beyond_size, beyond);
  if (beyond > kMemoryBeyondFile) return fmt::format("it takes {} bytes more than the file has", beyond);
  (file ? tally.accepted : tally.refused) += 1;
  return file ? judge_accepted(*file, bytes) : judge_refusal(file.error());
}

Examine judging(Tally& tally) {
  return [&tally](const Bytes& bytes, const std::string& what) {
    auto complaint = judge(bytes, tally);
    if (complaint && tally.complaints.size() < kComplaintsKept) {
      tally.complaints.push_back(what + ": " + *complaint);
    }
  };
}

}  // namespace kvasir::gguf::test
