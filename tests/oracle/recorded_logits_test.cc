// Logits against those that another implementation recorded: some models of the repository, and every
// reference model of the families that run where the reference data is present.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/arch/arch.h"
#include "scalar_forward.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::oracle::test {
namespace {

using kvasir::test::data_path;
using kvasir::test::load_file;
using kvasir::test::LoadedModel;
using kvasir::test::normalized_error;
using kvasir::test::read_floats;
using kvasir::test::read_tokens;
using kvasir::test::Taken;

// F32 weights and exact activations; the recorded logits are within 4e-12 of exact arithmetic, rounding to
// float in another order costs about the same.
constexpr double kBound = 1e-9;
// Of models whose weights take their input in steps of a 127th of a block's greatest magnitude.
constexpr double kBoundOfSteps = 7.5e-4;
constexpr double kBoundOfGelu = 1e-6;

// The distance from the nearest of the logits that were recorded in a folder.
double distance_from_recorded(const std::string& folder, const std::vector<float>& logits) {
  double distance = normalized_error(logits, read_floats(folder + "/logits.f32"));
  // The same weights, but activations that are not rounded to the weights' type.
  const std::string dequantized = folder + "/logits-dequant.f32";
  if (std::filesystem::exists(dequantized)) {
    distance = std::min(distance, normalized_error(logits, read_floats(dequantized)));
  }
  return distance;
}

// What the recorded logits themselves are from exact arithmetic: those with a GELU took it from a table of
// half floats.
double bound_of(const model::Network& network) {
  if (network.takes_bytes) return kBoundOfSteps;
  for (const model::Layer& layer : network.layers) {
    for (const model::Part& part : layer.parts) {
      const auto* const body = std::get_if<model::FeedForward>(&part.body);
      if (body != nullptr && body->activation == simd::Activation::kGelu) return kBoundOfGelu;
    }
  }
  return kBound;
}

class CopiedModel : public testing::TestWithParam<const char*> {
 protected:
  std::string folder_ = data_path(std::string("models/") + GetParam());
  LoadedModel model_ = load_file(folder_ + "/model.gguf");
  std::vector<Token> tokens_ = read_tokens(folder_ + "/tokens.txt");
};

TEST_P(CopiedModel, GivesTheRecordedLogits) {
  const Taken taken = take(model_, tokens_, {});
  EXPECT_LE(distance_from_recorded(folder_, taken.logits), bound_of(model_.model->network()));
  const std::span<const float> last_row = std::span(taken.logits).last(model_.vocabulary());
  EXPECT_TRUE(kvasir::test::same_bits(taken.last, last_row));
}

TEST_P(CopiedModel, GivesTheScalarTwinTheRecordedLogits) {
  const auto logits = scalar_forward(model_.model->network(), *model_.file, tokens_);
  EXPECT_LE(distance_from_recorded(folder_, logits), bound_of(model_.model->network()));
  const Taken taken = take(model_, tokens_, {});
  EXPECT_LE(normalized_error(taken.logits, logits), kTwinBound);
}

// Half a float's digits in the cache move every row a little and no row far: the errors that a half cache is
// known to cost end at 2e-6.
TEST_P(CopiedModel, StaysNearTheRecordedLogitsWithAHalfCache) {
  const Taken taken = take(model_, tokens_, {.types = {kv::CacheElement::kF16, kv::CacheElement::kF16}});
  const double distance = distance_from_recorded(folder_, taken.logits);
  EXPECT_LE(distance, 2e-6 + bound_of(model_.model->network()));
  EXPECT_GT(distance, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, CopiedModel,
                         testing::Values("llama", "qwen3", "llama-moe", "gemma2", "gemma3", "gpt-oss",
                                         "deepseek2-groups", "deepseek2-v2", "phi2", "falcon-40b",
                                         "stablelm-12b", "cohere2", "granitemoe-shared", "olmo2", "qwen2moe"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

// The reference models whose architecture runs.
std::vector<std::string> folders_that_run(const std::string& models) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    const auto file = gguf::File::open(base::system_files(), entry.path() / "model.gguf");
    if (file && model::find_architecture(file->get_string("general.architecture").value_or("")))
      folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

TEST(ReferenceModels, GiveTheRecordedLogitsAndThoseOfTheScalarTwin) {
  KVASIR_NEEDS_REFERENCE(models, "models");
  const std::vector<std::string> folders = folders_that_run(models);
  ASSERT_GE(folders.size(), 45U);
  for (const std::string& folder : folders) {
    const LoadedModel model = load_file(folder + "/model.gguf");
    const model::Network& network = model.model->network();
    if (network.encoder) continue;  // tests/model/encoder_test.cc has those that read a text both ways
    const std::vector<Token> tokens = read_tokens(folder + "/tokens.txt");
    const Taken taken = take(model, tokens, {.threads = 2});
    EXPECT_LE(distance_from_recorded(folder, taken.logits), bound_of(network)) << folder;
    if (!knows_every_part(network)) continue;
    const auto twin = scalar_forward(network, *model.file, tokens);
    const double distance = normalized_error(taken.logits, twin);
    const bool steps = network.takes_bytes;
    EXPECT_LE(distance, steps ? kTwinBoundOfSteps : kTwinBound) << folder;
    RecordProperty(std::filesystem::path(folder).filename().string(), fmt::format("{:.2e}", distance));
  }
}

}  // namespace
}  // namespace kvasir::oracle::test
