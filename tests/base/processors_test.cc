// How many processors there are for this process, told by files that stand for the system's.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/cpu.h"
#include "support/paths.h"

namespace kvasir::base {
namespace {

class Processors : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << content;
  }
  [[nodiscard]] int found() const { return usable_processors(root_.c_str()); }

  std::string root_ = test::scratch_directory();
  const int all_ = usable_processors((root_ + "/none").c_str());  // those of the affinity mask
};

TEST_F(Processors, AreThoseOfTheMaskWhereNothingLimitsThem) {
  EXPECT_GE(all_, 1);
  put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(found(), all_);
  put("/sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(found(), all_);
}

TEST_F(Processors, AreLimitedByAQuotaRoundedUp) {
  for (const char* quota : {"100000 100000\n", "1000 100000\n", "50000 50000\n", "99999 100000\n"}) {
    put("/sys/fs/cgroup/cpu.max", quota);
    EXPECT_EQ(found(), 1) << quota;
  }
  put("/sys/fs/cgroup/cpu.max", "100001 100000\n");
  EXPECT_EQ(found(), std::min(all_, 2));
}

TEST_F(Processors, AreLimitedByEveryGroupAroundTheirs) {
  put("/proc/self/cgroup", "1:name=systemd:/elsewhere\n0::/outer/inner\n");
  EXPECT_EQ(found(), all_);
  put("/sys/fs/cgroup/outer/cpu.max", "100000 100000\n");
  put("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(found(), 1);
  put("/sys/fs/cgroup/outer/cpu.max", "max 100000\n");
  EXPECT_EQ(found(), all_);
  put("/sys/fs/cgroup/outer/inner/cpu.max", "20000 100000\n");
  EXPECT_EQ(found(), 1);
}

TEST_F(Processors, AreLimitedByQuotasOfTheFirstVersionToo) {
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(found(), all_);
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(found(), 1);
}

TEST_F(Processors, AreNotLimitedByWhatCannotBeRead) {
  for (const char* nonsense : {"", "\n", "one two\n", "-5 100000\n", "5 0\n", "100000\n"}) {
    put("/sys/fs/cgroup/cpu.max", nonsense);
    EXPECT_EQ(found(), all_) << nonsense;
  }
  put("/proc/self/cgroup", "0::" + std::string(5000, '/') + "\n");
  EXPECT_EQ(found(), all_);
}

}  // namespace
}  // namespace kvasir::base
