// Ways for a conversation to have become what it is, and the way through an archive of each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/api_run.h"

namespace kvasir::test {

struct History {
  const char* name;
  std::function<void(Executor&, Conversation&)> make;
};

[[nodiscard]] const std::vector<History>& histories();

// Others, that leave every second page or so to be filled again.
[[nodiscard]] std::vector<Conversation> scatter(Executor& executor);

[[nodiscard]] ExecutorOptions cache_of(CacheType keys, CacheType values, std::uint32_t page_cells);

// Saves a conversation of this history, closes it and takes it back elsewhere, among others: what differs
// then from one that was never disturbed in its next tokens and all their logits, or in what is computed.
// Nothing:
// "".
[[nodiscard]] std::string round_trip(const History& history, const ExecutorOptions& from,
                                     const ExecutorOptions& to);

}  // namespace kvasir::test
