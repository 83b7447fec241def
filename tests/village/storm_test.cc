// K30 on the shipped model: twenty-four characters in a pool for a few of them, everything done to them that
// can be done, in random order; each says what it says alone, and nothing that another was told.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/paths.h"
#include "village/village_run.h"

namespace kvasir {
namespace {

using cli::Line;
using cli::Person;
using test::must;

constexpr int kActs = 260;
constexpr std::uint64_t kForgetsAt = 560;  // tokens, so that talks stay as long as those the model knows
constexpr std::uint64_t kPool = 64 * 32;

// A character of the village, and the same one alone in a cache of its own to whom the same happens.
struct Twins {
  const Person* person = nullptr;
  Conversation here;
  std::unique_ptr<Executor> home;
  Conversation alone;
  std::vector<std::uint64_t> turns;  // the lengths at which turns ended, the first that of who it is
  std::optional<Generation> answer;
  Line line;
  std::string wanted;  // what the one alone said
  std::string said;
};

class Storm {
 public:
  explicit Storm(std::uint64_t seed)
      : random_(seed), executor_(must(Executor::create(test::village_model(), options()))) {
    for (const Person& person : cli::village_people()) {
      auto home = std::make_unique<Executor>(test::roomy_executor(1024));
      Conversation here = test::wake(executor_, person);
      Conversation alone = test::wake(*home, person);
      const std::uint64_t told = here.length();
      twins_.push_back({&person, std::move(here), std::move(home), std::move(alone), {told}, {}, {}, {}, {}});
    }
  }

  void act() {
    Twins& one = twins_[random_() % twins_.size()];
    const auto kind = random_() % 12;
    if (kind < 4) return ask(one);
    if (kind == 4) return cancel_step();
    if (kind == 5) return static_cast<void>(must(executor_.compact(1 + random_() % 300)));
    if (kind == 6) return steps(1 + random_() % 20);
    settle(one);
    if (kind == 7) return fork(one);
    if (kind == 8) return rewind(one);
    if (kind == 9) return save_and_load(one);
    if (kind == 10) return random_() % 2 == 0 ? put_away(one) : forget_a_turn(one);
    return ask_and_cancel(one);
  }

  // Everybody's roll call, in company.
  void end() {
    for (Twins& one : twins_) settle(one);
    for (std::size_t round = 0; round < twins_.front().person->roll_call.size(); ++round) {
      for (Twins& one : twins_) begin(one, one.person->roll_call[round]);
      for (Twins& one : twins_) settle(one);
    }
    for (const Twins& one : twins_) {
      EXPECT_EQ(*must(one.here.logits()), *must(one.alone.logits())) << one.person->name;
      EXPECT_EQ(must(one.here.tokens()), must(one.alone.tokens())) << one.person->name;
    }
    EXPECT_GT(executor_.metrics().returns, 0U);
    EXPECT_GT(executor_.metrics().disk_bytes_read, 0U);
  }

  [[nodiscard]] int answers() const { return answers_; }

 private:
  static ExecutorOptions options() {
    ExecutorOptions options;
    options.context = 1024;
    options.pool = kPool;
    options.memory_tier_bytes = 2 << 20;
    options.disk_tier_bytes = 64 << 20;
    options.spill_directory = test::scratch_directory();
    return options;
  }

  // Any question that it is asked in the demonstration.
  const Line& some_line(const Person& person) {
    const std::size_t at = random_() % (person.talk.size() + 4 * person.roll_call.size());
    return at < person.talk.size() ? person.talk[at] : person.roll_call[at % person.roll_call.size()];
  }

  void ask(Twins& one) {
    settle(one);
    begin(one, some_line(*one.person));
  }

  void begin(Twins& one, const Line& line) {
    if (one.here.length() > kForgetsAt) {
      must(one.here.rewind(one.turns.front()));
      must(one.alone.rewind(one.turns.front()));
      one.turns.resize(1);
    }
    one.line = line;
    one.wanted = test::ask(one.alone, line.question);
    must(cli::prompt_question(one.here, line.question));
    one.answer = must(cli::start_answer(one.here));
    one.said.clear();
  }

  // Lets it end its answer, which must be what it says alone.
  void settle(Twins& one) {
    if (!one.answer) return;
    one.said += must(one.answer->rest()).text;
    one.answer.reset();
    one.turns.push_back(one.here.length());
    ++answers_;
    EXPECT_EQ(one.said, one.wanted) << one.person->name << ", asked '" << one.line.question << "'";
    EXPECT_EQ(one.here.length(), one.alone.length());
    expect_own(one);
  }

