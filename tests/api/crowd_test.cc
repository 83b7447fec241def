// Many conversations at once: sixty-four in the hands of eight threads, and a thousand.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/api_run.h"

namespace kvasir {
namespace {

using test::joined;
using test::logits_of;
using test::make_executor;
using test::must;
using test::outcome_of;
using test::some_tokens;

constexpr int kThreads = 8;
constexpr std::size_t kEach = 8;  // conversations of one thread
constexpr int kActs = 120;        // of one thread

// One thread's conversations, with what each must hold.
class Hand {
 public:
  Hand(Executor& executor, std::uint64_t seed) : executor_(executor), random_(seed) {}

  void play() {
    for (int act = 0; act < kActs && wrong_.empty(); ++act) {
      if (talks_.size() < kEach) open();
      Talk& talk = talks_[random_() % talks_.size()];
      switch (random_() % 9) {
        case 0:
        case 1:
          prompt(talk);
          break;
        case 2:
          sample(talk);
          break;
        case 3:
          fork(talk);
          break;
        case 4:
          edit(talk);
          break;
        case 5:
          cancel(talk);
          break;
        case 6:
          generate(talk);
          break;
        case 7:
          close(talk);
          break;
        default:
          settle(talk);
      }
    }
    for (Talk& talk : talks_) compare(talk);
  }

  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  struct Talk {
    Conversation conversation;
    std::vector<Token> held;
  };

  void require(bool holds, const char* what) {
    if (!holds && wrong_.empty()) wrong_ = what;
  }
  void open() {
    Talk& talk = talks_.emplace_back(Talk{must(executor_.conversation()), {}});
    prompt(talk);
  }
  void prompt(Talk& talk) {
    if (talk.held.size() > 60) return close(talk);
    const std::vector<Token> more = some_tokens(1 + random_() % 12, random_());
    must(talk.conversation.prompt(more));
    talk.held = joined(talk.held, more);
  }
  void settle(Talk& talk) {
    require(outcome_of(talk.conversation.wait()) == Outcome::kDone, "a wait failed");
  }
  void sample(Talk& talk) {
    settle(talk);
    if (talk.held.empty() || talk.conversation.state() != ConversationState::kReady) return;
    const Token token = must(talk.conversation.sample(Sampler::greedy()));
    must(talk.conversation.prompt({{token}}));
    talk.held.push_back(token);
  }
  void fork(Talk& talk) {
    if (talks_.size() >= kEach) close(talks_.front());
    if (talks_.empty()) return;
    Talk& parent = talks_[random_() % talks_.size()];
    Talk child{must(parent.conversation.fork()), parent.held};
    talks_.push_back(std::move(child));
    static_cast<void>(talk);
  }
  void edit(Talk& talk) {
    settle(talk);
    const std::size_t length = random_() % (talk.held.size() + 1);
    must(talk.conversation.rewind(length));
    talk.held.resize(length);
  }
  void cancel(Talk& talk) {
    must(talk.conversation.cancel());
    talk.held = must(talk.conversation.tokens());
  }
  void generate(Talk& talk) {
    settle(talk);
    if (talk.held.empty() || talk.conversation.state() != ConversationState::kReady) return;
    Generation story = must(talk.conversation.generate(
        {.max_tokens = 1 + random_() % 6, .sampler = Sampler::greedy(), .ignore_end = true}));
    const std::vector<Token> said = must(story.rest()).tokens;
    talk.held = joined(talk.held, said);
  }
  void close(Talk& talk) { talks_.erase(talks_.begin() + (&talk - talks_.data())); }

  void compare(Talk& talk) {
    settle(talk);
    require(must(talk.conversation.tokens()) == talk.held,
            "a conversation holds other tokens than it was given");
    if (talk.held.empty() || talk.conversation.state() != ConversationState::kReady) return;
    require(logits_of(talk.conversation) == test::cold_logits(talk.held), "other logits than alone");
  }

  Executor& executor_;
  std::mt19937_64 random_;
  std::vector<Talk> talks_;
  std::string wrong_;
};

TEST(Crowd, OfSixtyFourConversationsOfEightThreadsEachIsAsAlone) {
  Executor executor = make_executor(8192, 64);
  must(executor.start());
  std::vector<std::string> wrong(kThreads);
  // Of its own each time that gtest repeats it in shuffled order.
  const auto first_seed =
      static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()) * kThreads;
  {
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        Hand hand(executor, first_seed + static_cast<std::uint64_t>(number));
        hand.play();
        wrong[static_cast<std::size_t>(number)] = hand.wrong();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::string& one : wrong) EXPECT_TRUE(one.empty()) << one;
  must(executor.stop());
  EXPECT_EQ(executor.cache().held, 0U);
}

TEST(Crowd, OfAThousandConversationsWorks) {
  Executor executor = make_executor(16'384);
  std::vector<Conversation> all;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    all.push_back(must(executor.conversation()));
    must(all.back().prompt(some_tokens(1 + i % 13, i)));
  }
  EXPECT_EQ(must(executor.run_until_idle()).outcome, Outcome::kIdle);
  for (std::uint64_t i = 0; i < 1000; i += 83) {
    EXPECT_EQ(all[i].length(), 1 + i % 13);
    EXPECT_EQ(logits_of(all[i]), test::cold_logits(some_tokens(1 + i % 13, i))) << i;
  }
  EXPECT_EQ(executor.cache().queued, 0U);
}

}  // namespace
}  // namespace kvasir
