// Texts that are read both ways: sources of conversations, and texts as vectors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "api/api_run.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::data_path;
using test::digest_of;
using test::logits_of;
using test::must;
using test::outcome_of;
using test::random_tokens;

const Model& writer() {
  static const Model model = must(Model::load(data_path("models/t5/model.gguf"), {.threads = 2}));
  return model;
}

const Model& reader() {
  static const Model model = must(Model::load(data_path("models/bert/model.gguf"), {.threads = 2}));
  return model;
}

ExecutorOptions sizes(std::uint64_t pool, std::uint32_t pass_tokens = 512) {
  return {.pool = pool,
          .keys = CacheType::kF32,
          .values = CacheType::kF32,
          .page_cells = 16,
          .pass_tokens = pass_tokens};
}

std::vector<Token> ids(std::size_t count, std::uint64_t seed) {
  return random_tokens(writer().vocabulary(), count, seed);
}

// The last row after `tokens`, in an executor that never held anything else.
std::vector<float> cold(std::span<const Token> source, std::span<const Token> tokens) {
  Executor executor = must(Executor::create(writer(), sizes(256)));
  Conversation talk = must(executor.conversation());
  must(talk.encode(source));
  must(talk.prompt(tokens));
  must(talk.wait());
  return logits_of(talk);
}

