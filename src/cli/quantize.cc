#include "cli/quantize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/try.h"
#include "cli/output.h"
#include "cli/streams.h"
#include "cli/tensor_stream.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "parallel/thread_pool.h"
#include "quant/block_type.h"

namespace kvasir::cli {
namespace {

using gguf::Value;
using quant::BlockType;
using quant::BlockTypeInfo;

// Of the layout of the block types; 2 since 2023 (llama.cpp, GGML_QNT_VERSION).
constexpr std::uint32_t kQuantizationVersion = 2;

struct PlannedTensor {
  const gguf::Tensor* tensor;
  TypeChoice choice;

  [[nodiscard]] BlockType type() const { return choice.reason == Reason::kKept ? tensor->type : choice.type; }
  [[nodiscard]] bool converts() const { return type() != tensor->type; }
};

Result<gguf::File> open_input(base::FileSystem& files, const std::string& path) {
  if (path != "-") return gguf::File::open(files, path);
  KVASIR_ASSIGN(std::vector<std::byte> bytes, read_input(base::available_memory() / 2));
  std::vector<std::unique_ptr<base::ReadFile>> shards;
  shards.push_back(base::memory_file(std::move(bytes)));
  return gguf::File::parse(std::move(shards));
}

TypeChooser::Model model_of(const gguf::File& file) {
  TypeChooser::Model model;
  if (const auto architecture = file.get_string("general.architecture")) model.architecture = *architecture;
  model.layers = file.get_uint(model.architecture + ".block_count").value_or(0);
  model.experts = file.get_uint(model.architecture + ".expert_count").value_or(0);
  return model;
}

Result<std::vector<PlannedTensor>> plan_tensors(const gguf::File& file, const WeightTarget& target) {
  std::vector<TensorOutline> outlines;
  for (const gguf::Tensor& tensor : file.tensors()) outlines.push_back({tensor.name, tensor.dims});
  const TypeChooser chooser(target, model_of(file), outlines);
  std::vector<PlannedTensor> plan;
  for (std::size_t i = 0; i < outlines.size(); ++i) {
    plan.push_back({&file.tensors()[i], chooser.choose(outlines[i])});
    const BlockTypeInfo& from = quant::block_type_info(plan.back().tensor->type);
    if (plan.back().converts() && !from.unpacks) {
      return fail(Outcome::kUnsupported,
                  fmt::format("tensor '{}' is {}, which cannot be turned into {} by this version",
                              outlines[i].name, from.name, quant::block_type_info(plan.back().type()).name));
    }
  }
  return plan;
}

void note_plan(const std::vector<PlannedTensor>& plan, const WorkHooks& hooks) {
  RowLengthNotes row_lengths;
  std::set<std::string_view> quantized;
  for (const PlannedTensor& planned : plan) {
    row_lengths.add(planned.tensor->name, planned.tensor->row_length(), planned.choice);
    const BlockTypeInfo& from = quant::block_type_info(planned.tensor->type);
    if (planned.converts() && from.values > 1) quantized.insert(from.name);
  }
  row_lengths.tell(hooks);
  // What is written as floats has all that the input's blocks say.
  const bool adds_errors = std::ranges::any_of(plan, [](const PlannedTensor& planned) {
    return planned.converts() && quant::block_type_info(planned.type()).values > 1;
  });
  if (quantized.empty() || !adds_errors) return;
  hooks.note(fmt::format(
      "the input's weights are {} already; errors add up, so F16 or F32 weights give a better result",
      fmt::join(quantized, ", ")));
}

bool is_copied_key(std::string_view key) {
  constexpr std::array<std::string_view, 5> kReplaced = {"general.file_type", "general.quantization_version",
                                                         "split.no", "split.count", "split.tensors.count"};
  return std::ranges::find(kReplaced, key) == kReplaced.end();
}

Status describe(const gguf::File& file, const std::vector<PlannedTensor>& plan, const WeightTarget& target,
                gguf::Writer& writer) {
  for (const gguf::KeyValue& entry : file.metadata()) {
    if (is_copied_key(entry.key)) KVASIR_TRY(writer.add(entry.key, entry.value));
  }
  KVASIR_TRY(writer.add("general.file_type", Value::scalar<std::uint32_t>(target.file_type)));
  KVASIR_TRY(writer.add("general.quantization_version", Value::scalar<std::uint32_t>(kQuantizationVersion)));
  for (const PlannedTensor& planned : plan) {
    KVASIR_TRY(writer.add_tensor(planned.tensor->name, planned.type(), planned.tensor->dims));
  }
  return {};
}

// Reads blocks of one type and makes those of another from them, a piece at a time.
class Converter {
 public:
  Converter(const gguf::File& file, const gguf::Tensor& tensor, BlockType to)
      : file_(file),
        tensor_(tensor),
        from_(quant::block_type_info(tensor.type)),
        to_(quant::block_type_info(to)) {}

