// Beam search: the most likely continuations are kept, each a fork of the one it goes on from. Forks copy
// nothing, and a conversation that is dropped gives back only what no other one has.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

namespace {

constexpr std::size_t kBeams = 4;
constexpr int kLength = 12;

struct Beam {
  kvasir::Conversation story;
  std::vector<kvasir::Token> tokens;
  double score = 0;  // log-probability
};

struct Candidate {
  std::size_t beam = 0;
  kvasir::Token token = 0;
  double score = 0;
};

double log_sum(const std::vector<float>& row) {
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - most);
  return most + std::log(sum);
}

std::vector<Candidate> best_candidates(const std::vector<Beam>& beams) {
  std::vector<Candidate> all;
  for (std::size_t beam = 0; beam < beams.size(); ++beam) {
    const auto row = check(beams[beam].story.logits());
    const double sum = log_sum(*row);
    for (std::size_t token = 0; token < row->size(); ++token) {
      all.push_back({beam, static_cast<kvasir::Token>(token), beams[beam].score + (*row)[token] - sum});
    }
  }
  std::ranges::partial_sort(all, all.begin() + kBeams, std::ranges::greater(), &Candidate::score);
  all.resize(kBeams);
  return all;
}

// The log-probability of `tokens` after `prompt`, from one prompt with every row of logits.
double score_again(kvasir::Executor& executor, const char* prompt, std::span<const kvasir::Token> tokens) {
  kvasir::Conversation reader = check(executor.conversation({.salt = 1}));
  check(reader.prompt(prompt));
  check(reader.prompt(tokens, {.every_logit = true}));
  check(reader.wait());
  kvasir::Conversation beginning = check(executor.conversation({.salt = 2}));
  check(beginning.prompt(prompt));
  check(beginning.wait());
  double score = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto row = check(i == 0 ? beginning.logits() : reader.logits(tokens.size() - i));
    score = score + (*row)[static_cast<std::size_t>(tokens[i])] - log_sum(*row);
  }
  return score;
}

}  // namespace

int main(int count, char** arguments) {
  const char* const prompt = "The dragon opened one eye and said";
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model));
  std::vector<Beam> beams;
  beams.push_back({check(executor.conversation()), {}, 0});
  check(beams[0].story.prompt(prompt));
  check(beams[0].story.wait());
  for (int step = 0; step < kLength; ++step) {
    std::vector<Beam> next;
    for (const Candidate& candidate : best_candidates(beams)) {
      Beam beam{check(beams[candidate.beam].story.fork()), beams[candidate.beam].tokens, candidate.score};
      beam.tokens.push_back(candidate.token);
      check(beam.story.prompt(std::span(&candidate.token, 1)));
      next.push_back(std::move(beam));
    }
    beams = std::move(next);
    check(executor.run_until_idle());  // all beams in one pass
  }
  for (const Beam& beam : beams)
    std::cout << beam.score << " " << check(model.detokenize(beam.tokens)) << "\n";
  const bool same = score_again(executor, prompt, beams[0].tokens) == beams[0].score;
  std::cout << "read as one prompt the best has the same score, to the bit: " << (same ? "yes" : "no")
            << "\n";
}
