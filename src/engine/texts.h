// Texts as vectors, by models that read both ways.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "kvasir/result.h"
#include "kvasir/token.h"
#include "model/model.h"
#include "parallel/thread_pool.h"

namespace kvasir::engine {

struct EmbedWishes {
  std::optional<model::Pooling> pooling;  // nothing: as the file says
  bool normalise = false;                 // to a length of 1
  std::uint64_t context = UINT64_MAX;     // longest text, in tokens
  std::uint32_t pass_tokens = 512;
  // Asked between two jobs, with the number of texts that are done; false ends it.
  std::function<bool(std::uint64_t)> goes_on;
};

// A vector for each text, in order; with Pooling::kNone one for each of its tokens, one behind the other.
// They have the same bits whatever other texts are read with them. kUnsupported for a model without an
// encoder, or a pooling that it cannot do; kInvalidArgument for an empty text, a token outside the
// vocabulary, or more positions than were learned; kNoSpace beyond the context; kCancelled; kOutOfMemory. Any
// thread.
[[nodiscard]] Result<std::vector<std::vector<float>>> embed(const model::Model& model,
                                                            parallel::ThreadPool& pool,
                                                            std::span<const std::span<const Token>> texts,
                                                            const EmbedWishes& wishes);

}  // namespace kvasir::engine
