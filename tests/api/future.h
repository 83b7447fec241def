// What a conversation will say, to compare with what another one does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "api/api_run.h"

namespace kvasir::test {

inline constexpr std::size_t kGoesOn = 50;  // tokens

// What a conversation says from here on, greedily, with the logits of each token.
struct Future {
  std::vector<Token> tokens;
  std::vector<std::vector<float>> rows;

  friend bool operator==(const Future&, const Future&) = default;
};

[[nodiscard]] inline Token best_of(const std::vector<float>& row) {
  return static_cast<Token>(std::ranges::max_element(row) - row.begin());
}

[[nodiscard]] inline Future future_of(Conversation& talk, std::size_t count = kGoesOn) {
  Future future;
  must(talk.wait());
  if (talk.state() == ConversationState::kNeedsPrompt) {
    must(talk.refresh());
    must(talk.wait());
  }
  for (std::size_t i = 0; i < count; ++i) {
    future.rows.push_back(logits_of(talk));
    future.tokens.push_back(best_of(future.rows.back()));
    must(talk.prompt(std::span(&future.tokens.back(), 1)));
    must(talk.wait());
  }
  return future;
}

// It as a line of text: its tokens, and a hash of its logits.
[[nodiscard]] inline std::string printed(const Future& future) {
  std::string bytes;
  for (const std::vector<float>& row : future.rows) {
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  }
  std::string line = std::to_string(std::hash<std::string>{}(bytes));
  for (const Token token : future.tokens) line += " " + std::to_string(token);
  return line;
}

// Prompts and computes seeded tokens.
inline void say(Conversation& talk, std::size_t count, std::uint64_t seed) {
  must(talk.prompt(some_tokens(count, seed)));
  must(talk.wait());
}

}  // namespace kvasir::test