  [[nodiscard]] Status operator()(std::uint64_t first_block, std::span<std::byte> blocks) {
    if (from_.type == to_.type) return file_.read(tensor_, first_block * to_.bytes, blocks);
    // Rows divide into blocks of both types, and block lengths are powers of two: pieces begin at blocks of
    // both.
    const std::uint64_t first = first_block * to_.values;
    std::vector<float> values(blocks.size() / to_.bytes * to_.values);
    std::vector<std::byte> source(values.size() / from_.values * from_.bytes);
    KVASIR_TRY(file_.read(tensor_, first / from_.values * from_.bytes, source));
    KVASIR_TRY(quant::unpack(from_.type, source, values));
    const auto strange = std::ranges::count_if(values, [](float value) { return !std::isfinite(value); });
    non_finite_ += static_cast<std::uint64_t>(strange);
    return quant::pack(to_.type, values, blocks);
  }

  // Numbers that were infinite or not numbers.
  [[nodiscard]] std::uint64_t non_finite() const { return non_finite_; }

 private:
  const gguf::File& file_;
  const gguf::Tensor& tensor_;
  const BlockTypeInfo& from_;
  const BlockTypeInfo& to_;
  std::atomic<std::uint64_t> non_finite_ = 0;
};

Result<QuantizeReport> stream(const gguf::File& file, const std::vector<PlannedTensor>& plan,
                              gguf::Writer& writer, parallel::ThreadPool& pool, const WorkHooks& hooks) {
  QuantizeReport report{.tensors = plan.size(), .bytes_read = file.size_bytes()};
  TensorStream tensors(writer, pool, hooks);
  for (const PlannedTensor& planned : plan) {
    const gguf::Tensor& tensor = *planned.tensor;
    Converter converter(file, tensor, planned.type());
    KVASIR_TRY(tensors.write(tensor.name, quant::block_type_info(planned.type()), tensor.elements(),
                             std::ref(converter)));
    report.converted += planned.converts() ? 1 : 0;
    if (converter.non_finite() > 0) {
      hooks.note(
          fmt::format("tensor '{}': {} values were not finite; NaN became 0, infinity the largest number",
                      tensor.name, converter.non_finite()));
    }
  }
  return report;
}

}  // namespace

Result<QuantizeReport> quantize(base::FileSystem& files, const QuantizeOptions& options,
                                const WorkHooks& hooks) {
  if (!quant::block_type_info(options.target.base).packs) {
    return fail(Outcome::kUnsupported,
                fmt::format("weights of type {} can be read, but not made by this version; use one "
                            "of: {}",
                            options.target.name, weight_target_names(true)));
  }
  KVASIR_ASSIGN(const gguf::File file, open_input(files, options.input));
  KVASIR_ASSIGN(const std::vector<PlannedTensor> plan, plan_tensors(file, options.target));
  KVASIR_ASSIGN(const std::unique_ptr<parallel::ThreadPool> pool,
                parallel::ThreadPool::create(options.threads));
  note_plan(plan, hooks);
  gguf::Writer writer;
  KVASIR_TRY(describe(file, plan, options.target, writer));
  hooks.begin(writer.file_bytes());
  KVASIR_ASSIGN(std::unique_ptr<base::ReplacingFile> output, open_output(files, options.output));
  KVASIR_TRY(writer.begin(std::move(output)));
  KVASIR_ASSIGN(QuantizeReport report, stream(file, plan, writer, *pool, hooks));
  if (hooks.stop()) return fail(Outcome::kCancelled, "interrupted");
  KVASIR_TRY(writer.commit());
  report.bytes_written = writer.file_bytes();
  hooks.progress(report.bytes_written, "done");
  return report;
}

}  // namespace kvasir::cli
