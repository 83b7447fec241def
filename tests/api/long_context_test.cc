// Models whose context is more than a number: LongRoPE, learned positions, and windows that a file may have.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api_run.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::must;
using test::outcome_of;

std::string folder_of(const std::string& name) {
  return test::data_path("models/" + name + "/");
}

// The logits of every token of a recorded prompt, in a model that is loaded for `context` tokens.
std::vector<float> logits_at(const std::string& folder, std::uint64_t context) {
  const Model model = must(Model::load(folder_of(folder) + "model.gguf", {.threads = 1, .context = context}));
  Executor executor =
      must(Executor::create(model, {.pool = 256, .keys = CacheType::kF32, .values = CacheType::kF32}));
  Conversation conversation = must(executor.conversation());
  const std::vector<Token> tokens = test::read_tokens(folder_of(folder) + "tokens.txt");
  must(conversation.prompt(tokens, {.every_logit = true}));
  must(conversation.wait());
  std::vector<float> all;
  for (std::size_t back = tokens.size(); back-- > 0;) {
    const std::vector<float> row = test::logits_of(conversation, back);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

TEST(LongContexts, ChooseTheirRotaryFactorsWhenTheModelIsLoaded) {
  const auto recorded = [](const char* file) { return test::read_floats(folder_of("phi3-longrope") + file); };
  const std::vector<float> longer = logits_at("phi3-longrope", 1024);
  const std::vector<float> shorter = logits_at("phi3-longrope", 256);
  EXPECT_LT(test::normalized_error(longer, recorded("logits.f32")), 1e-9);
  EXPECT_LT(test::normalized_error(shorter, recorded("logits-short.f32")), 1e-9);
  EXPECT_GT(test::normalized_error(longer, shorter), 1e-6);
  // Which ones, the length that the file was made for decides, and the original one is still short.
  EXPECT_EQ(logits_at("phi3-longrope", 0), longer);
  EXPECT_EQ(logits_at("phi3-longrope", 512), shorter);
  EXPECT_EQ(logits_at("phi3-longrope", 513), longer);
}

TEST(LearnedPositions, EndTheConversationWithTheNumberThereAre) {
  const Model model = must(Model::load(folder_of("gpt2") + "model.gguf", {.threads = 1}));
  const std::uint64_t learned = model.trained_context();
  ASSERT_EQ(learned, 128);
  Executor executor = must(Executor::create(model, {.pool = 1024}));
  EXPECT_EQ(executor.context(), learned);
  const auto beyond = Executor::create(model, {.context = learned + 1, .pool = 1024});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code(), Outcome::kInvalidArgument) << beyond.error().message();
  Conversation conversation = must(executor.conversation());
  std::vector<Token> tokens(learned);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(i % 96);
  must(conversation.prompt(tokens));
  must(conversation.wait());
  const std::uint64_t before = test::digest_of(executor);
  const auto more = conversation.prompt(std::vector<Token>{1});
  ASSERT_EQ(outcome_of(more), Outcome::kNoSpace);
  EXPECT_EQ(more.error().numbers().limit, learned) << more.error().message();
  EXPECT_EQ(test::digest_of(executor), before);
  // Positions that were learned do not move.
  EXPECT_EQ(outcome_of(conversation.shift_left(64, 8)), Outcome::kUnsupported);
  EXPECT_EQ(test::digest_of(executor), before);
  must(conversation.rewind(learned - 1));
  must(conversation.prompt(std::vector<Token>{1}));
  must(conversation.wait());
}

}  // namespace
}  // namespace kvasir
