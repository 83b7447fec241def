#include "api/histories.h"

#include <stdexcept>
#include <utility>

#include "api/future.h"

namespace kvasir::test {

namespace {

std::vector<History> of_prompts() {
  return {
      {"prompted", [](Executor&, Conversation& talk) { say(talk, 70, 1); }},
      {"one token", [](Executor&, Conversation& talk) { say(talk, 1, 2); }},
      {"queued", [](Executor&, Conversation& talk) { must(talk.prompt(some_tokens(40, 3))); }},
      {"in the middle of its queue",
       [](Executor& executor, Conversation& talk) {
         must(talk.prompt(some_tokens(90, 4)));
         must(executor.step({.tokens = 32}));
         must(talk.prompt(some_tokens(5, 5)));
       }},
  };
}

std::vector<History> of_edits() {
  return {
      {"rewound",
       [](Executor&, Conversation& talk) {
         say(talk, 60, 6);
         must(talk.rewind(33));
       }},
      {"with a hole",
       [](Executor&, Conversation& talk) {
         say(talk, 60, 7);
         must(talk.remove(5, 11));
         say(talk, 9, 8);
       }},
      {"shifted again and again",
       [](Executor&, Conversation& talk) {
         say(talk, 60, 9);
         for (std::uint64_t i = 0; i < 4; ++i) {
           must(talk.shift_left(4, 7));
           say(talk, 6, 10 + i);
         }
       }},
      {"divided",
       [](Executor&, Conversation& talk) {
         say(talk, 48, 15);
         const EditOperation half{EditOperation::Kind::kDivide, 0, 48, 2};
         must(talk.edit({&half, 1}));
         say(talk, 10, 16);
       }},
      {"forked",
       [](Executor&, Conversation& talk) {
         say(talk, 40, 23);
         Conversation fork = must(talk.fork());
         say(fork, 30, 24);
         say(talk, 21, 25);
       }},
      {"compacted",
       [](Executor& executor, Conversation& talk) {
         Conversation other = must(executor.conversation());
         say(other, 500, 26);
         Conversation rest = must(executor.conversation());
         say(rest, executor.cache().free, 28);
         for (std::uint64_t i = 16; i-- > 0;) must(other.remove(6 * i, 3));
         say(talk, 40, 27);
         other.close();
         rest.close();
         if (must(executor.compact()) == 0) throw std::runtime_error("nothing was compacted");
       }},
  };
}

std::vector<History> of_others() {
  return {
      {"with vectors",
       [](Executor&, Conversation& talk) {
         const std::vector<Token> tokens = some_tokens(20, 17);
         const std::vector<float> rows = test::embeddings_of(tokens);
         must(talk.prompt(Embeddings{rows}));
         must(talk.wait());
         say(talk, 20, 18);
         must(talk.prompt(Embeddings{rows}));
       }},
      {"with many rows",
       [](Executor&, Conversation& talk) {
         must(talk.prompt(some_tokens(30, 19), {.every_logit = true}));
         must(talk.wait());
         must(talk.prompt(some_tokens(10, 20), {.every_logit = true}));
       }},
      {"in a suspended step",
       [](Executor& executor, Conversation& talk) {
         say(talk, 20, 21);
         must(talk.prompt(some_tokens(20, 22)));
         Budget budget;
         budget.between_jobs = [](const JobView&) { return Verdict::kSuspend; };
         must(executor.step(budget));
       }},
  };
}

}  // namespace

const std::vector<History>& histories() {
  static const std::vector<History> all = [] {
    std::vector<History> parts = of_prompts();
    for (const auto& more : {of_edits(), of_others()}) parts.insert(parts.end(), more.begin(), more.end());
    return parts;
  }();
  return all;
}

std::vector<Conversation> scatter(Executor& executor) {
  std::vector<Conversation> stay;
  std::vector<Conversation> go;
  for (std::uint64_t i = 0; i < 12; ++i) {
    Conversation other = must(executor.conversation());
    must(other.prompt(some_tokens(9 + i % 5, 100 + i)));
    must(other.wait());
    (i % 2 == 0 ? stay : go).push_back(std::move(other));
  }
  return stay;
}

ExecutorOptions cache_of(CacheType keys, CacheType values, std::uint32_t page_cells) {
  ExecutorOptions options = options_of(1024, 64);
  options.keys = keys;
  options.values = values;
  options.page_cells = page_cells;
  return options;
}

std::string round_trip(const History& history, const ExecutorOptions& from, const ExecutorOptions& to) {
  const auto differs = [&](const std::string& what) {
    return std::string(history.name) + ", pages of " + std::to_string(from.page_cells) + " to " +
           std::to_string(to.page_cells) + ": " + what;
  };
  const auto undisturbed = [&] {
    Executor executor = make_executor(from);
    Conversation talk = must(executor.conversation({.seed = 5}));
    history.make(executor, talk);
    return future_of(talk);
  }();
  std::vector<std::byte> archive;
  std::uint64_t length = 0;
  std::uint64_t queued = 0;
  {
    Executor executor = make_executor(from);
    Conversation talk = must(executor.conversation({.seed = 5}));
    history.make(executor, talk);
    archive = must(talk.save_bytes());
    length = talk.length();
    queued = talk.info().queued;
    must(executor.abandon_step());
    if (future_of(talk) != undisturbed) return differs("the save has disturbed it");
  }
  Executor executor = make_executor(to);
  const std::vector<Conversation> others = scatter(executor);
  Conversation talk = must(executor.conversation());
  const std::uint64_t computed = executor.metrics().prompted;
  const ArchiveReport report = must(talk.load(archive));
  if (report.tokens_recomputed != 0) return differs("tokens are computed again");
  if (report.bytes != archive.size()) return differs("bytes are left");
  if (talk.length() != length || talk.info().queued != queued) return differs("another length");
  if (talk.seed() != 5) return differs("another seed");
  // What comes next are its queue, perhaps its last token for want of logits, and what it goes on with.
  const bool refreshed = queued == 0 && talk.state() == ConversationState::kNeedsPrompt;
  if (future_of(talk) != undisturbed) return differs("it goes on otherwise");
  if (executor.metrics().prompted - computed != queued + kGoesOn + (refreshed ? 1 : 0))
    return differs("more was computed than came next");
  return "";
}

}  // namespace kvasir::test
