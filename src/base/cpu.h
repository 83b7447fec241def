// What the machine gives this process: processors and memory.
#pragma once

#include <cstdint>

namespace kvasir::base {

// Processors this process may use at once: those of its affinity mask, limited by the quotas of its control
// group and of those around it (rounded up). At least 1. Never fails: what cannot be read does not limit.
// `root` is a directory that stands for "/", for tests. Sources: Linux kernel documentation, cgroup-v2,
// "cpu.max"; sched-bwc, "cpu.cfs_quota_us" (the first version's); cgroups(7), "/proc/[pid]/cgroup".
[[nodiscard]] int usable_processors(const char* root = "") noexcept;

// Bytes of memory that could be taken without swapping, limited by the control group, whose cached files
// count as free. 0 where it cannot be told. `root` is a directory that stands for "/", for tests.
// Sources: proc(5), "MemAvailable"; Linux kernel documentation, cgroup-v2, "memory.max" and "memory.stat".
[[nodiscard]] std::uint64_t available_memory(const char* root = "") noexcept;

// Whether this is an Arm processor with dot products of bytes. Source: Linux kernel documentation,
// arm64/elf_hwcaps, "HWCAP_ASIMDDP".
[[nodiscard]] bool has_arm_dot_products() noexcept;

}  // namespace kvasir::base
