// Conversations put away and taken back: after every kind of history, in every type of cache, from every size
// of page to every other, into any free space, each goes on to the bit and computes nothing again.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "api/api_run.h"
#include "api/future.h"
#include "api/histories.h"
#include "api/thirty.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::cache_of;
using test::digest_of;
using test::Future;
using test::future_of;
using test::histories;
using test::History;
using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::options_of;
using test::outcome_of;
using test::round_trip;
using test::say;
using test::scatter;
using test::some_tokens;
using test::thirty_conversations;

TEST(Archives, BringEveryHistoryBackToTheBitInPagesOfEverySize) {
  for (const History& history : histories()) {
    for (const std::uint32_t from : {16U, 48U}) {
      for (const std::uint32_t to : {16U, 32U, 256U}) {
        SCOPED_TRACE(std::string(history.name) + ", pages of " + std::to_string(from) + " to " +
                     std::to_string(to));
        EXPECT_EQ(round_trip(history, cache_of(CacheType::kF16, CacheType::kF16, from),
                             cache_of(CacheType::kF16, CacheType::kF16, to)),
                  "");
      }
    }
  }
}

TEST(Archives, BringEveryTypeOfCacheBackToTheBit) {
  const std::vector<CacheType> types = {CacheType::kF32, CacheType::kF16, CacheType::kBf16, CacheType::kQ8_0,
                                        CacheType::kQ4_0};
  for (const CacheType keys : types) {
    for (const CacheType values : types) {
      SCOPED_TRACE(std::to_string(static_cast<int>(keys)) + ":" + std::to_string(static_cast<int>(values)));
      EXPECT_EQ(round_trip(histories()[6], cache_of(keys, values, 32), cache_of(keys, values, 64)), "");
    }
  }
}

TEST(Archives, AreSmallerCompressedAndTheSameInside) {
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation());
  say(talk, 200, 1);
  const auto plain = must(talk.save_bytes());
  const auto packed = must(talk.save_bytes({.compression = 3}));
  EXPECT_LT(packed.size(), plain.size());
  EXPECT_EQ(outcome_of(talk.save_bytes({.compression = 99})), Outcome::kInvalidArgument);
  // A save that is refused leaves the archive that is there.
  std::vector<std::byte> kept = plain;
  EXPECT_EQ(outcome_of(talk.save(kept, {.compression = 99})), Outcome::kInvalidArgument);
  EXPECT_EQ(kept, plain);
  Executor closed = make_executor(64);
  const Conversation gone = must(closed.conversation());
  closed.close();
  EXPECT_EQ(outcome_of(gone.save(kept)), Outcome::kWrongState);
  EXPECT_EQ(kept, plain);
  Conversation other = must(executor.conversation());
  must(other.load(packed));
  EXPECT_EQ(future_of(other), future_of(talk));
}

// K11
TEST(Archives, OfNothingBringNothingIntoNewAndUsedConversations) {
  Executor executor = make_executor(256);
  Conversation empty = must(executor.conversation());
  const auto archive = must(empty.save_bytes());
  Conversation fresh = must(executor.conversation());
  Conversation used = must(executor.conversation());
  say(used, 20, 1);
  must(used.prompt(some_tokens(3, 2)));
  const std::uint64_t free_before = executor.cache().free;
  for (Conversation* const talk : {&fresh, &used}) {
    must(talk->load(archive));
    EXPECT_EQ(talk->length(), 0U);
    EXPECT_EQ(talk->state(), ConversationState::kEmpty);
    say(*talk, 10, 3);
    EXPECT_EQ(logits_of(*talk), test::cold_logits(some_tokens(10, 3)));
  }
  EXPECT_GT(executor.cache().free, free_before) << "what it held before is given back";
}

