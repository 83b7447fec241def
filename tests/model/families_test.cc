// The files of every family that the repository has a model of, as they are met: with keys missing or given
// otherwise, and with tensors missing.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/arch/arch.h"
#include "model/arch/decoder.h"
#include "model/model.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::model {
namespace {

using gguf::Value;
using kvasir::test::data_path;
using kvasir::test::GgufDraft;
using kvasir::test::load;
using kvasir::test::read_tokens;
using kvasir::test::take;
using kvasir::test::try_load;

const std::vector<std::string> kFolders = {
    "gemma2",  "gemma3",       "gpt-oss", "deepseek2-groups",  "deepseek2-v2", "phi2", "falcon-40b",
    "cohere2", "stablelm-12b", "olmo2",   "granitemoe-shared", "qwen2moe",     "qwen3"};

std::string file_of(const std::string& folder) {
  return data_path("models/" + folder + "/model.gguf");
}

std::vector<float> logits_of(const GgufDraft& draft) {
  return take(load(draft), read_tokens(data_path("models/qwen3/tokens.txt")), {}).logits;
}

// The same model with its keys said otherwise.
void expect_same(const std::string& folder, const GgufDraft& changed) {
  ASSERT_TRUE(try_load(changed)) << folder << ": " << try_load(changed).error().message();
  EXPECT_TRUE(kvasir::test::same_bits(logits_of(GgufDraft::copy_of(file_of(folder))), logits_of(changed)))
      << folder;
}

TEST(Families, AreListedByTheirNamesInOrder) {
  const auto all = architectures();
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &Architecture::name));
  for (const Architecture& architecture : all) EXPECT_TRUE(find_architecture(architecture.name));
}

// Whoever writes an architecture file and forgets its rotation hears it, before a table is looked for.
TEST(Families, HaveNoAttentionBeforeItsRotaryTable) {
  const gguf::File file = kvasir::test::tiny_model({}).open();
  const auto pool = *parallel::ThreadPool::create(1);
  Loader loader(file, *pool, {});
  const auto sizes = Hyperparameters::read(file, LayersHave::kBoth);
  ASSERT_TRUE(sizes);
  Decoder decoder(loader, *sizes);
  const auto early = decoder.attention(0);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code(), Outcome::kInternal);
  EXPECT_NE(early.error().message().find("add_no_rotary()"), std::string::npos) << early.error().message();
  const std::uint32_t none = decoder.add_no_rotary();
  EXPECT_TRUE(decoder.attention(0, {.rotary = none}));
  EXPECT_FALSE(decoder.attention(0, {.rotary = none + 1}));
}

TEST(Families, RefuseAFileThatLacksATensorByItsName) {
  // What a file may lack: the embedding serves as output, and a matrix may have no bias.
  const auto optional = [](const std::string& name) {
    return name == "output.weight" || name.ends_with(".bias");
  };
  // Without these another form of the family is meant, which then lacks something else or gives other logits.
  constexpr std::array<std::string_view, 8> kTellForms = {
      "q_norm.weight",   "attn_qkv.weight", "attn_norm_2.weight", "gate_shexp.weight",
      "attn_q_a.weight", "ffn_norm.weight", "rope_freqs.weight",  "exp_probs_b.bias"};
  for (const std::string& folder : kFolders) {
    const GgufDraft sound = GgufDraft::copy_of(file_of(folder));
    const std::vector<float> logits = logits_of(sound);
    for (const std::string& name : sound.tensor_names()) {
      GgufDraft draft = sound;
      draft.erase_tensor(name);
      const auto model = try_load(draft);
      const bool tells = std::ranges::any_of(kTellForms, [&](auto end) { return name.ends_with(end); });
      if (optional(name)) {
        EXPECT_TRUE(model) << folder << " without " << name;
      } else if (!tells) {
        ASSERT_FALSE(model) << folder << " without " << name;
      }
      if (model && tells) {
        EXPECT_FALSE(kvasir::test::same_bits(logits_of(draft), logits))
            << folder << ": nothing reads " << name;
      }
      if (model || tells) continue;
      EXPECT_EQ(model.error().code(), Outcome::kCorrupt);
      EXPECT_NE(model.error().message().find(name), std::string::npos) << model.error().message();
    }
  }
}

