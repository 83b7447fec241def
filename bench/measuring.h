// What the programs that measure have in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

#include "kvasir/executor.h"
#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir::bench {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// The value of a call that must succeed; ends the program with the error's sentence otherwise.
template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// Seeded ids.
inline std::vector<Token> random_tokens(std::uint64_t count, std::uint32_t vocabulary, std::uint64_t seed) {
  std::vector<Token> tokens(count);
  for (Token& token : tokens) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    token = static_cast<Token>((seed >> 33) % vocabulary);
  }
  return tokens;
}

inline void compute(Conversation& talk, const std::vector<Token>& tokens) {
  must(talk.prompt(tokens));
  must(talk.wait());
}

}  // namespace kvasir::bench
