// How long it takes to cancel while a long prompt is computed: by Conversation::cancel() from another thread,
// and by a step's own callback, from when it answers kCancel until the step returns.
//
//   cancel MODEL.gguf [PROMPT_TOKENS]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "kvasir/executor.h"
#include "measuring.h"

namespace {

using kvasir::bench::Clock;
using kvasir::bench::Milliseconds;
using kvasir::bench::must;
using kvasir::bench::random_tokens;

constexpr int kTries = 50;
constexpr int kLatest = 400;  // milliseconds of computing before it is cancelled

struct Times {
  std::vector<double> call;  // of cancel()
  std::vector<double> step;  // until the step under way has returned
};

// While a thread steps, this one cancels.
void cancel_from_outside(kvasir::Executor& executor, kvasir::Conversation& talk, int after_ms, Times& times) {
  std::atomic<Clock::time_point> returned{};
  std::thread stepper([&] {
    static_cast<void>(executor.step());  // cancelled, or done before
    returned = Clock::now();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
  const auto begun = Clock::now();
  must(talk.cancel());
  times.call.push_back(Milliseconds(Clock::now() - begun).count());
  stepper.join();
  times.step.push_back(std::max(0.0, Milliseconds(returned.load() - begun).count()));
}

void cancel_from_callback(kvasir::Executor& executor, kvasir::Conversation& talk, int after_ms,
                          std::vector<double>& times) {
  const auto until = Clock::now() + std::chrono::milliseconds(after_ms);
  Clock::time_point asked = until;
  kvasir::Budget budget;
  budget.between_jobs = [&](const kvasir::JobView&) {
    if (Clock::now() < until) return kvasir::Verdict::kGoOn;
    asked = Clock::now();
    return kvasir::Verdict::kCancel;
  };
  static_cast<void>(executor.step(budget));  // cancelled, or done before
  times.push_back(Milliseconds(Clock::now() - asked).count());
  must(talk.cancel());
}

void print(const char* what, std::vector<double> times) {
  std::ranges::sort(times);
  std::printf("%s: median %.2f ms, longest %.2f ms of %zu\n", what, times[times.size() / 2], times.back(),
              times.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: cancel MODEL.gguf [PROMPT_TOKENS]\n");
    return 2;
  }
  const kvasir::Model model = must(kvasir::Model::load(arguments[1]));
  const std::uint64_t prompt = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 4000;
  kvasir::Executor executor =
      must(kvasir::Executor::create(model, {.pool = prompt + 512, .share_prefixes = false}));
  const auto tokens = random_tokens(prompt, model.vocabulary(), 1);
  Times outside;
  std::vector<double> callback;
  for (int i = 0; i < kTries; ++i) {
    const int after_ms = 1 + i * kLatest / kTries;
    kvasir::Conversation talk = must(executor.conversation());
    must(talk.prompt(tokens));
    cancel_from_outside(executor, talk, after_ms, outside);
    must(talk.rewind(0));
    must(talk.prompt(tokens));
    cancel_from_callback(executor, talk, after_ms, callback);
  }
  print("cancel() from another thread", outside.call);
  print("the step that was under way, from there on", outside.step);
  print("a step whose callback answers kCancel, from there on", callback);
  return 0;
}
