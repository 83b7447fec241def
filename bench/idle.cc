// What twenty idle conversations that fill the cache cost one short conversation: the time of its tokens
// beside them and alone, in two executors over one model, in alternation.
//
//   idle MODEL.gguf [TOKENS_OF_EACH]

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kvasir/executor.h"
#include "measuring.h"

namespace {

using kvasir::bench::Clock;
using kvasir::bench::compute;
using kvasir::bench::Milliseconds;
using kvasir::bench::must;
using kvasir::bench::random_tokens;

constexpr std::uint64_t kIdle = 20;
constexpr std::uint64_t kBegin = 64;  // tokens of the short conversation's prompt
constexpr int kRounds = 30;
constexpr int kTokens = 16;  // of a round

// Milliseconds a token.
double round_of(kvasir::Conversation& talk) {
  const auto begun = Clock::now();
  for (int i = 0; i < kTokens; ++i) compute(talk, {i + 1});
  return Milliseconds(Clock::now() - begun).count() / kTokens;
}

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers[numbers.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: idle MODEL.gguf [TOKENS_OF_EACH]\n");
    return 2;
  }
  const kvasir::Model model = must(kvasir::Model::load(arguments[1]));
  const std::uint64_t each = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 512;
  const std::uint64_t own = kBegin + std::uint64_t{kRounds} * kTokens;
  const kvasir::ExecutorOptions options{.pool = kIdle * each + own, .share_prefixes = false};
  kvasir::Executor empty = must(kvasir::Executor::create(model, options));
  kvasir::Executor full = must(kvasir::Executor::create(model, options));
  std::vector<kvasir::Conversation> idle;
  for (std::uint64_t i = 0; i < kIdle; ++i) {
    idle.push_back(must(full.conversation()));
    compute(idle.back(), random_tokens(each, model.vocabulary(), i + 1));
  }
  kvasir::Conversation alone = must(empty.conversation());
  kvasir::Conversation beside = must(full.conversation());
  for (kvasir::Conversation* talk : {&alone, &beside})
    compute(*talk, random_tokens(kBegin, model.vocabulary(), 0));
  std::vector<double> times_alone;
  std::vector<double> times_beside;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    times_alone.push_back(round_of(alone));
    times_beside.push_back(round_of(beside));
    ratios.push_back(times_beside.back() / times_alone.back());
  }
  const kvasir::CacheInfo cache = full.cache();
  std::printf("alone %.3f ms a token, least %.3f\n", median(times_alone),
              *std::ranges::min_element(times_alone));
  std::printf("beside %llu idle ones that hold %llu of %llu tokens %.3f ms, least %.3f\n",
              static_cast<unsigned long long>(kIdle), static_cast<unsigned long long>(cache.held),
              static_cast<unsigned long long>(cache.pool), median(times_beside),
              *std::ranges::min_element(times_beside));
  std::printf("median of %d ratios %.4f\n", kRounds, median(ratios));
  return 0;
}
