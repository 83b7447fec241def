// Classifier-free guidance (Sanchez et al., Stay on Topic, 2023): two conversations for each answer, one that
// was told how to speak and one that was not. Each token is drawn from what the first says beyond the second.

#include <iostream>
#include <string>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

namespace {

std::vector<float> guided(const std::vector<float>& told, const std::vector<float>& plain, float scale) {
  std::vector<float> row(told.size());
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = plain[i] + scale * (told[i] - plain[i]);
  return row;
}

std::vector<kvasir::Token> answer(kvasir::Executor& executor, float scale) {
  kvasir::Conversation told = check(executor.conversation({.seed = 7}));
  kvasir::Conversation plain = check(executor.conversation());
  check(told.prompt("Answer like a pirate. How is the weather?"));
  check(plain.prompt("How is the weather?"));
  std::vector<kvasir::Token> tokens;
  while (tokens.size() < 24) {
    check(executor.run_until_idle());  // both in one pass
    const std::vector<float> row = guided(*check(told.logits()), *check(plain.logits()), scale);
    tokens.push_back(check(told.sample_row(row)));
    check(told.prompt(std::span(&tokens.back(), 1)));
    check(plain.prompt(std::span(&tokens.back(), 1)));
  }
  return tokens;
}

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model));
  for (const float scale : {0.0F, 1.5F, 3.0F})
    std::cout << scale << ": " << check(model.detokenize(answer(executor, scale))) << "\n";
  std::cout << "what is guided more differs: " << (answer(executor, 0) != answer(executor, 3) ? "yes" : "no")
            << "\n";
}
