// Calls of a page store to which memory is refused.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "kvasir/result.h"
#include "small_store.h"
#include "support/allocations.h"

namespace kvasir::pages::test {

// Answers its outcome; what it opens it ends.
template <class Scene>
using CallOf = std::function<Outcome(Scene&)>;

template <class T>
Outcome outcome_of(const Result<T>& result) {
  return result ? Outcome::kDone : result.error().code();
}

// Refuses the n-th allocation of the call, for every n until it succeeds: it answers kOutOfMemory, nothing
// has changed, and it works afterwards.
template <class Scene>
void expect_unharmed(const CallOf<Scene>& call, Outcome in_the_end = Outcome::kDone) {
  for (std::uint64_t n = 0;; ++n) {
    Scene scene;
    const auto before = state_of(*scene.store, scene.tables);
    bool fired = false;
    Outcome outcome = Outcome::kDone;
    {
      const kvasir::test::AllocationFault fault(n);
      outcome = call(scene);
      fired = fault.fired();
    }
    expect_sound(*scene.store);
    if (!fired) {
      EXPECT_EQ(outcome, in_the_end);
      EXPECT_GT(n, 0) << "the call wants no memory, so this proves nothing";
      return;
    }
    ASSERT_EQ(outcome, Outcome::kOutOfMemory) << "allocation " << n;
    ASSERT_EQ(state_of(*scene.store, scene.tables), before) << "allocation " << n;
    ASSERT_EQ(call(scene), in_the_end) << "after allocation " << n;
    expect_sound(*scene.store);
  }
}

}  // namespace kvasir::pages::test
