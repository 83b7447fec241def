#include "model/loader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "parallel/first_error.h"
#include "quant/block_type.h"

namespace kvasir::model {
namespace {

// Bytes that are read between two calls of the progress function.
constexpr std::uint64_t kReportBytes = std::uint64_t{32} << 20;

// Bytes of panels that a thread reads at once: few calls, and all of it stays in its cache.
constexpr std::uint64_t kReadBytes = std::uint64_t{128} << 10;

std::string shape_text(const std::vector<std::uint64_t>& dims) {
  std::string text;
  for (const std::uint64_t dim : dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

}  // namespace

Loader::Loader(const gguf::File& file, parallel::ThreadPool& pool, LoadProgress progress)
    : file_(&file), pool_(&pool), progress_(std::move(progress)) {
  for (const gguf::Tensor& tensor : file.tensors()) total_ += tensor.bytes;
}

Result<const gguf::Tensor*> Loader::find(const std::string& name, std::vector<std::uint64_t> dims) const {
  const gguf::Tensor* tensor = file_->find_tensor(name);
  if (tensor == nullptr) {
    return fail(Outcome::kCorrupt, "the tensor '" + name + "' (" + shape_text(dims) + ") is missing");
  }
  // Trailing dimensions of 1 say nothing.
  std::vector<std::uint64_t> found = tensor->dims;
  while (found.size() > 1 && found.back() == 1) found.pop_back();
  while (dims.size() > 1 && dims.back() == 1) dims.pop_back();
  if (found != dims) {
    return fail(Outcome::kCorrupt,
                "the tensor '" + name + "' is " + shape_text(tensor->dims) + ", not " + shape_text(dims));
  }
  return tensor;
}

Status Loader::fill_panels(const gguf::Tensor& tensor, const Rows& rows, simd::Panels& panels,
                           std::size_t begin, std::size_t end) {
  const std::size_t row_bytes = panels.raw_row_bytes();
  const std::size_t row = begin * simd::kPanelRows;
  const std::size_t count = std::min(end * simd::kPanelRows, panels.rows()) - row;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(count * row_bytes);
  const std::span raw(memory.get(), count * row_bytes);
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t inside = (row + done) % rows.of_each;
    const std::uint64_t from = rows.first + (row + done) / rows.of_each * rows.every + inside;
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(count - done, rows.of_each - inside));
    KVASIR_TRY(file_->read(tensor, from * row_bytes, raw.subspan(done * row_bytes, some * row_bytes)));
    done += some;
  }
  std::span<const std::byte> left = raw;
  for (std::size_t panel = begin; panel < end; ++panel) {
    const std::size_t bytes = std::min(left.size(), simd::kPanelRows * row_bytes);
    KVASIR_TRY(panels.fill(panel, left.first(bytes)));
    left = left.subspan(bytes);
  }
  return {};
}

Result<simd::Panels> Loader::panels(const gguf::Tensor& tensor, const Rows& rows) {
  KVASIR_ASSIGN(simd::Panels panels,
                simd::Panels::allocate(tensor.type, rows.count, tensor.row_length(), slab_));
  takes_bytes_ = takes_bytes_ || panels.takes_bytes();
  const std::size_t count = panels.panel_count();
  const std::uint64_t panel_bytes = panels.raw_row_bytes() * simd::kPanelRows;
  const std::size_t at_once = std::max<std::size_t>(1, kReportBytes / panel_bytes);
  const std::size_t in_one_read = std::max<std::size_t>(1, kReadBytes / panel_bytes);
  for (std::size_t begin = 0; begin < count; begin += at_once) {
    const std::size_t some = std::min(at_once, count - begin);
    parallel::FirstError first;
    pool_->run(some, in_one_read, [&](std::size_t from, std::size_t to) {
      const Status filled =
          base::within_memory([&] { return fill_panels(tensor, rows, panels, begin + from, begin + to); });
      if (!filled) first.keep(filled.error());
    });
    KVASIR_TRY(std::move(first).status());
    const std::uint64_t done_rows = std::min<std::uint64_t>(rows.count, (begin + some) * simd::kPanelRows);
    KVASIR_TRY(report((done_rows - begin * simd::kPanelRows) * panels.raw_row_bytes()));
  }
  return panels;
}

Status Loader::report(std::uint64_t bytes) {
  done_ += bytes;
  if (progress_ && !progress_(done_, total_)) return fail(Outcome::kCancelled, "loading was stopped");
  return {};
}

Result<Linear> Loader::linear(const std::string& name, std::uint64_t in, std::uint64_t out) {
  return linear_rows(name, in, out, 0, out);
}

Result<Linear> Loader::linear_rows(const std::string& name, std::uint64_t in, std::uint64_t rows,
                                   std::uint64_t first, std::uint64_t out) {
  KVASIR_ASSIGN(const gguf::Tensor* const tensor, find(name + ".weight", {in, rows}));
  Linear linear;
  auto weight = panels(*tensor, {first, out, out, 0});
  if (!weight) return fail(weight.error().within(tensor->name));
  linear.weight = *std::move(weight);
  if (has(name + ".bias")) {
    KVASIR_ASSIGN(const gguf::Tensor* const biases, find(name + ".bias", {rows}));
    KVASIR_ASSIGN(const std::vector<float> bias, floats(*biases));
    linear.bias.assign(bias.begin() + static_cast<std::ptrdiff_t>(first),
                       bias.begin() + static_cast<std::ptrdiff_t>(first + out));
    KVASIR_TRY(report(biases->bytes / rows * out));
  }
  return linear;
}

Result<Linear> Loader::linear_of_heads(const std::string& name, std::uint64_t in, const HeadRows& rows,
                                       std::uint64_t first, std::uint64_t out) {
  KVASIR_ASSIGN(const gguf::Tensor* const tensor, find(name + ".weight", {in, rows.heads * rows.of_head}));
  Linear linear;
  auto weight = panels(*tensor, {first, rows.heads * out, out, rows.of_head});
  if (!weight) return fail(weight.error().within(tensor->name));
  linear.weight = *std::move(weight);
  if (has(name + ".bias")) {
    KVASIR_ASSIGN(const std::vector<float> all, vector(name + ".bias", rows.heads * rows.of_head));
    for (std::uint64_t head = 0; head < rows.heads; ++head) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(head * rows.of_head + first);
      linear.bias.insert(linear.bias.end(), from, from + static_cast<std::ptrdiff_t>(out));
    }
  }
  return linear;
}

