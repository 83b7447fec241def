#include "base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <memory>

namespace kvasir::base {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Processors that the control group's quota amounts to, rounded up, or a huge number where there is no quota.
// Source: Linux kernel documentation, cgroup-v2, "cpu.max": "$MAX $PERIOD", $MAX may be "max".
int quota_processors() noexcept {
  const File file(std::fopen("/sys/fs/cgroup/cpu.max", "re"));
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (!file || std::fscanf(file.get(), "%" SCNd64 " %" SCNd64, &quota, &period) != 2 || quota <= 0 ||
      period <= 0) {
    return std::numeric_limits<int>::max();
  }
  return static_cast<int>(
      std::clamp<std::int64_t>((quota + period - 1) / period, 1, std::numeric_limits<int>::max()));
}

std::uint64_t number_in(const char* path) noexcept {
  const File file(std::fopen(path, "re"));
  std::uint64_t value = 0;
  if (!file || std::fscanf(file.get(), "%" SCNu64, &value) != 1) return 0;
  return value;
}

}  // namespace

int usable_processors() noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int count = 1;
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0) count = std::max(1, CPU_COUNT(&mask));
  return std::min(count, quota_processors());
}

std::uint64_t available_memory() noexcept {
  std::uint64_t available = 0;
  if (const File file(std::fopen("/proc/meminfo", "re")); file) {
    char line[256];
    std::uint64_t kib = 0;
    while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1) available = kib * 1024;
    }
  }
  const std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit > 0) available = std::min(available, limit > used ? limit - used : 0);
  return available;
}

}  // namespace kvasir::base
