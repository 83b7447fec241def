// The sets of instructions that this processor has, one after the other.
#pragma once

#include <cstdint>

#include "hwy/targets.h"

namespace kvasir::test {

#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0

// There is one, and nothing chooses.
template <class Visit>
void with_each_instruction_set(const Visit& visit) {
  visit(std::int64_t{HWY_TARGETS});
}

#else

// Uses one set of instructions while it lives.
class OneInstructionSet {
 public:
  explicit OneInstructionSet(std::int64_t target) { use(target); }
  ~OneInstructionSet() { use(0); }
  OneInstructionSet(const OneInstructionSet&) = delete;
  OneInstructionSet& operator=(const OneInstructionSet&) = delete;

 private:
  static void use(std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
  }
};

// Calls visit(target) with each of them in use, the portable one included.
template <class Visit>
void with_each_instruction_set(const Visit& visit) {
  const std::int64_t supported = hwy::SupportedTargets();
  for (std::int64_t target = 1; target != 0 && target <= supported; target <<= 1) {
    if ((supported & target) == 0) continue;
    const OneInstructionSet only(target);
    visit(target);
  }
}

#endif

}  // namespace kvasir::test
