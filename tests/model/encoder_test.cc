// Encoders on their own: recorded outputs, and that neither the length of a pass nor what else is read shows.

#include "model/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "parallel/thread_pool.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::model {
namespace {

using kvasir::test::data_path;
using kvasir::test::load_file;
using kvasir::test::LoadedModel;
using kvasir::test::normalized_error;
using kvasir::test::random_tokens;
using kvasir::test::read_floats;
using kvasir::test::read_tokens;

using Texts = std::vector<std::vector<Token>>;

LoadedModel load_recorded(const std::string& name) {
  return load_file(data_path("models/" + name + "/model.gguf"));
}

// One vector a text, or with kNone all of its tokens'.
std::vector<std::vector<float>> read(const LoadedModel& loaded, const Texts& texts, std::uint32_t pass_tokens,
                                     int threads, Pooling pooling) {
  const auto pool = parallel::ThreadPool::create(threads).value();
  const std::vector<std::span<const Token>> spans(texts.begin(), texts.end());
  const auto encoder = Encoder::begin(*loaded.model, *pool, spans, pass_tokens).value();
  while (!encoder->done()) EXPECT_TRUE(encoder->advance());
  std::vector<std::vector<float>> vectors;
  std::size_t row = 0;
  for (const std::vector<Token>& text : texts) {
    EXPECT_TRUE(pool_rows(*encoder, row, text.size(), pooling, vectors.emplace_back()));
    row += text.size();
  }
  return vectors;
}

Outcome refusal(const LoadedModel& loaded, const Texts& texts) {
  const auto pool = parallel::ThreadPool::create(1).value();
  const std::vector<std::span<const Token>> spans(texts.begin(), texts.end());
  const auto encoder = Encoder::begin(*loaded.model, *pool, spans, 16);
  return encoder ? Outcome::kDone : encoder.error().code();
}

// GELU was recorded from a table of halves.
TEST(Encoder, GivesTheRecordedOutputs) {
  struct Recorded {
    std::string name;
    std::string file;
    std::size_t tokens;
    Pooling pooling;
    double bound;
  };
  for (const Recorded& one : {Recorded{"t5", "enc_embd.f32", 24, Pooling::kNone, 1e-9},
                              Recorded{"t5-gated", "enc_embd.f32", 24, Pooling::kNone, 1e-6},
                              Recorded{"bert", "embd.f32", 48, Pooling::kMean, 1e-6}}) {
    const LoadedModel loaded = load_recorded(one.name);
    std::vector<Token> ids = read_tokens(data_path("models/" + one.name + "/tokens.txt"));
    ids.resize(one.tokens);
    const auto vectors = read(loaded, {ids}, 512, 2, one.pooling);
    const std::vector<float> recorded = read_floats(data_path("models/" + one.name + "/" + one.file));
    EXPECT_LE(normalized_error(vectors.front(), recorded), one.bound) << one.name;
    EXPECT_EQ(loaded.model->network().pooling, one.pooling) << one.name;
  }
}

TEST(Encoder, GivesTheSameBitsHoweverLongAPassIsAndWhateverElseIsRead) {
  for (const char* const name : {"t5", "t5-gated", "bert"}) {
    const LoadedModel loaded = load_recorded(name);
    Texts texts;
    for (const std::size_t length : {37U, 1U, 64U, 16U, 17U})
      texts.push_back(random_tokens(loaded.vocabulary(), length, length));
    std::vector<std::vector<float>> alone;
    for (const std::vector<Token>& text : texts)
      alone.push_back(read(loaded, {text}, 512, 1, Pooling::kNone).front());
    for (const std::uint32_t pass_tokens : {1U, 7U, 16U, 100U, 512U}) {
      for (const int threads : {1, 3})
        EXPECT_EQ(read(loaded, texts, pass_tokens, threads, Pooling::kNone), alone) << name << pass_tokens;
    }
  }
}

TEST(Encoder, SeesBothWaysAndKnowsPositions) {
  for (const char* const name : {"t5", "bert"}) {
    const LoadedModel loaded = load_recorded(name);
    const std::vector<Token> text = random_tokens(loaded.vocabulary(), 20, 1);
    std::vector<Token> changed = text;
    changed.back() = (changed.back() + 1) % static_cast<Token>(loaded.vocabulary());
    const std::size_t width = loaded.model->sizes().embedding;
    const auto rows = read(loaded, {text, changed, {5, 5, 5}}, 512, 1, Pooling::kNone);
    EXPECT_NE(std::vector<float>(rows[0].begin(), rows[0].begin() + static_cast<std::ptrdiff_t>(width)),
              std::vector<float>(rows[1].begin(), rows[1].begin() + static_cast<std::ptrdiff_t>(width)))
        << name << ": the first token does not see the last";
    const std::vector<float>& same = rows[2];
    EXPECT_FALSE(std::equal(same.begin(), same.begin() + static_cast<std::ptrdiff_t>(width),
                            same.begin() + static_cast<std::ptrdiff_t>(width)))
        << name << ": positions do not enter";
  }
}

TEST(Encoder, PoolsByMeanFirstAndLast) {
  const LoadedModel loaded = load_recorded("bert");
  const Texts texts = {random_tokens(loaded.vocabulary(), 3, 1), random_tokens(loaded.vocabulary(), 5, 2)};
  const auto rows = read(loaded, texts, 4, 1, Pooling::kNone);
  const auto first = read(loaded, texts, 4, 1, Pooling::kFirst);
  const auto last = read(loaded, texts, 4, 1, Pooling::kLast);
  const auto mean = read(loaded, texts, 4, 1, Pooling::kMean);
  const std::size_t width = loaded.model->sizes().embedding;
  for (std::size_t text = 0; text < texts.size(); ++text) {
    const std::span<const float> all = rows[text];
    ASSERT_EQ(all.size(), texts[text].size() * width);
    EXPECT_TRUE(std::ranges::equal(all.first(width), first[text]));
    EXPECT_TRUE(std::ranges::equal(all.last(width), last[text]));
    for (std::size_t i = 0; i < width; ++i) {
      double sum = 0;
      for (std::size_t at = i; at < all.size(); at += width) sum += all[at];
      // Three additions of numbers of this size and a division are rounded.
      EXPECT_NEAR(mean[text][i], sum / static_cast<double>(texts[text].size()), 1e-5);
    }
  }
  const auto pool = parallel::ThreadPool::create(1).value();
  const std::span<const Token> one = texts.front();
  const auto encoder = Encoder::begin(*loaded.model, *pool, {&one, 1}, 16).value();
  std::vector<float> out;
  EXPECT_EQ(pool_rows(*encoder, 0, 3, Pooling::kRank, out).error().code(), Outcome::kUnsupported);
}

TEST(Encoder, RefusesWhatCannotBeRead) {
  const LoadedModel bert = load_recorded("bert");
  const auto vocabulary = static_cast<Token>(bert.vocabulary());
  EXPECT_EQ(refusal(bert, {{1, 2, 3}}), Outcome::kDone);
  EXPECT_EQ(refusal(bert, {}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(bert, {{1}, {}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(bert, {{-1}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(bert, {{vocabulary}}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(bert, {std::vector<Token>(64, 1)}), Outcome::kDone);
  EXPECT_EQ(refusal(bert, {std::vector<Token>(65, 1)}), Outcome::kInvalidArgument);
  EXPECT_EQ(refusal(load_recorded("llama"), {{1}}), Outcome::kUnsupported);
}

}  // namespace
}  // namespace kvasir::model
