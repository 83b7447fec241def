// A conversation that outgrows its cache: when room gets low, it is asked for a summary, and goes on from
// that.

#include <atomic>
#include <iostream>
#include <string>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

namespace {

const char* const kRules = "You are a ferryman and speak of the river. ";

void say(kvasir::Conversation& talk, const std::string& text) {
  check(talk.prompt(text));
  check(talk.wait());
}

std::string answer(kvasir::Conversation& talk) {
  std::string text = check(check(talk.generate({.max_tokens = 24, .ignore_end = true})).rest()).text;
  check(talk.wait());
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  std::atomic<bool> low = false;
  kvasir::ExecutorOptions options;
  options.pool = 512;
  options.low_space_tokens = 200;
  options.on_low_space = [&](const kvasir::CacheInfo&) { low = true; };
  kvasir::Executor executor = check(kvasir::Executor::create(model, options));
  kvasir::Conversation talk = check(executor.conversation({.seed = 1}));
  say(talk, kRules);
  int summaries = 0;
  std::uint64_t longest = 0;
  for (int turn = 0; turn < 30; ++turn) {
    say(talk, "Traveller: what lies beyond bend " + std::to_string(turn) + "? Ferryman:");
    answer(talk);
    longest = std::max(longest, talk.length());
    if (!low.exchange(false)) continue;
    say(talk, "Sum up what was said:");
    const std::string summary = answer(talk);
    check(talk.clear());
    say(talk, kRules + summary);
    ++summaries;
  }
  std::cout << "30 turns in a cache of " << options.pool.value() << " tokens, summed up " << summaries
            << " times, never longer than " << longest << "\n";
}