TEST(Families, TakeCountsAsArraysWithAnEntryForEachLayer) {
  for (const std::string& folder : kFolders) {
    const auto model = kvasir::test::load_file(file_of(folder)).model;
    const Hyperparameters& sizes = model->sizes();
    GgufDraft draft = GgufDraft::copy_of(file_of(folder));
    const auto as_array = [&](const char* key, const std::vector<std::uint32_t>& counts) {
      draft.set(sizes.architecture + "." + key, Value::array<std::uint32_t>(counts));
    };
    as_array("attention.head_count", sizes.heads);
    as_array("attention.head_count_kv", sizes.kv_heads);
    as_array("feed_forward_length", sizes.feed_forward);
    expect_same(folder, draft);
  }
}

TEST(Families, DoWithoutKeysThatSayWhatIsUsual) {
  const auto without = [](const std::string& folder, const std::vector<std::string>& keys) {
    GgufDraft draft = GgufDraft::copy_of(file_of(folder));
    for (const std::string& key : keys) draft.erase(key);
    expect_same(folder, draft);
  };
  // Heads of embedding / heads, and a key that repeats it.
  without("gemma2", {"gemma2.attention.key_length", "gemma2.attention.value_length"});
  without("gpt-oss",
          {"gpt-oss.attention.key_length", "gpt-oss.attention.value_length", "gpt-oss.rope.dimension_count"});
  without("phi2", {"phi2.attention.head_count_kv"});
  without("cohere2", {"cohere2.rope.dimension_count"});
  without("granitemoe-shared", {"granitemoe.rope.dimension_count", "granitemoe.rope.freq_base"});
  // Routing as the second version has it.
  without("deepseek2-v2", {"deepseek2.expert_gating_func", "deepseek2.expert_weights_norm",
                           "deepseek2.expert_weights_scale", "deepseek2.rope.freq_base"});
}

TEST(Families, TakeWhatAPaperFixesWhereAKeyDoesNot) {
  GgufDraft draft = GgufDraft::copy_of(file_of("gemma2"));
  draft.erase("gemma2.attn_logit_softcapping").erase("gemma2.final_logit_softcapping");
  const auto model = load(draft).model;
  EXPECT_EQ(model->network().logit_cap, 30);
  EXPECT_EQ(std::get<Attention>(model->network().layers[0].parts[0].body).cells.soft_cap, 50);
}

TEST(Families, RefuseKeysThatCannotBeByName) {
  const auto refused = [](const std::string& folder, const std::string& key, const Value& value) {
    GgufDraft draft = GgufDraft::copy_of(file_of(folder));
    draft.set(key, value);
    const auto model = try_load(draft);
    ASSERT_FALSE(model) << key;
    EXPECT_EQ(model.error().code(), Outcome::kCorrupt) << key;
    EXPECT_NE(model.error().message().find(key), std::string::npos) << model.error().message();
  };
  refused("gemma2", "gemma2.attention.sliding_window", Value::scalar(0U));
  refused("gemma2", "gemma2.attn_logit_softcapping", Value::scalar(-1.0F));
  refused("gemma2", "gemma2.final_logit_softcapping", Value::scalar(0.0F));
  refused("gemma3", "gemma3.attention.sliding_window_pattern", Value::scalar(0U));
  refused("gemma3", "gemma3.rope.freq_base_swa", Value::scalar(0.0F));
  refused("gpt-oss", "gpt-oss.attention.sliding_window", Value::string("8"));
  refused("cohere2", "cohere2.attention.sliding_window", Value::scalar(0U));
  refused("deepseek2-groups", "deepseek2.expert_group_count", Value::scalar(3U));       // of 8 experts
  refused("deepseek2-groups", "deepseek2.expert_group_used_count", Value::scalar(5U));  // of 4 groups
  refused("deepseek2-groups", "deepseek2.expert_gating_func", Value::scalar(3U));
  refused("deepseek2-groups", "deepseek2.attention.key_length_mla", Value::scalar(8U));
  refused("deepseek2-groups", "deepseek2.attention.kv_lora_rank", Value::scalar(0U));
  refused("deepseek2-groups", "deepseek2.leading_dense_block_count", Value::scalar(9U));
  refused("granitemoe-shared", "granitemoe.logit_scale", Value::scalar(0.0F));
}

}  // namespace
}  // namespace kvasir::model