// K12
TEST(Archives, ThatAreNotThereLeaveTheConversationAlone) {
  Executor executor = make_executor(256);
  Conversation talk = must(executor.conversation());
  say(talk, 20, 1);
  const std::uint64_t before = digest_of(executor);
  EXPECT_EQ(outcome_of(talk.load(test::scratch_directory() + "/none.kvar")), Outcome::kNotFound);
  EXPECT_EQ(outcome_of(talk.load(test::scratch_directory())), Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(talk.load(std::string("a\0b", 3))), Outcome::kInvalidArgument);
  ArchiveStore store = must(ArchiveStore::in_memory());
  EXPECT_EQ(outcome_of(talk.load(store, "none")), Outcome::kNotFound);
  EXPECT_EQ(outcome_of(executor.load(store, "../none")), Outcome::kInvalidArgument);
  EXPECT_EQ(digest_of(executor), before);
}

TEST(Archives, AreRefusedAShareOfTimeThatIsNone) {
  Executor executor = make_executor(1024);
  Conversation talk = must(executor.conversation());
  must(talk.prompt(some_tokens(5, 1)));
  must(talk.wait());
  std::vector<std::byte> bytes;
  must(talk.save(bytes));
  const std::vector<std::byte> before = bytes;
  const std::uint64_t digest = digest_of(executor);
  for (const double share : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(outcome_of(talk.save(bytes, {.background = share})), Outcome::kInvalidArgument) << share;
    EXPECT_EQ(outcome_of(talk.load(bytes, {.background = share})), Outcome::kInvalidArgument) << share;
  }
  EXPECT_EQ(bytes, before);
  EXPECT_EQ(digest_of(executor), digest);
}

TEST(Archives, GoToFilesFunctionsAndStoresAndComeBackFromThem) {
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation());
  say(talk, 40, 1);
  const std::string folder = test::scratch_directory();
  must(talk.save(folder + "/a.kvar"));
  std::vector<std::byte> streamed;
  must(talk.save([&](std::span<const std::byte> bytes) -> Status {
    streamed.insert(streamed.end(), bytes.begin(), bytes.end());
    return {};
  }));
  ArchiveStore directory = must(ArchiveStore::in_directory(folder));
  EXPECT_EQ(outcome_of(ArchiveStore::in_directory(folder + "/none")), Outcome::kNotFound);
  EXPECT_EQ(outcome_of(ArchiveStore::in_directory("/dev/null")), Outcome::kInvalidArgument);
  must(talk.save(directory, "b"));
  EXPECT_EQ(must(directory.list()), (std::vector<std::string>{"a", "b"}));
  const auto bytes = must(talk.save_bytes());
  EXPECT_EQ(must(directory.read("a")), bytes);
  EXPECT_EQ(must(directory.read("b")), bytes);
  EXPECT_EQ(streamed, bytes);
  const Future expected = future_of(talk);
  const auto check = [&](const std::function<Status(Conversation&)>& load) {
    Conversation other = must(executor.conversation());
    must(load(other));
    EXPECT_EQ(future_of(other), expected);
  };
  const auto status = [](const Result<ArchiveReport>& result) {
    return result ? Status() : Status(fail(result.error()));
  };
  check([&](Conversation& other) { return status(other.load(folder + "/a.kvar")); });
  check([&](Conversation& other) { return status(other.load(directory, "b")); });
  check([&](Conversation& other) {
    std::size_t at = 0;
    return status(other.load([&](std::span<std::byte> into) -> Result<std::size_t> {
      const std::size_t some = std::min({std::size_t{1000}, into.size(), bytes.size() - at});
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), some, into.begin());
      at += some;
      return some;
    }));
  });
  must(directory.remove("b"));
  EXPECT_EQ(must(directory.list()), std::vector<std::string>{"a"});
}

