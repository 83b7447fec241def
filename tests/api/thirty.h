// An executor with thirty conversations in all kinds of states, to be saved and taken back as a whole.
#pragma once

#include <vector>

#include "api/api_run.h"

namespace kvasir::test {

// Thirty conversations that share beginnings, are in the middle of their queues, shifted, and two of them
// forks. Where the executor has tiers, every fourth of them is put away, forks and their parents among them.
[[nodiscard]] inline std::vector<Conversation> thirty_conversations(Executor& executor, bool tiers) {
  std::vector<Conversation> all;
  const std::vector<Token> beginning = some_tokens(64, 1);
  for (std::uint64_t i = 0; i < 28; ++i) {
    all.push_back(must(executor.conversation({.priority = static_cast<int>(i % 3), .seed = i})));
    must(all.back().prompt(i % 2 == 0 ? joined(beginning, some_tokens(5 + i, 10 + i))
                                      : some_tokens(3 * i + 1, 50 + i)));
    if (i % 4 != 3) must(all.back().wait());
  }
  must(all[5].shift_left(2, 3));
  must(all[8].remove(10, 10));
  all.push_back(must(all[8].fork()));
  all.push_back(must(all[10].fork(true)));
  must(all[28].prompt(some_tokens(7, 99)));
  must(executor.step({.tokens = 16}));
  for (std::size_t i = 0; tiers && i < all.size(); i += 4) {
    if (all[i].state() == ConversationState::kReady) must(all[i].spill());
  }
  return all;
}

}  // namespace kvasir::test
