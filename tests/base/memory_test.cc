// How much memory there is, told by files that stand for the system's.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/cpu.h"
#include "support/paths.h"

namespace kvasir::base {
namespace {

class Memory : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << content;
  }
  void put_machine(std::uint64_t kib) const {
    put("/proc/meminfo", "MemTotal:       99999999 kB\nMemFree:        1 kB\nMemAvailable:   " +
                             std::to_string(kib) + " kB\nBuffers:        5 kB\n");
  }
  void put_group(const std::string& limit, std::uint64_t current, std::uint64_t inactive,
                 std::uint64_t active) const {
    put("/sys/fs/cgroup/memory.max", limit + "\n");
    put("/sys/fs/cgroup/memory.current", std::to_string(current) + "\n");
    put("/sys/fs/cgroup/memory.stat", "anon 7\nfile 123\ninactive_file " + std::to_string(inactive) +
                                          "\nactive_file " + std::to_string(active) + "\n");
  }

  std::string root_ = test::scratch_directory();
};

TEST_F(Memory, IsWhatTheMachineHas) {
  put_machine(1000);
  EXPECT_EQ(available_memory(root_.c_str()), 1'024'000U);
  put_group("max", 500, 0, 0);
  EXPECT_EQ(available_memory(root_.c_str()), 1'024'000U);
}

TEST_F(Memory, IsLimitedByTheControlGroup) {
  put_machine(1000);
  put_group("9000", 5000, 0, 0);
  EXPECT_EQ(available_memory(root_.c_str()), 4000U);
  put_group("900000000", 5000, 0, 0);
  EXPECT_EQ(available_memory(root_.c_str()), 1'024'000U);
}

TEST_F(Memory, OfAGroupCountsItsCachedFilesAsFree) {
  put_machine(1000);
  put_group("9000", 8900, 3000, 1000);
  EXPECT_EQ(available_memory(root_.c_str()), 4100U);
  put_group("9000", 8900, 30'000, 0);  // figures of two moments
  EXPECT_EQ(available_memory(root_.c_str()), 9000U);
}

TEST_F(Memory, OfAGroupThatIsFullIsNone) {
  put_machine(1000);
  put_group("9000", 9500, 0, 0);
  EXPECT_EQ(available_memory(root_.c_str()), 0U);
}

TEST_F(Memory, CannotBeToldWhereNothingTellsIt) {
  EXPECT_EQ(available_memory(root_.c_str()), 0U);
  put_group("9000", 4000, 0, 0);
  EXPECT_EQ(available_memory(root_.c_str()), 5000U);
}

}  // namespace
}  // namespace kvasir::base
