// What one executor's tokens wait for another one over the same model, and thus the same threads: alone,
// beside one that reads prompts of 400 tokens, and while large caches are made.
//
//   neighbours MODEL.gguf [CACHE_TOKENS]

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "kvasir/executor.h"
#include "measuring.h"

namespace {

using kvasir::bench::Clock;
using kvasir::bench::compute;
using kvasir::bench::Milliseconds;
using kvasir::bench::must;
using kvasir::bench::random_tokens;

constexpr std::uint64_t kPrompt = 400;
constexpr int kTokens = 60;

// Tokens one by one while another thread does `beside` again and again.
void measure(kvasir::Conversation& talk, const char* name, const std::function<void()>& beside) {
  std::atomic<bool> stop = false;
  std::atomic<int> times = 0;
  std::thread neighbour([&] {
    for (; beside && !stop; ++times) beside();
  });
  std::vector<double> waited;
  for (int i = 0; i < kTokens; ++i) {
    const auto begun = Clock::now();
    compute(talk, {i + 1});
    waited.push_back(Milliseconds(Clock::now() - begun).count());
  }
  stop = true;
  neighbour.join();
  std::ranges::sort(waited);
  std::printf("%-24s median %7.1f ms a token, longest %7.1f; the other did it %d times\n", name,
              waited[waited.size() / 2], waited.back(), times.load());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: neighbours MODEL.gguf [CACHE_TOKENS]\n");
    return 2;
  }
  const kvasir::Model model = must(kvasir::Model::load(arguments[1]));
  const std::uint64_t large = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 100'000;
  const kvasir::ExecutorOptions options{.pool = 2048, .share_prefixes = false};
  kvasir::Executor own = must(kvasir::Executor::create(model, options));
  kvasir::Executor other = must(kvasir::Executor::create(model, options));
  kvasir::Conversation talk = must(own.conversation());
  compute(talk, random_tokens(8, model.vocabulary(), 0));
  measure(talk, "alone", nullptr);
  measure(talk, "beside prompts", [&] {
    kvasir::Conversation reader = must(other.conversation());
    compute(reader, random_tokens(kPrompt, model.vocabulary(), 1));
  });
  measure(talk, "while caches are made",
          [&] { must(kvasir::Executor::create(model, {.context = 2048, .pool = large})); });
  return 0;
}