TEST(Archives, BringAWholeExecutorBackIntoPagesOfAnotherSize) {
  std::vector<Future> undisturbed;
  std::vector<std::byte> archive;
  std::uint64_t held = 0;
  {
    Executor executor = make_executor(options_of(4096, 64));
    std::vector<Conversation> all = thirty_conversations(executor, false);
    held = executor.cache().held;
    archive = must(executor.save_bytes());
    for (Conversation& talk : all) undisturbed.push_back(future_of(talk, 10));
  }
  ExecutorOptions options = options_of(4096, 64);
  options.page_cells = 48;
  Executor executor = make_executor(options);
  const std::vector<Conversation> others = scatter(executor);
  const std::uint64_t before = executor.cache().held;
  Loaded loaded = must(executor.load(archive));
  ASSERT_EQ(loaded.conversations.size(), 30U);
  EXPECT_EQ(loaded.report.conversations, 30U);
  EXPECT_EQ(loaded.report.tokens_recomputed, 0U);
  EXPECT_EQ(executor.cache().held - before, held) << "shared beginnings are shared again";
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(future_of(loaded.conversations[i].conversation, 10), undisturbed[i]) << "conversation " << i;
    EXPECT_TRUE(i == 0 || loaded.conversations[i - 1].saved_as < loaded.conversations[i].saved_as);
  }
  EXPECT_EQ(loaded.conversations[29].conversation.seed(), loaded.conversations[10].conversation.seed());
}

// Draws, seeds of forks and settings go on as if nothing had happened.
TEST(Archives, KeepSeedsDrawsAndSettings) {
  const auto story = [](Conversation& talk) {
    std::string text =
        must(must(talk.generate({.max_tokens = 12, .sampler = {.temperature = 1}})).rest()).text;
    text += std::to_string(must(talk.fork()).seed());
    return text + must(must(talk.generate({.max_tokens = 12, .sampler = {.temperature = 1}})).rest()).text;
  };
  Executor executor = make_executor(1024);
  Conversation talk =
      must(executor.conversation({.priority = 3, .pinned = true, .salt = 9, .max_length = 500, .seed = 77}));
  say(talk, 20, 1);
  must(must(talk.generate({.max_tokens = 5, .sampler = {.temperature = 1}})).rest());
  static_cast<void>(must(talk.fork()));
  const auto archive = must(talk.save_bytes());
  Conversation back = must(executor.conversation());
  must(back.load(archive));
  EXPECT_EQ(back.seed(), 77U);
  EXPECT_EQ(story(back), story(talk));
  EXPECT_EQ(outcome_of(back.prompt(some_tokens(500, 2))), Outcome::kNoSpace) << "its own limit";
}

// A conversation that is loaded into is what the archive says, whoever else was it before.
TEST(Archives, ReplaceAConversationThatIsBeingComputed) {
  Executor executor = make_executor(1024);
  Conversation source = must(executor.conversation());
  say(source, 30, 1);
  const auto archive = must(source.save_bytes());
  const Future expected = future_of(source);
  Conversation target = must(executor.conversation());
  must(target.prompt(some_tokens(200, 2)));
  must(executor.step({.tokens = 16}));
  const auto id = static_cast<std::uint64_t>(target.id());
  must(target.load(archive));
  EXPECT_EQ(static_cast<std::uint64_t>(target.id()), id);
  EXPECT_EQ(target.info().queued, 0U);
  EXPECT_EQ(future_of(target), expected);
  // In an open step that nobody ends it stays what it is.
  must(target.prompt(some_tokens(20, 3)));
  Budget budget;
  budget.between_jobs = [](const JobView&) { return Verdict::kSuspend; };
  must(executor.step(budget));
  const std::uint64_t before = digest_of(executor);
  EXPECT_EQ(outcome_of(target.load(archive)), Outcome::kBusy);
  EXPECT_EQ(digest_of(executor), before);
  must(executor.abandon_step());
  must(target.load(archive));
  EXPECT_EQ(future_of(target), expected);
  // One archive of many is for an executor.
  const auto all = must(executor.save_bytes());
  EXPECT_EQ(outcome_of(target.load(all)), Outcome::kInvalidArgument);
}