Result<Linear> Loader::linear_of(const std::string& name, std::uint64_t in, std::uint64_t out,
                                 std::uint64_t count, std::uint64_t index) {
  KVASIR_ASSIGN(const gguf::Tensor* const tensor, find(name + ".weight", {in, out, count}));
  Linear linear;
  auto weight = panels(*tensor, {index * out, out, out, 0});
  if (!weight) return fail(weight.error().within(tensor->name));
  linear.weight = *std::move(weight);
  if (has(name + ".bias")) {
    KVASIR_ASSIGN(const gguf::Tensor* const biases, find(name + ".bias", {out, count}));
    KVASIR_ASSIGN(const std::vector<float> all, floats(*biases));
    linear.bias.assign(all.begin() + static_cast<std::ptrdiff_t>(index * out),
                       all.begin() + static_cast<std::ptrdiff_t>((index + 1) * out));
    KVASIR_TRY(report(biases->bytes / count));
  }
  return linear;
}

Result<std::vector<float>> Loader::vector(const std::string& name, std::uint64_t size) {
  KVASIR_ASSIGN(const gguf::Tensor* const tensor, find(name, {size}));
  KVASIR_ASSIGN(std::vector<float> values, floats(*tensor));
  KVASIR_TRY(report(tensor->bytes));
  return values;
}

Result<std::vector<float>> Loader::floats(const gguf::Tensor& tensor) const {
  std::vector<std::byte> raw(tensor.bytes);
  std::vector<float> values(tensor.elements());
  KVASIR_TRY(file_->read(tensor, 0, raw));
  if (const Status unpacked = quant::unpack(tensor.type, raw, values); !unpacked) {
    return fail(unpacked.error().within(tensor.name));
  }
  return values;
}

Result<std::vector<float>> Loader::numbers(const std::string& name, std::vector<std::uint64_t> dims) {
  const gguf::Tensor* const tensor = file_->find_tensor(name);
  std::vector<std::uint64_t> wanted = dims;
  std::vector<std::uint64_t> found = tensor != nullptr ? tensor->dims : wanted;
  std::erase(wanted, 1);
  std::erase(found, 1);
  // What is missing or of another shape is told as everywhere.
  if (tensor == nullptr || found != wanted) KVASIR_TRY(find(name, std::move(dims)));
  KVASIR_ASSIGN(std::vector<float> values, floats(*tensor));
  KVASIR_TRY(report(tensor->bytes));
  return values;
}

Result<std::vector<float>> Loader::matrix(const std::string& name, std::uint64_t in, std::uint64_t out) {
  KVASIR_ASSIGN(const gguf::Tensor* const tensor, find(name, {in, out}));
  KVASIR_ASSIGN(std::vector<float> values, floats(*tensor));
  KVASIR_TRY(report(tensor->bytes));
  return values;
}

Result<Norm> Loader::norm(const std::string& name, std::uint64_t size, float epsilon) {
  KVASIR_ASSIGN(std::vector<float> weight, vector(name + ".weight", size));
  return Norm{.weight = std::move(weight), .epsilon = epsilon, .width = size};
}

Result<Norm> Loader::layer_norm(const std::string& name, std::uint64_t size, float epsilon) {
  KVASIR_ASSIGN(Norm norm, this->norm(name, size, epsilon));
  norm.kind = Norm::Kind::kMeanAndVariance;
  if (has(name + ".bias")) {
    KVASIR_ASSIGN(norm.bias, vector(name + ".bias", size));
  }
  return norm;
}

}  // namespace kvasir::model
