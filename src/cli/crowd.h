// The crowded cache: many requests with one shared beginning in a pool that is just large enough.
#pragma once

#include <cstdint>

#include "cli/session.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct CrowdOptions {
  ModelFlags model;
  std::uint64_t parallel = 1;   // requests at a time
  std::uint64_t requests = 1;   // in all
  std::uint64_t shared = 300;   // tokens that all begin with
  std::uint64_t own = 12;       // tokens of each, behind those
  std::uint64_t generate = 60;  // tokens that each wants
  bool json = false;
};

// Runs the requests, then each by itself, and prints tokens per second, waits and refusals. An Error says
// which request did not complete, differed from its run alone, or was refused while space sufficed.
[[nodiscard]] Status run_crowd(const CrowdOptions& options);

}  // namespace kvasir::cli
