#include "cli/synth.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/output.h"
#include "cli/synth_vocabulary.h"
#include "cli/tensor_stream.h"
#include "gguf/writer.h"
#include "parallel/thread_pool.h"
#include "quant/draw.h"

namespace kvasir::cli {
namespace {

using gguf::Value;

constexpr std::uint32_t kQuantizationVersion =
    2;  // of the layout of the block types (llama.cpp, GGML_QNT_VERSION)

struct PlannedTensor {
  SynthTensor tensor;
  TypeChoice choice;

  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t product = 1;
    for (const std::uint64_t dim : tensor.dims) product *= dim;
    return product;
  }
};

std::vector<PlannedTensor> plan_tensors(const SynthOptions& options, const Sizes& sizes) {
  std::vector<SynthTensor> tensors = tensors_of(*options.shape, sizes);
  std::vector<TensorOutline> outlines;
  outlines.reserve(tensors.size());
  for (const SynthTensor& tensor : tensors) outlines.push_back({tensor.name, tensor.dims});
  const TypeChooser::Model model{std::string(options.shape->architecture), sizes.layers, 0};
  const TypeChooser chooser(options.target, model, outlines);
  std::vector<TypeChoice> choices;
  choices.reserve(outlines.size());
  for (const TensorOutline& outline : outlines) choices.push_back(chooser.choose(outline));
  std::vector<PlannedTensor> plan;
  plan.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) plan.push_back({std::move(tensors[i]), choices[i]});
  return plan;
}

quant::Spread spread_of(const SynthTensor& tensor) {
  switch (tensor.fill) {
    case Fill::kMatrix:
      return {0.0F, 1.0F / std::sqrt(static_cast<float>(tensor.dims[0]))};
    case Fill::kNorm:
      return {1.0F, 0.1F};
    case Fill::kBias:
      return {0.0F, 0.1F};
    case Fill::kDecay:
      return {-0.25F, 0.02F};
  }
  return {};
}

// A stream of its own for each tensor, by its name: tensors keep their numbers when others come or go.
std::uint64_t key_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t key = quant::mix(seed, name.size());
  for (const char letter : name) key = quant::mix(key, static_cast<unsigned char>(letter));
  return key;
}

Result<SynthVocabulary> vocabulary_of(base::FileSystem& files, const SynthOptions& options) {
  if (options.vocabulary.empty()) return make_vocabulary(options.shape->sizes.vocabulary);
  return copy_vocabulary(files, options.vocabulary);
}

Status describe(const SynthOptions& options, const Sizes& sizes, const std::vector<PlannedTensor>& plan,
                SynthVocabulary vocabulary, gguf::Writer& writer) {
  const Shape& shape = *options.shape;
  KVASIR_TRY(writer.add("general.architecture", Value::string(shape.architecture)));
  KVASIR_TRY(writer.add("general.type", Value::string("model")));
  KVASIR_TRY(writer.add("general.name", Value::string(fmt::format("synthetic {}", shape.name))));
  KVASIR_TRY(
      writer.add("general.description", Value::string(fmt::format("random weights, seed {}", options.seed))));
  KVASIR_TRY(writer.add("general.file_type", Value::scalar<std::uint32_t>(options.target.file_type)));
  KVASIR_TRY(writer.add("general.quantization_version", Value::scalar<std::uint32_t>(kQuantizationVersion)));
  for (gguf::KeyValue& entry : hyperparameters_of(shape, sizes)) {
    KVASIR_TRY(writer.add(std::move(entry.key), std::move(entry.value)));
  }
  for (gguf::KeyValue& entry : vocabulary.keys)
    KVASIR_TRY(writer.add(std::move(entry.key), std::move(entry.value)));
  for (const PlannedTensor& planned : plan) {
    KVASIR_TRY(writer.add_tensor(planned.tensor.name, planned.choice.type, planned.tensor.dims));
  }
  return {};
}

Result<SynthReport> draw_tensors(const SynthOptions& options, const std::vector<PlannedTensor>& plan,
                                 TensorStream& stream) {
  SynthReport report{.tensors = plan.size()};
  for (const PlannedTensor& planned : plan) {
    const quant::Spread spread = spread_of(planned.tensor);
    KVASIR_ASSIGN(
        const quant::BlockDrawer drawer,
        quant::BlockDrawer::create(planned.choice.type, spread, key_of(options.seed, planned.tensor.name)));
    const auto draw = [&](std::uint64_t first_block, std::span<std::byte> blocks) -> Status {
      drawer.draw(first_block, blocks);
      return {};
    };
    KVASIR_TRY(stream.write(planned.tensor.name, quant::block_type_info(planned.choice.type),
                            planned.elements(), draw));
    report.parameters += planned.elements();
  }
  return report;
}

}  // namespace

Result<SynthReport> synthesize(base::FileSystem& files, const SynthOptions& options, const WorkHooks& hooks) {
  KVASIR_ASSIGN(SynthVocabulary vocabulary, vocabulary_of(files, options));
  Sizes sizes = options.shape->sizes;
  sizes.vocabulary = vocabulary.size;
  const std::vector<PlannedTensor> plan = plan_tensors(options, sizes);
  KVASIR_ASSIGN(const std::unique_ptr<parallel::ThreadPool> pool,
                parallel::ThreadPool::create(options.threads));
  RowLengthNotes notes;
  for (const PlannedTensor& planned : plan)
    notes.add(planned.tensor.name, planned.tensor.dims[0], planned.choice);
  notes.tell(hooks);
  gguf::Writer writer;
  KVASIR_TRY(describe(options, sizes, plan, std::move(vocabulary), writer));
  hooks.begin(writer.file_bytes());
  KVASIR_ASSIGN(std::unique_ptr<base::ReplacingFile> output, open_output(files, options.output));
  KVASIR_TRY(writer.begin(std::move(output)));
  TensorStream stream(writer, *pool, hooks);
  KVASIR_ASSIGN(SynthReport report, draw_tensors(options, plan, stream));
  if (hooks.stop()) return fail(Outcome::kCancelled, "interrupted");
  KVASIR_TRY(writer.commit());
  report.bytes_written = writer.file_bytes();
  hooks.progress(report.bytes_written, "done");
  return report;
}

}  // namespace kvasir::cli
