// Two hundred questions over one passage. The passage is computed once; each question is a fork of it, and
// the answer is which of two tokens is more likely next.

#include <iostream>
#include <string>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

namespace {

constexpr int kQuestions = 200;
constexpr std::uint64_t kPool = 8192;  // tokens, for all questions at once

kvasir::Token first_token(const kvasir::Model& model, const char* word) {
  return check(model.tokenize(word, {.add_begin = kvasir::AddBegin::kNo})).front();
}

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  const auto yes = static_cast<std::size_t>(first_token(model, " yes"));
  const auto no = static_cast<std::size_t>(first_token(model, " no"));
  kvasir::Executor executor = check(kvasir::Executor::create(model, {.pool = kPool}));
  kvasir::Conversation passage = check(executor.conversation());
  std::string text;
  for (int line = 0; line < 20; ++line) text += "The harbour master counts ships in the morning fog. ";
  check(passage.prompt(text));
  check(passage.wait());

  std::vector<kvasir::Conversation> questions;
  std::uint64_t asked = 0;
  for (int i = 0; i < kQuestions; ++i) {
    questions.push_back(check(passage.fork()));
    asked += check(questions.back().prompt("Does he count ship " + std::to_string(i) + "? Answer:"));
  }
  const kvasir::StepReport report = check(executor.run_until_idle());
  if (report.outcome != kvasir::Outcome::kIdle) {
    std::cerr << "the questions are not answered: " << report.message << "\n";
    return 1;
  }
  int yeses = 0;
  for (const kvasir::Conversation& question : questions) {
    const auto row = check(question.logits());
    yeses += (*row)[yes] > (*row)[no] ? 1 : 0;
  }
  std::cout << yeses << " of " << kQuestions << " answers are yes\n";
  const std::uint64_t prompted = executor.metrics().prompted;
  std::cout << "computed " << prompted << " tokens: the passage and " << prompted - passage.length()
            << " of questions, which have " << asked << "\n";
}
