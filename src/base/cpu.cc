#include "base/cpu.h"

#include <sched.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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

constexpr int kNoQuota = std::numeric_limits<int>::max();

// Processors that a quota of `quota` in each `period` amounts to, rounded up.
int processors_of(std::int64_t quota, std::int64_t period) noexcept {
  if (quota <= 0 || period <= 0) return kNoQuota;
  const std::int64_t whole = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<std::int64_t>(whole, kNoQuota));
}

// Of a group's cpu.max, "$MAX $PERIOD" where $MAX may be "max".
int quota_in(const char* root, std::string_view group) noexcept {
  std::array<char, 4096> name{};
  constexpr std::string_view kBefore = "/sys/fs/cgroup";
  constexpr std::string_view kAfter = "/cpu.max";
  if (kBefore.size() + group.size() + kAfter.size() >= name.size()) return kNoQuota;
  auto* const past_group = std::ranges::copy(group, std::ranges::copy(kBefore, name.begin()).out).out;
  std::ranges::copy(kAfter, past_group);
  const File file = open_below(root, name.data());
  std::int64_t quota = 0;
  std::int64_t period = 0;
  if (!file || std::fscanf(file.get(), "%" SCNd64 " %" SCNd64, &quota, &period) != 2) return kNoQuota;
  return processors_of(quota, period);
}

// The least of the quotas of this process's group and of all around it. Inside a container its group is "/".
int quota_of_groups(const char* root) noexcept {
  std::array<char, 4096> line{};
  std::string_view group;
  const File file = open_below(root, "/proc/self/cgroup");
  while (file && std::fgets(line.data(), static_cast<int>(line.size()), file.get()) != nullptr) {
    const std::string_view text(line.data());
    if (!text.starts_with("0::/")) continue;
    group = text.substr(3, text.find('\n') == text.npos ? text.npos : text.find('\n') - 3);
    break;
  }
  int least = quota_in(root, "");
  while (group.size() > 1) {
    least = std::min(least, quota_in(root, group));
    group = group.substr(0, group.rfind('/'));
  }
  return least;
}

int quota_of_first_version(const char* root) noexcept {
  std::int64_t quota = 0;
  std::int64_t period = 0;
  const File quota_file = open_below(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");  // -1: none
  const File period_file = open_below(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!quota_file || !period_file || std::fscanf(quota_file.get(), "%" SCNd64, &quota) != 1 ||
      std::fscanf(period_file.get(), "%" SCNd64, &period) != 1) {
    return kNoQuota;
  }
  return processors_of(quota, period);
}

}  // namespace

int usable_processors(const char* root) noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int count = 1;
  if (::sched_getaffinity(0, sizeof(mask), &mask) == 0) count = std::max(1, CPU_COUNT(&mask));
  return std::min({count, quota_of_groups(root), quota_of_first_version(root)});
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

bool has_arm_dot_products() noexcept {
#if defined(__aarch64__)
  return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}

}  // namespace kvasir::base
