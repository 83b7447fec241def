// Archives and tiers together: what lies in a tier is saved from there, what returns can be loaded into, and
// a whole executor goes on in a process that never saw it.

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "api/api_run.h"
#include "api/future.h"
#include "api/thirty.h"
#include "support/paths.h"
#include "support/process.h"

namespace kvasir {
namespace {

using test::future_of;
using test::make_executor;
using test::must;
using test::options_of;
using test::say;
using test::some_tokens;

// A pool with so much memory and disk behind it.
ExecutorOptions tiered(std::uint64_t memory, std::uint64_t disk) {
  ExecutorOptions options = options_of(1024, 64);
  options.memory_tier_bytes = memory;
  options.disk_tier_bytes = disk;
  if (disk > 0) options.spill_directory = test::scratch_directory();
  return options;
}

// A long conversation, one that shares its beginning, one with shifts.
std::vector<Conversation> family(Executor& executor) {
  std::vector<Conversation> all;
  for (std::uint64_t i = 0; i < 2; ++i) {
    all.push_back(must(executor.conversation({.seed = 3 + i})));
    say(all.back(), 90 + 40 * i, 1 + i);
  }
  all.push_back(must(all[0].fork()));
  say(all[2], 20, 7);
  must(all[1].shift_left(3, 20));
  say(all[1], 11, 8);
  return all;
}

// Their archive is, but for where it came from, what it would have been: so is what comes out of it.
TEST(Archives, OfConversationsInTiersGoOnToTheBit) {
  std::vector<test::Future> undisturbed;
  {
    Executor executor = make_executor(tiered(0, 0));
    for (Conversation& talk : family(executor)) undisturbed.push_back(future_of(talk, 12));
  }
  struct Sizes {
    std::uint64_t memory;
    std::uint64_t disk;
  };
  for (const Sizes sizes : {Sizes{1 << 20, 0}, Sizes{32 << 10, 1 << 20}}) {
    Executor executor = make_executor(tiered(sizes.memory, sizes.disk));
    std::vector<Conversation> all = family(executor);
    for (Conversation& talk : all) must(talk.spill());
    ASSERT_EQ(executor.cache().spilled, 3);
    ASSERT_EQ(executor.cache().disk_tier_bytes > 0, sizes.disk > 0);
    const auto whole = must(executor.save_bytes());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto one = must(all[i].save_bytes());
      EXPECT_EQ(all[i].state(), ConversationState::kSpilled) << "a save brings nobody back";
      Executor other = make_executor(tiered(0, 0));
      Conversation back = must(other.conversation());
      EXPECT_EQ(must(back.load(one)).tokens_recomputed, 0);
      EXPECT_EQ(future_of(back, 12), undisturbed[i]) << "conversation " << i;
    }
    Executor other = make_executor(tiered(0, 0));
    Loaded loaded = must(other.load(whole));
    EXPECT_EQ(loaded.report.tokens_recomputed, 0);
    ASSERT_EQ(loaded.conversations.size(), 3);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(future_of(loaded.conversations[i].conversation, 12), undisturbed[i]);
      EXPECT_EQ(future_of(all[i], 12), undisturbed[i]) << "who was saved goes on as well";
    }
    EXPECT_EQ(executor.metrics().recomputed, 0);
  }
}

// A conversation that is put away, or on its way back for a prompt, becomes what an archive says.
TEST(Archives, LoadIntoConversationsThatArePutAwayOrReturn) {
  Executor executor = make_executor(tiered(1 << 20, 0));
  Conversation source = must(executor.conversation());
  say(source, 60, 1);
  const auto archive = must(source.save_bytes());
  const test::Future future = future_of(source, 8);
  for (const bool returns : {false, true}) {
    Conversation target = must(executor.conversation());
    say(target, 200, 2);
    must(target.spill());
    if (returns) must(target.prompt(some_tokens(5, 3)));
    must(target.load(archive));
    EXPECT_EQ(target.length(), 60);
    EXPECT_EQ(target.info().queued, 0);
    EXPECT_EQ(future_of(target, 8), future);
  }
  EXPECT_EQ(executor.cache().memory_tier_bytes, 0) << "what it was before is given up";
}

// The same while a worker brings them back at that very moment.
TEST(Archives, LoadIntoConversationsThatAWorkerBringsBack) {
  Executor executor = make_executor(tiered(1 << 20, 0));
  Conversation source = must(executor.conversation());
  say(source, 40, 1);
  const auto archive = must(source.save_bytes());
  const test::Future future = future_of(source, 4);
  for (std::uint64_t round = 0; round < 40; ++round) {
    Conversation target = must(executor.conversation());
    say(target, 100 + round, 2 + round);
    must(target.spill());
    must(executor.start());
    must(target.prompt(some_tokens(5, 3)));
    for (std::uint64_t spins = 0; spins < round * 500; ++spins) static_cast<void>(target.length());
    must(target.load(archive));
    EXPECT_EQ(future_of(target, 4), future);
    must(executor.stop());
  }
  EXPECT_EQ(executor.cache().memory_tier_bytes, 0);
}

// Thirty conversations, some of them spilled, saved to a file and taken back by another process.
TEST(Archives, OfAWholeExecutorGoOnInAnotherProcess) {
  ExecutorOptions options = options_of(4096, 64);
  options.memory_tier_bytes = 16 << 20;
  Executor executor = make_executor(options);
  std::vector<Conversation> all = test::thirty_conversations(executor, true);
  EXPECT_GE(executor.cache().spilled, 5);
  const std::string path = test::scratch_directory() + "/thirty.kvar";
  must(executor.save(path));
  const test::ProgramRun reader = test::run_program(KVASIR_ARCHIVE_READER, {path, "48"});
  ASSERT_EQ(reader.status, 0) << reader.out;
  std::istringstream lines(reader.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "0 computed again");
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line, test::printed(future_of(all[i], 10))) << "conversation " << i;
  }
  EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace kvasir
