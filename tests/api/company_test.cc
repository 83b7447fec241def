// P2 through the public API: whoever is beside it, a conversation has the bits of its solo run.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "api/api_run.h"

namespace kvasir {
namespace {

using test::about;
using test::cold_logits;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::some_tokens;

GenerateOptions for_tokens(std::uint64_t tokens) {
  return {.max_tokens = tokens, .sampler = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}};
}

// One who comes, says something, tells a story, and goes.
struct Guest {
  std::vector<Token> prompt;
  std::uint64_t seed = 0;
  std::uint64_t tokens = 0;
  int arrives = 0;  // before this step
  std::optional<Conversation> talk;
  std::optional<Generation> story;
  GeneratedPiece said;
};

std::vector<Guest> guests(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Guest> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].prompt = some_tokens(1 + random() % 60, 1000 * seed + i);
    all[i].seed = 77 + i;
    all[i].tokens = 6 + random() % 12;
    all[i].arrives = static_cast<int>(random() % 4 + 2 * (i % 8));
  }
  return all;
}

void read(Guest& guest) {
  while (auto piece = must(guest.story->poll())) {
    guest.said.text += piece->text;
    guest.said.tokens = joined(std::move(guest.said.tokens), piece->tokens);
  }
}

class Company : public testing::TestWithParam<std::size_t> {};

// K29, K30: as many as the parameter says.
TEST_P(Company, WhoArriveAndLeaveAtStaggeredTimesEachSayWhatTheyWouldAlone) {
  std::vector<Guest> all = guests(GetParam(), GetParam());
  Executor executor = make_executor(test::options_of(2048, 48));
  std::size_t most_at_once = 0;
  for (int step = 0; step < 2000; ++step) {
    for (Guest& guest : all) {
      if (guest.arrives != step) continue;
      guest.talk = must(executor.conversation({.seed = guest.seed}));
      must(guest.talk->prompt(guest.prompt));
      guest.story = must(guest.talk->generate(for_tokens(guest.tokens)));
    }
    const StepReport report = must(executor.step());
    most_at_once = std::max(most_at_once, report.conversations.size());
    bool any = step < 20;
    for (Guest& guest : all) {
      if (!guest.talk) continue;
      read(guest);
      any = true;
      if (!guest.story->finish()) continue;
      must(guest.talk->wait());
      EXPECT_EQ(logits_of(*guest.talk), cold_logits(joined(guest.prompt, guest.said.tokens)));
      guest.story.reset();
      guest.talk.reset();
    }
    if (!any) break;
  }
  EXPECT_GE(most_at_once, std::min<std::size_t>(GetParam(), 5));
  for (const Guest& guest : all) {
    const GeneratedPiece solo = test::alone(guest.prompt, guest.seed, for_tokens(guest.tokens));
    EXPECT_EQ(guest.said.tokens, solo.tokens);
    EXPECT_EQ(guest.said.text, solo.text);
  }
  EXPECT_EQ(executor.cache().held, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Company, testing::Values(1, 2, 8, 32, 100));

// K29
TEST(CompanyOfEquals, IdenticalPromptsGiveIdenticalTokensWhateverThePasses) {
  const std::vector<Token> prompt = some_tokens(45, 1);
  const GenerateOptions greedy{.max_tokens = 20, .sampler = Sampler::greedy()};
  const GeneratedPiece solo = test::alone(prompt, 1, greedy);
  for (const std::uint32_t pass : {7U, 32U, 512U}) {
    for (const bool sharing : {true, false}) {
      ExecutorOptions options = test::options_of(2048, pass);
      options.share_prefixes = sharing;
      Executor executor = make_executor(options);
      std::vector<Conversation> talks;
      std::vector<Generation> stories;
      for (int i = 0; i < 8; ++i) {
        talks.push_back(must(executor.conversation()));
        must(talks.back().prompt(prompt));
        stories.push_back(must(talks.back().generate(greedy)));
      }
      Conversation stranger = must(executor.conversation());
      must(stranger.prompt(some_tokens(90, 2)));
      must(executor.run_until_idle());
      for (Generation& story : stories) EXPECT_EQ(must(story.rest()).tokens, solo.tokens);
      for (const Conversation& talk : talks) EXPECT_EQ(logits_of(talk), logits_of(talks.front()));
      EXPECT_EQ(logits_of(stranger), cold_logits(some_tokens(90, 2)));
    }
  }
}

// K31
TEST(CompanyOfEquals, ASeedAndASeedThatWasReportedGiveTheSameStoryAgain) {
  const std::vector<Token> prompt = some_tokens(10, 1);
  Executor executor = make_executor(1024);
  std::vector<Conversation> talks;
  std::vector<Generation> stories;
  for (int i = 0; i < 6; ++i) {
    talks.push_back(i == 0 ? must(executor.conversation({.seed = 42})) : must(executor.conversation()));
    must(talks.back().prompt(prompt));
    stories.push_back(must(talks.back().generate(for_tokens(24))));
  }
  must(executor.run_until_idle());
  EXPECT_EQ(talks[0].seed(), 42U);
  std::set<std::vector<Token>> different;
  for (std::size_t i = 0; i < talks.size(); ++i) {
    const GeneratedPiece said = must(stories[i].rest());
    EXPECT_EQ(said.tokens, test::alone(prompt, talks[i].seed(), for_tokens(24)).tokens);
    different.insert(said.tokens);
  }
  EXPECT_EQ(different.size(), talks.size());
}

// Text of one, vectors of another, a drawn token of a third.
TEST(CompanyOfKinds, TextVectorsAndGenerationShareAPassAndKeepTheirBits) {
  Executor executor = make_executor(1024);
  Conversation teller = must(executor.conversation({.seed = 3}));
  must(teller.prompt(some_tokens(15, 1)));
  must(teller.wait());
  Generation story = must(teller.generate(for_tokens(3)));
  Conversation reader = must(executor.conversation());
  Conversation seer = must(executor.conversation());
  const std::vector<float> rows = test::embeddings_of(some_tokens(20, 2));
  must(reader.prompt("ba be bi bo bu"));
  must(seer.prompt(Embeddings{rows}));
  const StepReport report = must(executor.step());
  EXPECT_EQ(report.passes, 1U);
  EXPECT_EQ(report.conversations.size(), 3U);
  const auto told = about(report, teller.id());
  EXPECT_EQ(told->tokens, 1U);
  EXPECT_TRUE(told->generated);
  const auto seen = about(report, seer.id());
  EXPECT_EQ(seen->tokens, 20U);
  EXPECT_EQ(seen->embeddings, 20U);
  EXPECT_FALSE(seen->generated);
  EXPECT_EQ(about(report, reader.id())->embeddings, 0U);
  EXPECT_EQ(about(report, reader.id())->tokens, reader.length());
  const PromptPart text = Text{"ba be bi bo bu", {}};
  const PromptPart vectors = Embeddings{rows};
  EXPECT_EQ(logits_of(reader), cold_logits(std::span(&text, 1)));
  EXPECT_EQ(logits_of(seer), cold_logits(std::span(&vectors, 1)));
  EXPECT_EQ(must(story.rest()).tokens, test::alone(some_tokens(15, 1), 3, for_tokens(3)).tokens);
}

TEST(CompanyOfKinds, TheRowOfATokenPromptedAsAVectorGivesTheTokensBits) {
  const std::vector<Token> tokens = some_tokens(30, 1);
  const std::vector<float> rows = test::embeddings_of(tokens);
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(Embeddings{rows}));
  must(talk.wait());
  EXPECT_EQ(logits_of(talk), cold_logits(tokens));
  EXPECT_EQ(must(talk.tokens()), std::vector(30, kEmbedded));
}

