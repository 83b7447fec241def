// The characters of the demonstration on the shipped model.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "village/village_run.h"

namespace kvasir {
namespace {

using cli::Line;
using cli::Person;
using test::must;

// Whether everybody, asked at this moment in a fork, answers the roll call right, and the first one
// tells its secret for the right words alone.
void expect_roll_call(std::vector<Conversation>& talks, std::size_t turn) {
  const std::span<const Person> people = cli::village_people();
  std::vector<Conversation> forks;
  for (Conversation& talk : talks) forks.push_back(must(talk.fork()));
  std::vector<Conversation*> all;
  for (Conversation& fork : forks) all.push_back(&fork);
  for (std::size_t round = 0; round < people.front().roll_call.size(); ++round) {
    std::vector<std::string> questions;
    for (const Person& person : people) questions.emplace_back(person.roll_call[round].question);
    const std::vector<std::string> said = test::ask(all, questions);
    for (std::size_t who = 0; who < people.size(); ++who) {
      EXPECT_TRUE(cli::is_right(people[who].roll_call[round], said[who]))
          << people[who].seed << ' ' << people[who].name << " after " << turn
          << " turns: " << people[who].roll_call[round].question << " -> " << said[who];
    }
  }
  for (const std::string_view kind : {"secret", "wrong words"}) {
    Conversation fork = must(talks.front().fork());
    const Line& line = cli::line_about(people.front(), kind);
    const std::string said = test::ask(fork, line.question);
    EXPECT_TRUE(cli::is_right(line, said))
        << people.front().seed << ", asked for " << kind << " after " << turn << " turns -> " << said;
  }
}

// So that the demonstration, which may close after any of them, never fails for the model's sake.
TEST(Villagers, AnswerEveryLineRightWhateverWasAskedBefore) {
  const std::span<const Person> people = cli::village_people();
  Executor executor = test::roomy_executor(2 * people.size() * 1024);
  std::vector<Conversation> talks;
  for (const Person& person : people) talks.push_back(test::wake(executor, person));
  std::vector<Conversation*> all;
  for (Conversation& talk : talks) all.push_back(&talk);
  expect_roll_call(talks, 0);
  for (std::size_t turn = 0; turn < people.front().talk.size(); ++turn) {
    std::vector<std::string> questions;
    for (const Person& person : people) questions.emplace_back(person.talk[turn].question);
    const std::vector<std::string> said = test::ask(all, questions);
    for (std::size_t who = 0; who < people.size(); ++who) {
      EXPECT_TRUE(cli::is_right(people[who].talk[turn], said[who]))
          << people[who].seed << ' ' << people[who].name << ": " << people[who].talk[turn].question << " -> "
          << said[who];
    }
    expect_roll_call(talks, turn + 1);
  }
}

TEST(Villagers, AreTwentyFourWithNamesAndSecretsOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> secrets;
  for (const Person& person : cli::village_people()) {
    names.insert(person.name);
    secrets.insert(person.roll_call[1].facts);
    EXPECT_NE(person.block.find(person.name), std::string_view::npos);
    EXPECT_NE(person.block.find(person.word), std::string_view::npos);
    EXPECT_NE(person.block.find(person.roll_call[1].facts), std::string_view::npos);
  }
  EXPECT_EQ(names.size(), 24U);
  EXPECT_EQ(secrets.size(), 24U);
}

TEST(Villagers, AreAskedWhatBelongsToWhichAndForTheirSecretsWithWrongWordsToo) {
  for (const Person& person : cli::village_people()) {
    std::set<std::string_view> kinds;
    for (const Line& line : person.talk) {
      kinds.insert(line.kind);
      EXPECT_FALSE(line.facts.empty()) << person.name << ": " << line.question;
    }
    for (const std::string_view kind : {"price", "family", "relative", "secret", "wrong words"})
      EXPECT_TRUE(kinds.contains(kind)) << person.name << " is not asked about " << kind;
  }
}

TEST(RightAnswers, ContainEveryFactAsWholeWords) {
  EXPECT_TRUE(cli::is_right({"", "", "Semm|Reedford"}, "I am Semm, and I live in Reedford."));
  EXPECT_FALSE(cli::is_right({"", "", "Semm|Reedford"}, "I am Semmel, and I live in Reedford."));
  EXPECT_FALSE(cli::is_right({"", "", "Semm|Reedford"}, "I am Semm."));
  EXPECT_TRUE(cli::is_right({"", "", " 6 coin"}, "They cost 6 coins."));
  EXPECT_FALSE(cli::is_right({"", "", " 6 coin"}, "They cost 16 coins."));
}

}  // namespace
}  // namespace kvasir