// F32 weights are within 4e-12 of exact arithmetic; GELU was recorded from a table of halves.
TEST(Sources, GiveTheRecordedLogits) {
  struct Recorded {
    std::string name;
    double bound;
  };
  for (const Recorded& one : {Recorded{"t5", 1e-9}, Recorded{"t5-gated", 1e-6}}) {
    const std::string folder = data_path("models/" + one.name);
    const Model model = must(Model::load(folder + "/model.gguf", {.threads = 2}));
    const std::vector<Token> all = test::read_tokens(folder + "/tokens.txt");
    const std::span<const Token> tokens = std::span(all).subspan(24);
    Executor executor = must(Executor::create(model, sizes(64)));
    Conversation talk = must(executor.conversation());
    must(talk.encode(std::span(all).first(24)));
    must(talk.prompt(tokens, {.every_logit = true}));
    must(talk.wait());
    std::vector<float> logits;
    for (std::size_t back = tokens.size(); back-- > 0;) {
      const std::vector<float> row = logits_of(talk, back);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    EXPECT_LE(test::normalized_error(logits, test::read_floats(folder + "/logits.f32")), one.bound)
        << one.name;
  }
}

// Case K69: one source, two at once, an empty one, a second one on the same conversation, and none.
TEST(Sources, CaseK69BelongToTheirConversationsAndMisuseIsAnError) {
  const std::vector<Token> tokens = ids(20, 1);
  const std::vector<Token> one = ids(30, 2);
  const std::vector<Token> two = ids(41, 3);
  ASSERT_NE(cold(one, tokens), cold(two, tokens));
  Executor executor = must(Executor::create(writer(), sizes(256)));
  Conversation first = must(executor.conversation());
  Conversation second = must(executor.conversation());

  const std::uint64_t before = digest_of(executor);
  EXPECT_EQ(outcome_of(first.prompt(tokens)), Outcome::kWrongState);  // no source
  EXPECT_EQ(outcome_of(first.generate({.max_tokens = 1})), Outcome::kWrongState);
  EXPECT_EQ(outcome_of(first.encode(std::vector<Token>())), Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(first.encode(std::vector<Token>{-1})), Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(first.encode(ids(300, 4))), Outcome::kNoSpace);
  EXPECT_EQ(digest_of(executor), before);

  must(first.encode(one));
  must(second.encode(two));
  must(first.prompt(tokens));
  must(second.prompt(tokens));
  const StepReport report = must(executor.run_until_idle());
  EXPECT_EQ(report.passes, 1U);  // both in one pass
  EXPECT_EQ(logits_of(first), cold(one, tokens));
  EXPECT_EQ(logits_of(second), cold(two, tokens));

  EXPECT_EQ(outcome_of(first.encode(two)), Outcome::kWrongState);  // its tokens have read another
  EXPECT_EQ(logits_of(first), cold(one, tokens));
  must(first.clear());
  must(first.encode(two));
  must(first.prompt(tokens));
  must(first.wait());
  EXPECT_EQ(logits_of(first), cold(two, tokens));

  Executor other = must(Executor::create(test::model(), sizes(64)));
  Conversation plain = must(other.conversation());
  EXPECT_EQ(outcome_of(plain.encode(std::vector<Token>{1})), Outcome::kUnsupported);
}

TEST(Sources, AreReadWholeOrNotAtAll) {
  const std::vector<Token> source = ids(40, 5);
  const std::vector<Token> tokens = ids(12, 6);
  for (std::uint64_t asked = 0;; ++asked) {
    Executor executor = must(Executor::create(writer(), sizes(256, 16)));
    Conversation talk = must(executor.conversation());
    must(talk.encode(ids(25, 7)));
    const std::uint64_t before = digest_of(executor);
    std::uint64_t left = asked;
    const Status read = talk.encode(source, {.progress = [&](double) { return left-- > 0; }});
    if (read) {
      EXPECT_GT(asked, 10U);
      must(talk.prompt(tokens));
      must(talk.wait());
      EXPECT_EQ(logits_of(talk), cold(source, tokens));
      break;
    }
    EXPECT_EQ(read.error().code(), Outcome::kCancelled);
    EXPECT_EQ(digest_of(executor), before) << "job " << asked;
    must(talk.prompt(tokens));
    must(talk.wait());
    EXPECT_EQ(logits_of(talk), cold(ids(25, 7), tokens));
  }
}

TEST(Sources, EndWithTheirConversation) {
  const std::vector<Token> source = ids(40, 5);
  for (const bool closes : {false, true}) {
    Executor executor = must(Executor::create(writer(), sizes(256, 16)));
    const std::uint64_t before = executor.cache().free;
    Conversation talk = must(executor.conversation());
    int asked = 0;
    const Status read = talk.encode(source, {.progress = [&](double) {
                                      if (++asked != 5) return true;
                                      EXPECT_EQ(outcome_of(talk.prompt(source)), Outcome::kBusy);
                                      EXPECT_EQ(outcome_of(talk.encode(source)), Outcome::kBusy);
                                      EXPECT_EQ(outcome_of(talk.rewind(0)), Outcome::kBusy);
                                      closes ? talk.close() : must(talk.cancel());
                                      return true;
                                    }});
    EXPECT_EQ(outcome_of(read), Outcome::kCancelled);
    EXPECT_EQ(executor.cache().free, before);
    EXPECT_EQ(talk.state(), closes ? ConversationState::kClosed : ConversationState::kEmpty);
  }
}

TEST(Sources, AreSharedByForksAndCarriedByArchives) {
  const std::vector<Token> source = ids(40, 8);
  const std::vector<Token> tokens = ids(20, 9);
  const std::vector<Token> more = ids(7, 10);
  std::vector<Token> all = tokens;
  all.insert(all.end(), more.begin(), more.end());
  Executor executor = must(Executor::create(writer(), sizes(256)));
  Conversation talk = must(executor.conversation());
  must(talk.encode(source));
  Conversation before = must(talk.fork());
  must(talk.prompt(tokens));
  must(talk.wait());
  const std::uint64_t held = executor.cache().free;
  Conversation after = must(talk.fork());
  EXPECT_EQ(executor.cache().free, held);
  const std::vector<std::byte> archive = must(after.save_bytes());
  must(talk.clear());
  must(talk.encode(ids(11, 11)));  // its forks keep theirs
  must(before.prompt(all));
  must(after.prompt(more));
  must(executor.run_until_idle());
  EXPECT_EQ(logits_of(before), cold(source, all));
  EXPECT_EQ(logits_of(after), cold(source, all));

  Executor other = must(Executor::create(writer(), [] {
    ExecutorOptions options = sizes(256);
    options.page_cells = 32;
    return options;
  }()));
  Conversation loaded = must(other.conversation());
  must(loaded.load(archive));
  must(loaded.prompt(more));
  must(loaded.wait());
  EXPECT_EQ(logits_of(loaded), cold(source, all));
}

// Where the cells of an archive are of no use, its source is read again, and all behind it is computed.
TEST(Sources, AreReadAgainWhereWhatTheyBecameCannotBeUsed) {
  const std::vector<Token> source = ids(33, 21);
  const std::vector<Token> tokens = ids(17, 22);
  ExecutorOptions halves = sizes(256);
  halves.keys = halves.values = CacheType::kF16;
  Executor executor = must(Executor::create(writer(), halves));
  Conversation talk = must(executor.conversation());
  must(talk.encode(source));
  must(talk.prompt(tokens));
  must(talk.wait());
  Conversation fork = must(talk.fork());
  Conversation without = must(executor.conversation());
  const std::vector<std::byte> all = must(executor.save_bytes());
  const std::vector<std::byte> one = must(talk.save_bytes());

  Executor other = must(Executor::create(writer(), sizes(256)));
  EXPECT_EQ(outcome_of(other.load(all)), Outcome::kUnsupported);
  Loaded loaded = must(other.load(all, {.recompute = true}));
  EXPECT_EQ(loaded.report.tokens_recomputed, 2 * tokens.size());
  must(other.run_until_idle());
  ASSERT_EQ(loaded.conversations.size(), 3U);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(logits_of(loaded.conversations[i].conversation), cold(source, tokens)) << i;
  EXPECT_EQ(loaded.conversations[2].conversation.state(), ConversationState::kEmpty);
  // Into one that has read another; and saved from there once more, in cells that are of use.
  Conversation target = must(other.conversation());
  must(target.encode(ids(20, 23)));
  must(target.load(one, {.recompute = true}));
  must(target.wait());
  EXPECT_EQ(logits_of(target), cold(source, tokens));
  Conversation again = must(other.conversation());
  EXPECT_EQ(must(again.load(must(target.save_bytes()))).tokens_recomputed, 0U);
  EXPECT_EQ(logits_of(again), cold(source, tokens));
}

// Ended on the way, or without room for the source, a load leaves everything as it was.
TEST(Sources, ThatCannotBeReadAgainLeaveNothingBehind) {
  ExecutorOptions halves = sizes(256);
  halves.keys = halves.values = CacheType::kF16;
  Executor executor = must(Executor::create(writer(), halves));
  Conversation talk = must(executor.conversation());
  must(talk.encode(ids(60, 24)));
  must(talk.prompt(ids(9, 25)));
  must(talk.wait());
  const std::vector<std::byte> archive = must(talk.save_bytes());
  Executor small = must(Executor::create(writer(), sizes(32)));
  const std::uint64_t free = small.cache().free;
  EXPECT_EQ(outcome_of(small.load(archive, {.recompute = true})), Outcome::kNoSpace);
  EXPECT_EQ(small.cache().free, free);
  Executor other = must(Executor::create(writer(), sizes(256)));
  const std::uint64_t before = other.cache().free;
  for (int left = 0;; ++left) {
    int calls = left;
    const auto loaded = other.load(
        archive, {.recompute = true, .progress = [&](const ArchiveProgress&) { return calls-- > 0; }});
    if (loaded) break;
    EXPECT_EQ(loaded.error().code(), Outcome::kCancelled);
    EXPECT_EQ(other.cache().free, before);
    ASSERT_LT(left, 100);
  }
}

// A conversation finds what its fork has computed, and nothing of one with another source.
TEST(Sources, PartTheIndexOfBeginnings) {
  const std::vector<Token> tokens = ids(40, 12);
  ExecutorOptions options = sizes(512);
  options.share_prefixes = true;
  Executor executor = must(Executor::create(writer(), options));
  Conversation talk = must(executor.conversation());
  must(talk.encode(ids(30, 13)));
  Conversation twin = must(talk.fork());
  Conversation stranger = must(executor.conversation());
  must(stranger.encode(ids(30, 14)));
  must(talk.prompt(tokens));
  must(talk.wait());
  const std::uint64_t before = executor.metrics().prompted;
  must(twin.prompt(tokens));
  must(twin.wait());
  const std::uint64_t of_twin = executor.metrics().prompted - before;
  EXPECT_LT(of_twin, tokens.size());
  must(stranger.prompt(tokens));
  must(stranger.wait());
  EXPECT_EQ(executor.metrics().prompted - before - of_twin, tokens.size());
  EXPECT_EQ(logits_of(twin), cold(ids(30, 13), tokens));
  EXPECT_EQ(logits_of(stranger), cold(ids(30, 14), tokens));
}

// Found in the index, and given back because the rest does not fit: the source is not part of that.
TEST(Sources, StayWhereAPromptFindsItsBeginningAndNoRoom) {
  const std::vector<Token> source = ids(30, 21);
  const std::vector<Token> beginning = ids(48, 22);
  const std::vector<Token> longer = test::joined(beginning, ids(100, 23));
  ExecutorOptions options = sizes(160);
  options.share_prefixes = true;
  Executor executor = must(Executor::create(writer(), options));
  Conversation talk = must(executor.conversation());
  must(talk.encode(source));
  Conversation waiting = must(talk.fork());
  Conversation forked = must(talk.fork());
  must(talk.prompt(beginning));
  must(talk.wait());
  Conversation filler = must(executor.conversation());
  must(filler.encode(ids(10, 24)));
  must(filler.prompt(ids(150, 25)));
  must(filler.wait());
  const auto queued = waiting.prompt(longer);
  ASSERT_TRUE(queued) << queued.error().message();
  const auto stalled = executor.run_until_idle();
  ASSERT_TRUE(stalled && stalled->outcome == Outcome::kStalled) << "there was room";
  filler.close();
  must(waiting.wait());
  EXPECT_EQ(logits_of(waiting), cold(source, longer));
}

TEST(Sources, ComeBackFromTiers) {
  const std::vector<Token> source = ids(40, 15);
  const std::vector<Token> tokens = ids(20, 16);
  ExecutorOptions options = sizes(128);
  options.memory_tier_bytes = 4 << 20;
  Executor executor = must(Executor::create(writer(), options));
  Conversation talk = must(executor.conversation());
  must(talk.encode(source));
  must(talk.prompt(std::span(tokens).first(15)));
  must(talk.wait());
  must(talk.spill());
  EXPECT_EQ(talk.state(), ConversationState::kSpilled);
  must(talk.prompt(std::span(tokens).subspan(15)));
  must(talk.wait());
  EXPECT_EQ(logits_of(talk), cold(source, tokens));
}

TEST(Sources, LetAGenerationBeginByItself) {
  const std::vector<Token> source = ids(24, 17);
  ASSERT_EQ(writer().start_token(), std::optional<Token>(0));
  const auto generate = [&](bool prompts) {
    Executor executor = must(Executor::create(writer(), sizes(256)));
    Conversation talk = must(executor.conversation({.seed = 3}));
    must(talk.encode(source));
    if (prompts) must(talk.prompt(std::vector<Token>{0}));
    must(must(talk.generate({.max_tokens = 8})).rest());
    return must(talk.tokens());
  };
  const std::vector<Token> tokens = generate(false);
  EXPECT_GT(tokens.size(), 1U);
  EXPECT_EQ(tokens, generate(true));
}

TEST(Sources, AreReadWhileOthersCompute) {
  const std::vector<Token> source = ids(60, 18);
  const std::vector<Token> tokens = ids(30, 19);
  const std::vector<float> expected = cold(source, tokens);
  Executor executor = must(Executor::create(writer(), sizes(1024, 16)));
  must(executor.start());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        Conversation talk = must(executor.conversation());
        must(talk.encode(source));
        must(talk.prompt(tokens));
        must(talk.wait());
        EXPECT_EQ(logits_of(talk), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  must(executor.stop());
}

std::vector<Token> text_of(std::size_t count, std::uint64_t seed) {
  return random_tokens(reader().vocabulary(), count, seed);
}

// Case K68: lengths about that of a pass, the full context and one more, alone and several at once.
TEST(TextsAsVectors, CaseK68AreTheSameAloneAndTogetherAndEndWithTheContext) {
  constexpr std::uint32_t kPass = 16;
  Executor executor = must(Executor::create(reader(), sizes(64, kPass)));
  ASSERT_EQ(executor.context(), 64U);
  std::vector<std::vector<Token>> texts;
  for (const std::size_t length : {kPass - 1, kPass, kPass + 1, 64U, 1U, 40U})
    texts.push_back(text_of(length, length));
  for (const Pooling pooling : {Pooling::kOfModel, Pooling::kNone, Pooling::kFirst, Pooling::kLast}) {
    const auto together = must(executor.embed(texts, {.pooling = pooling}));
    ASSERT_EQ(together.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Executor wide = must(Executor::create(reader(), sizes(64)));
      const auto alone = must(wide.embed(std::span(texts).subspan(i, 1), {.pooling = pooling}));
      EXPECT_EQ(together[i], alone.front()) << texts[i].size();
    }
  }
  texts.push_back(text_of(65, 1));
  const auto refused = executor.embed(texts);
  ASSERT_EQ(outcome_of(refused), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 65U);
  EXPECT_EQ(refused.error().numbers().limit, 64U);
}

TEST(TextsAsVectors, HaveALengthOfOneWhereAsked) {
  Executor executor = must(Executor::create(reader(), sizes(64)));
  const std::vector<std::vector<Token>> texts = {text_of(10, 1)};
  const std::vector<float> plain = must(executor.embed(texts, {.normalise = false})).front();
  const std::vector<float> normal = must(executor.embed(texts)).front();
  ASSERT_EQ(plain.size(), reader().embedding_size());
  double squares = 0;
  double dot = 0;
  double own = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    squares += double{normal[i]} * double{normal[i]};
    dot += double{normal[i]} * double{plain[i]};
    own += double{plain[i]} * double{plain[i]};
  }
  EXPECT_NEAR(squares, 1, 1e-5);  // each of 64 numbers is rounded to a float
  EXPECT_NEAR(dot, std::sqrt(own), 1e-5 * std::sqrt(own));
}

TEST(TextsAsVectors, AreRefusedWithAReason) {
  Executor executor = must(Executor::create(reader(), sizes(64)));
  EXPECT_EQ(outcome_of(executor.conversation()), Outcome::kUnsupported);
  EXPECT_EQ(must(executor.step()).outcome, Outcome::kIdle);
  EXPECT_EQ(outcome_of(executor.compact()), Outcome::kDone);
  const std::vector<std::vector<Token>> none;
  EXPECT_TRUE(must(executor.embed(none)).empty());
  EXPECT_EQ(outcome_of(executor.embed(std::vector<std::vector<Token>>{{}})), Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(executor.embed(std::vector<std::vector<Token>>{{-1}})), Outcome::kInvalidArgument);
  const std::vector<std::vector<Token>> texts = {text_of(3, 1)};
  EXPECT_EQ(outcome_of(executor.embed(texts, {.pooling = static_cast<Pooling>(9)})),
            Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(executor.embed(texts, {.progress = [](std::uint64_t) { return false; }})),
            Outcome::kCancelled);
  executor.close();
  EXPECT_EQ(outcome_of(executor.embed(texts)), Outcome::kWrongState);
  Executor other = must(Executor::create(test::model(), sizes(64)));
  EXPECT_EQ(outcome_of(other.embed(texts)), Outcome::kUnsupported);
}

// The file's vocabulary puts [CLS] and [SEP] around a text.
TEST(TextsAsVectors, ComeOfTextsToo) {
  Executor executor = must(Executor::create(reader(), sizes(64)));
  const std::vector<std::string> texts = {"abc", "a b"};
  const auto vectors = must(executor.embed(texts));
  ASSERT_EQ(vectors.size(), 2U);
  EXPECT_NE(vectors[0], vectors[1]);
  EXPECT_EQ(must(executor.embed(std::span(texts).first(1))).front(), vectors[0]);
}

}  // namespace
}  // namespace kvasir