// K18, and every other way to differ.
TEST(Archives, OfAnotherModelCacheOrLengthAreRefusedNamingWhatDiffers) {
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation());
  say(talk, 60, 1);
  const auto archive = must(talk.save_bytes());
  const auto refusal = [&](const Executor& there, Conversation& target, const LoadOptions& options = {}) {
    const std::uint64_t before = digest_of(there);
    const auto loaded = target.load(archive, options);
    EXPECT_FALSE(loaded.has_value());
    EXPECT_EQ(digest_of(there), before);
    return loaded ? Error(Outcome::kDone, "") : loaded.error();
  };
  const auto expect_other_model = [&](const test::GgufDraft& draft, Outcome code, const char* word) {
    const std::string path = test::scratch_directory() + "/other.gguf";
    draft.write(path);
    const Model other_model = must(Model::load(path, {.threads = 1}));
    Executor there = must(Executor::create(other_model, options_of(512)));
    Conversation target = must(there.conversation());
    must(target.prompt(some_tokens(5, 2)));
    must(target.wait());
    const Error error = refusal(there, target);
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(error.message().find(word), std::string::npos) << error.message();
  };
  test::TinyShape turned = test::speaking_shape();
  turned.rope_base = 5000;
  expect_other_model(test::speaking_draft(turned), Outcome::kUnsupported, "rotary");
  test::GgufDraft weights = test::speaking_draft(test::speaking_shape());
  weights.tensor("blk.1.ffn_up.weight", {64, 80});
  weights.floats("output_norm.weight", {64}, std::vector<float>(64, 0.5F));
  expect_other_model(weights, Outcome::kUnsupported, "weights");
  test::GgufDraft renamed = test::speaking_draft(test::speaking_shape());
  renamed.set("tokenizer.ggml.pre", std::string_view("qwen2"));
  expect_other_model(renamed, Outcome::kUnsupported, "vocabulary");

  ExecutorOptions halves = options_of(512);
  halves.keys = CacheType::kF16;
  Executor other_cache = make_executor(halves);
  Conversation in_halves = must(other_cache.conversation());
  const Error type = refusal(other_cache, in_halves);
  EXPECT_EQ(type.code(), Outcome::kUnsupported);
  EXPECT_NE(type.message().find("f32:f32"), std::string::npos);

  ExecutorOptions tight = options_of(512);
  tight.context = 59;
  Executor too_short = make_executor(tight);
  Conversation target = must(too_short.conversation());
  EXPECT_EQ(refusal(too_short, target).code(), Outcome::kNoSpace);
  tight.context = 60;
  Executor enough = make_executor(tight);
  Conversation fits = must(enough.conversation());
  must(fits.load(archive));
  EXPECT_EQ(fits.length(), 60U);
  Executor small = make_executor(48);
  Conversation in_small = must(small.conversation());
  EXPECT_EQ(refusal(small, in_small).code(), Outcome::kNoSpace);
}

// load(recompute) makes of tokens what the cells cannot give.
TEST(Archives, WhoseCellsCannotBeUsedAreComputedAgainWhereAskedFor) {
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation({.seed = 4}));
  say(talk, 60, 1);
  must(talk.prompt(some_tokens(5, 2)));
  const auto archive = must(talk.save_bytes());
  ExecutorOptions halves = options_of(512);
  halves.keys = halves.values = CacheType::kF16;
  Executor there = make_executor(halves);
  Conversation cold = must(there.conversation());
  must(cold.prompt(joined(some_tokens(60, 1), some_tokens(5, 2))));
  must(cold.wait());
  Conversation back = must(there.conversation());
  const ArchiveReport report = must(back.load(archive, {.recompute = true}));
  EXPECT_EQ(report.tokens_recomputed, 60U);
  EXPECT_EQ(back.length() + back.info().queued, 65U) << "a beginning that the cache knows is taken";
  must(back.wait());
  EXPECT_EQ(back.seed(), 4U);
  EXPECT_EQ(logits_of(back), logits_of(cold));
  // Where they can be used nothing is computed again, and damage of cells alone is no loss then.
  Conversation same = must(executor.conversation());
  EXPECT_EQ(must(same.load(archive, {.recompute = true})).tokens_recomputed, 0U);
  auto damaged = archive;
  damaged[damaged.size() - 500] ^= std::byte{1};
  EXPECT_EQ(outcome_of(same.load(damaged)), Outcome::kCorrupt);
  EXPECT_EQ(must(same.load(damaged, {.recompute = true})).tokens_recomputed, 60U);
  must(same.wait());
  must(talk.wait());
  EXPECT_EQ(logits_of(same), logits_of(talk));
  // Vectors are not kept.
  Conversation vectors = must(executor.conversation());
  const auto rows = test::embeddings_of(some_tokens(4, 5));
  must(vectors.prompt(Embeddings{rows}));
  must(vectors.wait());
  Conversation none = must(there.conversation());
  EXPECT_EQ(outcome_of(none.load(must(vectors.save_bytes()), {.recompute = true})), Outcome::kUnsupported);
}

