// A prompt taken through an engine in one manner or another, for tests that compare bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kvasir/token.h"
#include "parallel/thread_pool.h"
#include "support/tiny_model.h"

namespace kvasir::test {

// An engine with the threads it runs on.
struct EngineHost {
  std::unique_ptr<parallel::ThreadPool> pool;
  std::unique_ptr<engine::Engine> engine;

  [[nodiscard]] engine::Engine* operator->() const { return engine.get(); }
};

// Ends the test program where the options are not usable.
[[nodiscard]] EngineHost make_engine(const LoadedModel& model, const engine::EngineOptions& options,
                                     int threads = 1);

// Steps until nothing is queued. Whatever fails shows as a failure of the test.
void step_until_idle(const EngineHost& host);

// Queues `tokens`, steps until nothing is queued, and answers the logits that came of it.
std::vector<float> say(const EngineHost& host, engine::ConversationId id, std::span<const Token> tokens);

// A new conversation that holds `tokens`, computed.
[[nodiscard]] engine::ConversationId open_with(const EngineHost& host, std::span<const Token> tokens);

// Saved in one engine and loaded into another, as after a restart.
[[nodiscard]] engine::ConversationId carried(const EngineHost& from, engine::ConversationId id,
                                             const EngineHost& to);

// The logits of the last token; none where there are none.
[[nodiscard]] std::vector<float> logits_of(const EngineHost& host, engine::ConversationId id);

// A cold run: the logits after `tokens` in an engine that never held anything else.
[[nodiscard]] std::vector<float> cold_logits(const LoadedModel& model, std::span<const Token> tokens,
                                             const kv::CacheTypes& types = {});

// Cache types as a message names them: "f16", "q8_0:f32".
[[nodiscard]] std::string types_text(const kv::CacheTypes& types);

// Every element for keys with every element for values.
[[nodiscard]] std::vector<kv::CacheTypes> all_cache_types();

// How a prompt is taken.
struct Manner {
  int threads = 1;
  std::uint32_t page_cells = 32;
  std::uint32_t pass_tokens = 512;
  std::uint32_t logit_rows = 512;
  kv::CacheTypes types{kv::CacheElement::kF32, kv::CacheElement::kF32};
  std::vector<std::size_t> pieces;    // sizes of what is prompted at a time; the last repeats; empty: all
  std::size_t beside = 0;             // other conversations that get random tokens in the same steps
  bool whole_queue = false;           // a piece is one unit, however many passes
  bool suspend_at_every_job = false;  // and go on
  std::uint64_t seed = 0;             // of what the others say, and of how long their queues are

  [[nodiscard]] std::string text() const;
};

// What came of it.
struct Taken {
  std::vector<float> logits;    // of every token, row after row
  std::vector<float> last;      // last_logits() at the end
  std::size_t most_beside = 0;  // other conversations in one pass with ours
  std::uint64_t passes = 0;
  std::uint64_t suspensions = 0;
};

// Prompts a new conversation of a new engine with `tokens` and steps until all are computed. Whatever fails
// shows as a failure of the test.
[[nodiscard]] Taken take(const LoadedModel& model, std::span<const Token> tokens, const Manner& manner);

// A random manner of taking a prompt of `tokens` tokens.
[[nodiscard]] Manner random_manner(std::uint64_t seed, std::size_t tokens);

// Whether a call took effect, and why not.
template <class T>
[[nodiscard]] Status status_of(const Result<T>& result) {
  return result ? Status() : Status(fail(result.error()));
}

// Whether all bits are equal.
[[nodiscard]] bool same_bits(std::span<const float> a, std::span<const float> b);

}  // namespace kvasir::test
