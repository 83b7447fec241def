// Eight threads, each with a conversation of its own, over one executor whose worker computes for all of them
// together. Each hears what it would hear alone.

#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

namespace {

std::string told(kvasir::Executor& executor, std::uint64_t seed) {
  kvasir::Conversation talk = check(executor.conversation({.seed = seed}));
  check(talk.prompt("Traveller " + std::to_string(seed) + " came to the inn and said:"));
  return check(check(talk.generate({.max_tokens = 32})).rest()).text;
}

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model));
  check(executor.start());
  std::vector<std::string> stories(8);
  std::vector<std::thread> threads;
  threads.reserve(stories.size());
  for (std::size_t i = 0; i < stories.size(); ++i)
    threads.emplace_back([&, i] { stories[i] = told(executor, i); });
  for (std::thread& thread : threads) thread.join();
  check(executor.stop());

  std::size_t as_alone = 0;
  for (std::size_t i = 0; i < stories.size(); ++i) {
    std::cout << stories[i] << "\n";
    kvasir::Executor quiet = check(kvasir::Executor::create(model));
    as_alone += told(quiet, i) == stories[i] ? 1 : 0;
  }
  const kvasir::Metrics metrics = executor.metrics();
  std::cout << metrics.prompted + metrics.generated << " tokens in " << metrics.passes << " passes; "
            << as_alone << " of 8 stories are as alone\n";
}
