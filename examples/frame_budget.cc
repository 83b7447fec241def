// A game: sixty frames a second, of which talk may take four milliseconds, while a story of 4,000 tokens (or
// as many as the model's context holds) is being read in and three villagers chat. A step that is not
// finished stays open and goes on in the next frame.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kLongStory = 4000;
constexpr std::uint64_t kPool = 8192;
constexpr auto kBudget = 4ms;
constexpr auto kFrame = std::chrono::nanoseconds(1s) / 60;

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model, {.pool = kPool}));
  const std::uint64_t whole_story = std::min(kLongStory, executor.context());
  kvasir::Conversation story = check(executor.conversation());
  std::vector<kvasir::Token> tokens;
  const std::vector<kvasir::Token> line =
      check(model.tokenize("The rain fell on the roofs of the village. "));
  while (tokens.size() < whole_story) tokens.push_back(line[tokens.size() % line.size()]);
  check(story.prompt(tokens));
  std::vector<kvasir::Conversation> villagers;
  std::vector<kvasir::Generation> chats;
  for (std::uint64_t i = 0; i < 3; ++i) {
    villagers.push_back(check(executor.conversation({.priority = 1, .seed = i})));
    check(villagers.back().prompt("Good morning, neighbour!"));
    chats.push_back(check(villagers.back().generate({.max_tokens = 20, .ignore_end = true})));
  }

  std::uint64_t words = 0;
  std::uint64_t frames = 0;
  steady_clock::duration longest = 0ns;
  auto next_frame = steady_clock::now();
  while (story.length() < whole_story || words < 60) {
    const auto start = steady_clock::now();
    check(executor.step({.time = kBudget}));
    longest = std::max(longest, steady_clock::now() - start);
    for (kvasir::Generation& chat : chats) {
      while (const auto piece = check(chat.poll())) words += piece->tokens.size();
    }
    ++frames;
    next_frame += kFrame;
    std::this_thread::sleep_until(next_frame);
  }
  std::cout << story.length() << " tokens read and " << words << " said\n";
  std::cout << frames << " frames, the longest step took "
            << std::chrono::duration<double, std::milli>(longest).count() << " ms\n";
}
