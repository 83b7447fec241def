#include "base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>

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

// A file below `root`, to be read. No file where the name is longer than names can be.
File open_below(const char* root, const char* name) noexcept {
  std::array<char, 4096> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s%s", root, name);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return nullptr;
  return File(std::fopen(path.data(), "re"));
}

// The number that a file consists of; 0 where it does not.
std::uint64_t number_in(const char* root, const char* name) noexcept {
  const File file = open_below(root, name);
  std::uint64_t value = 0;
  if (!file || std::fscanf(file.get(), "%" SCNu64, &value) != 1) return 0;
  return value;
}

// The number behind a word at the start of a line; 0 where there is none.
std::uint64_t number_after(std::string_view word, const char* root, const char* name) noexcept {
  const File file = open_below(root, name);
  std::array<char, 256> line{};
  while (file && std::fgets(line.data(), static_cast<int>(line.size()), file.get()) != nullptr) {
    std::uint64_t value = 0;
    if (std::string_view(line.data()).starts_with(word) &&
        std::sscanf(line.data() + word.size(), "%" SCNu64, &value) == 1) {
      return value;
    }
  }
  return 0;
}

}  // namespace

int usable_processors() noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int count = 1;
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0) count = std::max(1, CPU_COUNT(&mask));
  return std::min(count, quota_processors());
}

std::uint64_t available_memory(const char* root) noexcept {
  const std::uint64_t available = number_after("MemAvailable:", root, "/proc/meminfo") * 1024;
  const std::uint64_t limit = number_in(root, "/sys/fs/cgroup/memory.max");  // "max" is no number
  if (limit == 0) return available;
  constexpr const char* kStat = "/sys/fs/cgroup/memory.stat";
  const std::uint64_t cached =
      number_after("inactive_file ", root, kStat) + number_after("active_file ", root, kStat);
  const std::uint64_t current = number_in(root, "/sys/fs/cgroup/memory.current");
  const std::uint64_t used = current - std::min(current, cached);
  const std::uint64_t in_group = limit - std::min(limit, used);
  return available == 0 ? in_group : std::min(available, in_group);
}

}  // namespace kvasir::base
