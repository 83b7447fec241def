// P1 and P3 without memory: every single allocation of a call fails once, and from some one on all fail. The
// answer is an Error, nothing has changed, and afterwards everything works.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/allocations.h"
#include "support/engine_run.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::engine {
namespace {

using kvasir::test::AllocationFault;
using kvasir::test::EngineHost;
using kvasir::test::LoadedModel;
using Lasting = AllocationFault::Lasting;

// Whether a call took effect, taking no memory to say so.
template <class T>
Status code_of(const Result<T>& result) {
  return result ? Status() : Status(fail(result.error().code(), ""));
}

class AllocationFaults : public testing::TestWithParam<Lasting> {
 protected:
  // Two conversations that hold something; the first has a queue of more than two passes.
  [[nodiscard]] EngineHost village() const {
    EngineHost host = kvasir::test::make_engine(model_, {.pool = 512, .pass_tokens = 16, .logit_rows = 16});
    const ConversationId first = *host->open();
    const ConversationId second = *host->open();
    prompt(host, first, 10, LogitsWanted::kEvery);
    prompt(host, second, 7, LogitsWanted::kLast);
    finish(host);
    prompt(host, first, 40, LogitsWanted::kEvery);
    prompt(host, second, 3, LogitsWanted::kLast);
    return host;
  }
  void prompt(const EngineHost& host, ConversationId id, std::size_t count, LogitsWanted wanted) const {
    ASSERT_TRUE(host->prompt(id, kvasir::test::random_tokens(model_.vocabulary(), count, count), wanted));
  }
  static void finish(const EngineHost& host) {
    while (true) {
      const auto report = host->step({.whole_queue = true});
      ASSERT_TRUE(report) << report.error().message();
      if (report->outcome == Outcome::kIdle) return;
    }
  }

  // `call` on a fresh village, its n-th allocation failing, for every n until it succeeds.
  void at_every_allocation(const std::function<Status(const EngineHost&)>& call) const {
    const EngineHost calm = village();
    ASSERT_TRUE(call(calm));
    finish(calm);
    const std::uint64_t expected = *calm->digest();
    const EngineHost host = village();
    const std::uint64_t before = *host->digest();
    std::uint64_t n = 0;
    for (bool fired = true; fired; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      Status status;
      {
        const AllocationFault fault(n, GetParam());
        status = call(host);
        fired = fault.fired();
      }
      if (!fired) {
        ASSERT_TRUE(status) << status.error().message();
        break;
      }
      ASSERT_FALSE(status) << "a call that lacked memory says it succeeded";
      ASSERT_EQ(status.error().code(), Outcome::kOutOfMemory) << status.error().message();
      ASSERT_FALSE(host->step_open());
      ASSERT_EQ(*host->digest(), before);
    }
    EXPECT_GE(n, 1U);
    finish(host);
    EXPECT_EQ(*host->digest(), expected);
  }

  LoadedModel model_ = kvasir::test::load_file(kvasir::test::data_path("models/llama-moe/model.gguf"));
};

TEST_P(AllocationFaults, OfAStepOfOnePass) {
  at_every_allocation([](const EngineHost& host) { return code_of(host->step()); });
}

TEST_P(AllocationFaults, OfAUnitOfSeveralPasses) {  // E3
  at_every_allocation([](const EngineHost& host) { return code_of(host->step({.whole_queue = true})); });
}

TEST_P(AllocationFaults, OfOpeningAConversation) {
  at_every_allocation([](const EngineHost& host) { return code_of(host->open()); });
}

TEST_P(AllocationFaults, OfAPrompt) {
  const auto tokens = kvasir::test::random_tokens(model_.vocabulary(), 100, 1);
  at_every_allocation([&](const EngineHost& host) {
    return code_of(host->prompt(ConversationId{0}, tokens, LogitsWanted::kEvery));
  });
}

TEST_P(AllocationFaults, OfADigest) {
  const EngineHost host = village();
  const std::uint64_t expected = *host->digest();
  for (std::uint64_t n = 0;; ++n) {
    const AllocationFault fault(n, GetParam());
    const auto digest = host->digest();
    if (digest) {
      EXPECT_FALSE(fault.fired());
      EXPECT_EQ(*digest, expected);
      return;
    }
    ASSERT_TRUE(fault.fired());
    ASSERT_EQ(digest.error().code(), Outcome::kOutOfMemory);
  }
}

TEST_P(AllocationFaults, OfMakingAnEngine) {
  auto pool = parallel::ThreadPool::create(1);
  for (std::uint64_t n = 0;; ++n) {
    const AllocationFault fault(n, GetParam());
    const auto engine = Engine::create(model_.model, **pool, {.pool = 512});
    if (engine) {
      EXPECT_FALSE(fault.fired());
      EXPECT_GT(n, 10U);
      return;
    }
    ASSERT_TRUE(fault.fired()) << engine.error().message();
    ASSERT_EQ(engine.error().code(), Outcome::kOutOfMemory) << engine.error().message();
  }
}

// Refusals that need a message where there is no memory for one.
TEST_P(AllocationFaults, OfARefusalShowAsTheRefusalOrAsOutOfMemory) {
  const EngineHost host = village();
  const std::uint64_t before = *host->digest();
  const std::vector<Token> bad = {0, -5};
  const std::vector<Token> long_prompt(5000, 1);
  const std::vector<std::function<Status()>> calls = {
      [&] { return code_of(host->prompt(ConversationId{0}, bad, LogitsWanted::kLast)); },
      [&] { return code_of(host->prompt(ConversationId{0}, long_prompt, LogitsWanted::kLast)); },
      [&] { return code_of(host->prompt(ConversationId{9}, bad, LogitsWanted::kLast)); },
      [&] { return code_of(host->close(ConversationId{9})); },
  };
  for (const auto& call : calls) {
    for (std::uint64_t n = 0; n < 8; ++n) {
      const AllocationFault fault(n, GetParam());
      ASSERT_FALSE(call());
    }
  }
  EXPECT_EQ(*host->digest(), before);
}

INSTANTIATE_TEST_SUITE_P(Faults, AllocationFaults, testing::Values(Lasting::kOnce, Lasting::kFromThenOn),
                         [](const auto& instance) {
                           return instance.param == Lasting::kOnce ? "Once" : "FromThenOn";
                         });

}  // namespace
}  // namespace kvasir::engine
