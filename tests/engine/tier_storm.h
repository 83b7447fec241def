// Many conversations over a pool for few, a memory tier for some and a disk for the rest, prompted at random
// and compared, answer by answer, with an engine whose pool holds them all.
#pragma once

#include <cstdint>
#include <string>

#include "support/tiny_model.h"

namespace kvasir::engine::test {

struct Storm {
  std::uint64_t conversations = 200;
  std::uint64_t tokens = 512;  // that each may reach
  std::uint64_t in_pool = 20;  // of such conversations
  std::uint64_t in_memory = 60;
  std::uint64_t turns = 10'000;
  std::uint64_t seed = 1;
};

struct StormReport {
  std::string wrong;  // nothing where every answer was the same
  std::uint64_t turns = 0;
  std::uint64_t returns = 0;
  std::uint64_t bytes_returned = 0;
  std::uint64_t tokens_recomputed = 0;
  std::uint64_t disk_bytes_read = 0;
  std::uint64_t pool_tokens_max = 0;  // held at most, and what the pool has
  std::uint64_t pool_tokens = 0;
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes_max = 0;
  std::uint64_t disk_bytes = 0;

  [[nodiscard]] std::string text() const;
};

// Files of the disk tier are made in `directory`.
[[nodiscard]] StormReport run_storm(const kvasir::test::LoadedModel& model, const Storm& storm,
                                    const std::string& directory);

// Bytes of one token's cells.
[[nodiscard]] std::uint64_t token_bytes(const kvasir::test::LoadedModel& model);

}  // namespace kvasir::engine::test