// K67
TEST(CompanyOfKinds, ABlockOfVectorsBetweenTextsOfAnyNumberOfPassesGivesTheSameBits) {
  constexpr std::uint32_t kPass = 32;
  const std::vector<Token> before = some_tokens(11, 1);
  const std::vector<Token> after = some_tokens(9, 2);
  for (const std::uint32_t block : {kPass / 2, kPass, kPass * 3 / 2, kPass * 3}) {
    const std::vector<Token> image = some_tokens(block, block);
    const std::vector<float> rows = test::embeddings_of(image);
    const std::vector<PromptPart> parts = {std::span<const Token>(before), Embeddings{rows},
                                           std::span<const Token>(after)};
    // The vectors are those of tokens, so positions with a gap would show against the tokens alone.
    const std::vector<float> as_tokens = cold_logits(joined(joined(before, image), after));
    for (const std::uint32_t pass : {1U, 7U, kPass, 512U}) {
      Executor executor = make_executor(512, pass);
      Conversation talk = must(executor.conversation());
      must(talk.prompt(parts));
      must(talk.wait());
      EXPECT_EQ(logits_of(talk), as_tokens) << block << " vectors in passes of " << pass;
      EXPECT_EQ(talk.length(), before.size() + block + after.size());
    }
  }
}

// K70
TEST(CompanyOfKinds, AnotherBlockBetweenTheSameTextsNeverReusesTheCacheOfTheFirst) {
  const std::vector<Token> before = some_tokens(40, 1);
  const std::vector<Token> after = some_tokens(40, 2);
  const std::vector<float> x = test::embeddings_of(some_tokens(20, 3));
  const std::vector<float> y = test::embeddings_of(some_tokens(20, 4));
  Executor executor = make_executor(1024);
  std::vector<std::vector<float>> results;
  for (const std::vector<float>* block : {&x, &y, &x}) {
    const std::vector<PromptPart> parts = {std::span<const Token>(before), Embeddings{*block},
                                           std::span<const Token>(after)};
    Conversation talk = must(executor.conversation());
    must(talk.prompt(parts));
    must(talk.wait());
    results.push_back(logits_of(talk));
    EXPECT_EQ(results.back(), cold_logits(parts));
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_NE(results[0], results[1]);
  EXPECT_EQ(executor.cache().prefix_tokens, 64U);  // two whole pages of the text before, twice
}

}  // namespace
}  // namespace kvasir
