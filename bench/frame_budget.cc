// Steps with a time budget while eight conversations generate and a long prompt arrives: how many return in
// time, how long the eight wait for their tokens, and what the budget costs in tokens per second.
//
//   frame_budget MODEL.gguf [PROMPT_TOKENS]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/executor.h"
#include "measuring.h"

namespace {

using kvasir::bench::Clock;
using kvasir::bench::Milliseconds;
using kvasir::bench::must;
using kvasir::bench::random_tokens;

constexpr std::size_t kTalkers = 8;
constexpr std::uint64_t kBegun = 32;  // tokens of each talker's own prompt

struct Figures {
  double budget_ms = 0;  // 0: none
  std::vector<double> steps_ms;
  double longest_gap_ms = 0;  // between two tokens of one talker, while the prompt was under way
  double tokens_per_second = 0;
  std::uint64_t largest_piece = 0;  // of the prompt in one step
};

// One talker and when it last spoke.
struct Talker {
  kvasir::Conversation conversation;
  kvasir::Generation generation;
  Clock::time_point spoke;
};

class Run {
 public:
  Run(const kvasir::Model& model, std::uint64_t prompt, std::optional<double> budget_ms)
      : model_(model), prompt_(prompt), budget_ms_(budget_ms) {}

  Figures run() {
    kvasir::Executor executor = must(kvasir::Executor::create(
        model_, {.pool = prompt_ + kTalkers * (kBegun + 4096), .share_prefixes = false}));
    std::vector<Talker> talkers;
    for (std::size_t i = 0; i < kTalkers; ++i) {
      auto talk = must(executor.conversation());
      must(talk.prompt(random_tokens(kBegun, model_.vocabulary(), i + 1)));
      auto generation = must(talk.generate({.max_tokens = 1 << 20,
                                            .sampler = kvasir::Sampler::greedy(),
                                            .ignore_end = true,
                                            .reserve = false}));
      talkers.push_back({std::move(talk), std::move(generation), {}});
    }
    // The costs become known, and all talk.
    for (int i = 0; i < 12; ++i) must(executor.step());
    auto newcomer = must(executor.conversation());
    must(newcomer.prompt(random_tokens(prompt_, model_.vocabulary(), 99)));
    const auto start = Clock::now();
    for (Talker& talker : talkers) talker.spoke = start;
    std::uint64_t tokens = 0;
    while (newcomer.info().queued > 0) {
      const auto begun = Clock::now();
      kvasir::Budget budget;
      if (budget_ms_) budget.time = std::chrono::nanoseconds(static_cast<std::int64_t>(*budget_ms_ * 1e6));
      const kvasir::StepReport report = must(executor.step(budget));
      figures_.steps_ms.push_back(Milliseconds(Clock::now() - begun).count());
      tokens += report.tokens;
      for (const auto& about : report.conversations) {
        if (about.id == newcomer.id())
          figures_.largest_piece = std::max(figures_.largest_piece, about.tokens);
      }
      listen(talkers);
    }
    figures_.budget_ms = budget_ms_.value_or(0);
    figures_.tokens_per_second =
        static_cast<double>(tokens) / std::chrono::duration<double>(Clock::now() - start).count();
    return figures_;
  }

 private:
  void listen(std::vector<Talker>& talkers) {
    for (Talker& talker : talkers) {
      bool any = false;
      while (must(talker.generation.poll())) any = true;
      if (!any) continue;
      const auto now = Clock::now();
      figures_.longest_gap_ms = std::max(figures_.longest_gap_ms, Milliseconds(now - talker.spoke).count());
      talker.spoke = now;
    }
  }

  const kvasir::Model& model_;
  std::uint64_t prompt_;
  std::optional<double> budget_ms_;
  Figures figures_;
};

double within(const Figures& figures, double limit_ms) {
  const auto in_time = std::ranges::count_if(figures.steps_ms, [&](double ms) { return ms <= limit_ms; });
  return 100.0 * static_cast<double>(in_time) / static_cast<double>(figures.steps_ms.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: frame_budget MODEL.gguf [PROMPT_TOKENS]\n");
    return 2;
  }
  const kvasir::Model model = must(kvasir::Model::load(arguments[1]));
  const std::uint64_t prompt = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 4000;
  const Figures unlimited = Run(model, prompt, {}).run();
  std::printf("no budget: %.1f tokens/s, longest gap %.1f ms\n", unlimited.tokens_per_second,
              unlimited.longest_gap_ms);
  for (const double budget : {8.0, 16.0, 33.0}) {
    Figures figures = Run(model, prompt, budget).run();
    std::ranges::sort(figures.steps_ms);
    std::printf(
        "budget %4.0f ms: %5.2f %% of %zu steps within budget + 2 ms, longest %.1f ms; %.1f tokens/s, "
        "%.0f %% of unlimited; longest gap %.1f ms, largest piece %llu tokens\n",
        budget, within(figures, budget + 2), figures.steps_ms.size(), figures.steps_ms.back(),
        figures.tokens_per_second, 100 * figures.tokens_per_second / unlimited.tokens_per_second,
        figures.longest_gap_ms, static_cast<unsigned long long>(figures.largest_piece));
  }
  return 0;
}
