// Files as converters and splitters leave them: models in several shards, in each layout that is met.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::model {
namespace {

using gguf::Value;
using kvasir::test::GgufDraft;
using kvasir::test::LoadedModel;

// How a splitter deals tensors out.
struct Layout {
  const char* name;
  std::size_t shards;
  bool first_is_empty;      // the first shard has the keys alone
  bool keys_in_each;        // every shard repeats the keys of the model
  bool one_tensor_a_shard;  // but for the last, which has the rest
};

constexpr Layout kLayouts[] = {{"tensors from the first shard on", 3, false, false, false},
                               {"keys in a shard of their own", 4, true, false, false},
                               {"keys repeated", 3, false, true, false},
                               {"a tensor a shard", 5, true, false, true}};

std::string file_of(const std::string& folder) {
  return kvasir::test::data_path("models/" + folder + "/model.gguf");
}

// The shard that a tensor goes to.
std::size_t shard_of(const Layout& layout, std::size_t tensor, std::size_t tensors) {
  const std::size_t first = layout.first_is_empty ? 1 : 0;
  const std::size_t places = layout.shards - first;
  if (layout.one_tensor_a_shard) return first + std::min(tensor, places - 1);
  return first + tensor * places / tensors;
}

// Writes the shards of a model and answers the name of one of them.
std::string split(const std::string& path, const Layout& layout) {
  const GgufDraft whole = GgufDraft::copy_of(path);
  const gguf::File file = whole.open();
  const std::vector<std::string> tensors = whole.tensor_names();
  const std::string stem = kvasir::test::scratch_directory() + "/model";
  std::string name;
  for (std::size_t shard = 0; shard < layout.shards; ++shard) {
    GgufDraft draft = whole;
    for (const gguf::KeyValue& entry : file.metadata()) {
      if (shard > 0 && !layout.keys_in_each) draft.erase(entry.key);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (shard_of(layout, i, tensors.size()) != shard) draft.erase_tensor(tensors[i]);
    }
    draft.set("split.no", Value::scalar(static_cast<std::uint16_t>(shard)));
    draft.set("split.count", Value::scalar(static_cast<std::uint16_t>(layout.shards)));
    draft.set("split.tensors.count", Value::scalar(static_cast<std::int32_t>(tensors.size())));
    name = fmt::format("{}-{:05}-of-{:05}.gguf", stem, shard + 1, layout.shards);
    draft.write(name);
  }
  return name;
}

TEST(SplitModels, HaveTheBitsOfTheWholeInEveryLayout) {
  for (const std::string folder : {"llama-moe", "gemma3", "jamba", "qwen2moe"}) {
    const LoadedModel whole = kvasir::test::load_file(file_of(folder));
    const auto tokens = kvasir::test::random_tokens(whole.vocabulary(), 40, 1);
    const std::vector<float> expected = kvasir::test::take(whole, tokens, {}).logits;
    for (const Layout& layout : kLayouts) {
      const LoadedModel parts = kvasir::test::load_file(split(file_of(folder), layout));
      EXPECT_EQ(parts.file->shard_count(), layout.shards);
      EXPECT_TRUE(kvasir::test::same_bits(kvasir::test::take(parts, tokens, {}).logits, expected))
          << folder << ", " << layout.name;
      // One model, whatever it lies in: archives of one load into the other.
      EXPECT_EQ(parts.model->fingerprint(), whole.model->fingerprint()) << folder << ", " << layout.name;
    }
  }
}

}  // namespace
}  // namespace kvasir::model
