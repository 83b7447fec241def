// What an executor tells about itself: what a step did, and what the cache holds.
//
// A value header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir {

// Names a conversation of one executor. An id is never given to another conversation again.
enum class ConversationId : std::uint64_t {};

// What a step did with, or for, one conversation.
struct ConversationReport {
  ConversationId id{};
  std::uint64_t tokens = 0;            // of it that this step committed: prompted or generated,
  std::uint64_t embeddings = 0;        // of those, embedding vectors
  std::shared_ptr<const Error> error;  // says more where `outcome` is neither kDone nor kSuspended
  // kDone: all that was queued is computed. kSuspended: some is left for the next step. kNoSpace: it waits;
  // `error` has the numbers. kCancelled, kComputeFailed, kOutOfMemory, ...: it was taken out, as it was
  // before the step.
  Outcome outcome = Outcome::kDone;
  bool generated = false;  // this step drew a token for generate()
};

struct StepReport {
  // kDone: it was committed, or all that was in it was taken out. kIdle: nothing is queued that could be.
  // kSuspended: there is more to do; an open step is continued by the next. kStalled: all that is queued
  // lacks space; `message` names the cheapest remedy. kCancelled: the step's caller stopped it; all is as it
  // was before.
  Outcome outcome = Outcome::kIdle;
  std::uint32_t passes = 0;         // of this step that are finished
  std::uint64_t tokens = 0;         // committed
  std::uint64_t layers_undone = 0;  // computed for nothing by a cancelled step
  std::int64_t elapsed_ns = 0;
  std::string message;
  std::vector<ConversationReport> conversations;  // those in the step, and those that wait for space
};

// Room in the cache, as one consistent snapshot, in tokens.
struct CacheInfo {
  std::uint64_t free = 0;       // the longest prompt that a new conversation could take now as one unit, were
                                // it not for context(); in models that keep states alone, any or none
  std::uint64_t promised = 0;   // to admitted prompts and reservations, not yet used
  std::uint64_t evictable = 0;  // kept for others to begin with; given up when room is wanted
  std::uint64_t held = 0;       // by conversations, those that several share counted once
  std::uint64_t queued = 0;     // prompted, not yet computed
  std::uint64_t pool = 0;       // that the cache can hold in all
  double fragmentation = 0;     // 0: in as few pieces as can be; towards 1: in many. Costs speed, never room
  std::uint64_t prefix_lookups = 0;  // prompts that asked for a known beginning,
  std::uint64_t prefix_hits = 0;     // found one,
  std::uint64_t prefix_tokens = 0;   // and the tokens that they did not have to compute

  // Conversations by where their cells are, and what the tiers hold.
  std::uint64_t in_pool = 0;
  std::uint64_t returning = 0;  // in transit: room is reserved, and being filled
  std::uint64_t spilled = 0;    // at least in part in a tier
  std::uint64_t dropped = 0;    // their tokens will be, or are being, computed again
  std::uint64_t memory_tier_bytes = 0;
  std::uint64_t memory_tier_bytes_max = 0;  // the most there ever were
  std::uint64_t disk_tier_bytes = 0;
  std::uint64_t disk_tier_bytes_max = 0;
};

// What one conversation holds.
struct ConversationInfo {
  std::uint64_t length = 0;    // tokens computed, now or before
  std::uint64_t queued = 0;    // prompted, not yet computed
  std::uint64_t promised = 0;  // tokens that are sure to fit
  std::int64_t position = 0;   // that the next token gets: the length, but for edits
  std::uint64_t own = 0;       // cells that nobody else holds
  std::uint64_t shared = 0;    // cells that others hold too
  std::uint64_t spilled = 0;   // cells that lie in a tier
  std::uint64_t dropped = 0;   // tokens of its length that will be, or are being, computed again
};

// Counted since the executor was made.
struct Metrics {
  std::uint64_t steps = 0;      // committed
  std::uint64_t passes = 0;     // of those
  std::uint64_t prompted = 0;   // tokens of prompts that were computed
  std::uint64_t generated = 0;  // tokens that generate() drew
  std::uint64_t reused = 0;     // tokens of prompts that the cache already held
  std::uint64_t refused = 0;    // steps in which a conversation waited for space
  std::uint64_t cancelled = 0;  // conversations and steps that were

  std::uint64_t bytes_spilled = 0;       // of cells that left the pool for a tier
  std::uint64_t bytes_returned = 0;      // and that came back
  std::uint64_t returns = 0;             // conversations that came back
  std::uint64_t failed_returns = 0;      // that did not: their bytes could not be read
  std::uint64_t paused = 0;              // that made room for others in the middle of what they did
  std::uint64_t recomputed = 0;          // tokens of dropped conversations that were computed again
  std::uint64_t disk_bytes_written = 0;  // by the disk tier
  std::uint64_t disk_bytes_read = 0;
  std::uint64_t disk_failures = 0;  // writes and reads that the system refused
};

}  // namespace kvasir