  void expect_own(const Twins& one) {
    for (const Line& line : one.person->roll_call) {
      if (line.question == one.line.question) {
        EXPECT_TRUE(cli::is_right(line, one.said))
            << one.person->name << ", asked '" << line.question << "': " << one.said;
      }
    }
    for (const Twins& other : twins_) {
      if (&other == &one) continue;
      EXPECT_FALSE(cli::is_right({{}, {}, other.person->name}, one.said)) << one.said;
      EXPECT_FALSE(cli::is_right(other.person->roll_call[1], one.said)) << one.said;
    }
  }

  void steps(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) must(executor_.step());
  }

  void cancel_step() {
    const auto layer = static_cast<std::uint32_t>(random_() % 5);
    Budget budget;
    budget.between_jobs = [layer](const JobView& view) {
      return view.layer >= layer ? Verdict::kCancel : Verdict::kGoOn;
    };
    must(executor_.step(budget));
  }

  // The fork lives another life; the parent knows nothing of it.
  void fork(Twins& one) {
    Conversation other = must(one.here.fork());
    const Line& line = some_line(*one.person);
    Conversation alone = must(one.alone.fork());
    EXPECT_EQ(test::ask(other, line.question), test::ask(alone, line.question));
    if (random_() % 2 == 0) return;
    // It takes its parent's place.
    one.turns.push_back(other.length());
    one.here = std::move(other);
    one.alone = std::move(alone);
  }

  void rewind(Twins& one) {
    const std::size_t keep = 1 + random_() % one.turns.size();
    one.turns.resize(keep);
    must(one.here.rewind(one.turns.back()));
    must(one.alone.rewind(one.turns.back()));
  }

  void save_and_load(Twins& one) {
    const std::vector<std::byte> bytes = must(one.here.save_bytes());
    if (random_() % 2 == 0) {
      one.here = must(executor_.conversation());
    } else {
      must(one.here.prompt("anything", {.add_begin = AddBegin::kNo}));
      must(one.here.wait());
    }
    const auto loaded = one.here.load(bytes);
    if (loaded) return;
    // Nobody is put away for a load.
    EXPECT_EQ(loaded.error().code(), Outcome::kNoSpace) << loaded.error().message();
    for (Twins& other : twins_) {
      if (&other == &one) continue;
      settle(other);
      must(other.here.spill());
    }
    must(one.here.load(bytes));
  }

  // To a tier, or its cells given up, which cannot be where tokens were taken out.
  void put_away(Twins& one) {
    if (random_() % 2 == 0) return must(one.here.spill());
    const Status dropped = one.here.drop();
    EXPECT_TRUE(dropped || dropped.error().code() == Outcome::kUnsupported) << one.person->name;
  }

  // A turn in the middle is taken out and the rest moves left, here and alone.
  void forget_a_turn(Twins& one) {
    if (one.turns.size() < 3) return;
    const std::size_t turn = random_() % (one.turns.size() - 2);
    const std::uint64_t first = one.turns[turn];
    const std::uint64_t count = one.turns[turn + 1] - first;
    must(one.here.shift_left(first, count));
    must(one.alone.shift_left(first, count));
    one.turns.erase(one.turns.begin() + static_cast<std::ptrdiff_t>(turn) + 1);
    for (std::size_t i = turn + 1; i < one.turns.size(); ++i) one.turns[i] -= count;
  }

  // In the middle of an answer, or of the question.
  void ask_and_cancel(Twins& one) {
    const std::uint64_t length = one.here.length();
    must(cli::prompt_question(one.here, some_line(*one.person).question));
    Generation answer = must(cli::start_answer(one.here));
    steps(random_() % 6);
    must(one.here.cancel());
    must(one.here.rewind(length));
  }

  std::mt19937_64 random_;
  Executor executor_;
  std::vector<Twins> twins_;
  int answers_ = 0;
};

TEST(VillageStorm, EachOfTwentyFourKnowsItsOwnFactsAndIsAsAloneWhateverIsDone) {
  Storm storm(7);
  for (int act = 0; act < kActs; ++act) storm.act();
  storm.end();
  EXPECT_GT(storm.answers(), 100);
}

}  // namespace
}  // namespace kvasir
