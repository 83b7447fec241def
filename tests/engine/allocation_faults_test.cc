// P1 and P3 without memory: every single allocation of a call fails once, and from some one on all fail. The
// answer is an Error, nothing has changed, and afterwards everything works.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/texts.h"
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

struct Fault {
  const char* model;
  Lasting lasting;
};

class AllocationFaults : public testing::TestWithParam<Fault> {
 protected:
  // Two conversations that hold something; the first has a queue of more than two passes.
  [[nodiscard]] EngineHost village() const {
    EngineHost host = kvasir::test::make_engine(model_, {.pool = 512, .pass_tokens = 16, .logit_rows = 16});
    const ConversationId first = *host->open();
    const ConversationId second = *host->open();
    if (model_.model->network().encoder) {
      for (const ConversationId id : {first, second}) EXPECT_TRUE(host->encode(id, source()));
    }
    prompt(host, first, 10, LogitsWanted::kEvery);
    prompt(host, second, 7, LogitsWanted::kLast);
    finish(host);
    prompt(host, first, 40, LogitsWanted::kEvery);
    prompt(host, second, 3, LogitsWanted::kLast);
    return host;
  }
  [[nodiscard]] std::vector<Token> source() const {
    return kvasir::test::random_tokens(model_.vocabulary(), 21, 3);
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
        const AllocationFault fault(n, GetParam().lasting);
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

  LoadedModel model_ = kvasir::test::load_file(
      kvasir::test::data_path(std::string("models/") + GetParam().model + "/model.gguf"));
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

TEST_P(AllocationFaults, OfARewind) {
  at_every_allocation([](const EngineHost& host) {
    // Of a fork, so that it can be asked for again.
    const auto fork = host->fork(ConversationId{1});
    if (!fork) return code_of(fork);
    const Status rewound = host->rewind(*fork, 4);
    const Status closed = host->close(*fork);
    return rewound ? closed : rewound;
  });
}

TEST_P(AllocationFaults, OfADigest) {
  const EngineHost host = village();
  const std::uint64_t expected = *host->digest();
  for (std::uint64_t n = 0;; ++n) {
    const AllocationFault fault(n, GetParam().lasting);
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
    const AllocationFault fault(n, GetParam().lasting);
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
      const AllocationFault fault(n, GetParam().lasting);
      ASSERT_FALSE(call());
    }
  }
  EXPECT_EQ(*host->digest(), before);
}

std::vector<Fault> every_fault() {
  std::vector<Fault> all;
  for (const char* const model :
       {"llama-moe", "gemma3", "gpt-oss", "deepseek2-v2", "mamba", "rwkv7", "jamba", "t5"}) {
    all.push_back({model, Lasting::kOnce});
    all.push_back({model, Lasting::kFromThenOn});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, AllocationFaults, testing::ValuesIn(every_fault()),
                         [](const auto& instance) {
                           std::string name = instance.param.model;
                           std::ranges::replace(name, '-', '_');
                           return name + (instance.param.lasting == Lasting::kOnce ? "_Once" : "_FromThenOn");
                         });

class SourceFaults : public testing::TestWithParam<Lasting> {};

TEST_P(SourceFaults, OfReadingOneLeaveTheConversationWithoutIt) {
  const LoadedModel model = kvasir::test::load_file(kvasir::test::data_path("models/t5/model.gguf"));
  const auto source = kvasir::test::random_tokens(model.vocabulary(), 40, 3);
  const EngineHost calm = kvasir::test::make_engine(model, {.pool = 512, .pass_tokens = 16});
  ASSERT_TRUE(calm->encode(*calm->open(), source));
  const EngineHost host = kvasir::test::make_engine(model, {.pool = 512, .pass_tokens = 16});
  const ConversationId id = *host->open();
  const std::uint64_t before = *host->digest();
  std::uint64_t n = 0;
  for (bool fired = true; fired; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const AllocationFault fault(n, GetParam());
    const Status read = host->encode(id, source);
    fired = fault.fired();
    if (!fired) {
      ASSERT_TRUE(read) << read.error().message();
      break;
    }
    ASSERT_FALSE(read);
    ASSERT_EQ(read.error().code(), Outcome::kOutOfMemory) << read.error().message();
  }
  EXPECT_GE(n, 10U);
  EXPECT_NE(*host->digest(), before);
  EXPECT_EQ(*host->digest(), *calm->digest());
}

TEST_P(SourceFaults, OfTextsAsVectorsAreErrors) {
  const LoadedModel model = kvasir::test::load_file(kvasir::test::data_path("models/bert/model.gguf"));
  const auto pool = parallel::ThreadPool::create(1).value();
  const std::vector<Token> first = kvasir::test::random_tokens(model.vocabulary(), 20, 1);
  const std::vector<Token> second = kvasir::test::random_tokens(model.vocabulary(), 33, 2);
  const std::vector<std::span<const Token>> texts = {first, second};
  const auto expected = embed(*model.model, *pool, texts, {.pass_tokens = 16});
  ASSERT_TRUE(expected) << expected.error().message();
  for (std::uint64_t n = 0;; ++n) {
    const AllocationFault fault(n, GetParam());
    const auto vectors = embed(*model.model, *pool, texts, {.pass_tokens = 16});
    if (!fault.fired()) {
      EXPECT_GE(n, 10U);
      ASSERT_TRUE(vectors);
      EXPECT_EQ(*vectors, *expected);
      return;
    }
    ASSERT_FALSE(vectors) << "allocation " << n;
    ASSERT_EQ(vectors.error().code(), Outcome::kOutOfMemory) << vectors.error().message();
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, SourceFaults, testing::Values(Lasting::kOnce, Lasting::kFromThenOn),
                         [](const auto& instance) {
                           return instance.param == Lasting::kOnce ? "Once" : "FromThenOn";
                         });

}  // namespace
}  // namespace kvasir::engine
