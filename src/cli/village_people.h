// Who lives in the demonstration's village: what they are told of themselves, what they are asked, and what
// right answers contain.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvasir::cli {

// A question, and the parts that a right answer contains, with bars between.
struct Line {
  std::string_view kind;
  std::string_view question;
  std::string_view facts;
};

struct Person {
  std::uint32_t seed = 0;  // that tools/train/people.py drew them with
  std::string_view name;
  std::string_view trade;
  std::string_view word;   // on which the secret is told
  std::string_view block;  // tells the model who it is
  std::array<Line, 12> talk;
  std::array<Line, 2> roll_call;
};

// Twenty-four of them.
[[nodiscard]] std::span<const Person> village_people();

}  // namespace kvasir::cli