// K10
TEST(Archives, FitIntoTheHolesThatOthersLeft) {
  Executor executor = make_executor(512);
  Conversation talk = must(executor.conversation());
  say(talk, 250, 1);
  const auto archive = must(talk.save_bytes());
  const Future expected = future_of(talk, 5);
  talk.close();
  std::vector<Conversation> others;
  for (std::uint64_t i = 0; i < 32; ++i) {
    others.push_back(must(executor.conversation()));
    must(others.back().prompt(some_tokens(16, 20 + i)));
    must(others.back().wait());
  }
  ASSERT_LT(executor.cache().free, 250U) << "only what others could begin with is left";
  for (std::size_t i = 0; i < others.size(); i += 2) others[i].close();
  EXPECT_EQ(executor.cache().free, 256U);
  Conversation back = must(executor.conversation());
  must(back.load(archive));
  EXPECT_EQ(future_of(back, 5), expected);
  Conversation once_more = must(executor.conversation());
  const auto refused = once_more.load(archive);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 250U);
  EXPECT_LT(refused.error().numbers().available, 250U);
}

// A thousand saves, closes and loads at random in a pool that is nearly full: a load succeeds exactly where
// what is free suffices.
TEST(Archives, LoadExactlyWhereThereIsRoomInAPoolThatIsNearlyFull) {
  ExecutorOptions options = options_of(640, 640);
  options.share_prefixes = false;
  Executor executor = make_executor(options);
  std::mt19937_64 random(11);
  struct Away {
    std::vector<std::byte> archive;
    std::uint64_t length = 0;
    std::vector<float> row;
  };
  std::vector<Conversation> here;
  std::vector<Away> away;
  int loads = 0;
  int refusals = 0;
  std::uint64_t said = 0;
  for (int round = 0; round < 1000; ++round) {
    // Kept at 97 to 100 percent.
    while (executor.cache().free > 19) {
      here.push_back(must(executor.conversation()));
      say(here.back(), std::min<std::uint64_t>(executor.cache().free, 1 + random() % 60), ++said);
    }
    const std::size_t chosen = random() % here.size();
    if (away.size() < 12 || random() % 2 == 0) {
      away.push_back({must(here[chosen].save_bytes()), here[chosen].length(), logits_of(here[chosen])});
    }
    if (random() % 4 != 0) here.erase(here.begin() + static_cast<std::ptrdiff_t>(chosen));
    const std::size_t which = random() % away.size();
    const std::uint64_t room = executor.cache().free;
    Conversation back = must(executor.conversation());
    const auto loaded = back.load(away[which].archive);
    ASSERT_EQ(loaded.has_value(), away[which].length <= room) << round;
    if (loaded) {
      ++loads;
      EXPECT_EQ(logits_of(back), away[which].row);
      EXPECT_EQ(executor.cache().free, room - away[which].length);
      here.push_back(std::move(back));
    } else {
      ++refusals;
      EXPECT_EQ(loaded.error().numbers().available, room);
      EXPECT_EQ(executor.cache().free, room);
    }
    if (away.size() > 24) away.erase(away.begin());
  }
  EXPECT_GT(loads, 100);
  EXPECT_GT(refusals, 100);
}

}  // namespace
}  // namespace kvasir
