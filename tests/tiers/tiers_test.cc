#include "tiers/tiers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "support/allocations.h"
#include "support/faults.h"
#include "support/paths.h"

namespace kvasir::tiers {
namespace {

using kvasir::test::Fault;
using kvasir::test::FaultyFileSystem;
using kvasir::test::FileOperation;

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::unique_ptr<Tiers> make(std::uint64_t memory, std::uint64_t disk,
                            base::FileSystem& files = base::system_files()) {
  auto tiers = Tiers::create({memory, disk, disk > 0 ? ::testing::TempDir() : std::string()}, files);
  EXPECT_TRUE(tiers) << (tiers ? "" : tiers.error().message());
  return tiers ? std::move(*tiers) : nullptr;
}

// Puts bytes, waiting for room as long as there will be any.
Result<Block> put(Tiers& tiers, const Bytes& bytes) {
  while (true) {
    const Result<bool> room = tiers.has_room(bytes.size());
    if (!room) return fail(room.error());
    if (*room) break;
    tiers.wait();
  }
  return tiers.put(bytes.size(), [&](std::span<std::byte> out) { std::ranges::copy(bytes, out.begin()); });
}

// The bytes as a return gets them.
Result<Bytes> fetch(Tiers& tiers, Block block) {
  while (true) {
    const Result<bool> asked = tiers.want(block);
    if (!asked) return fail(asked.error());
    const Result<BytesOfBlock> seen = tiers.look(block);
    if (!seen) return fail(seen.error());
    if (seen->there()) {
      Bytes bytes(seen->all().begin(), seen->all().end());
      tiers.unwant(block);
      return bytes;
    }
    tiers.wait();
  }
}

void settle(Tiers& tiers) {
  while (tiers.wait()) {
  }
}

TEST(Tiers, GiveBackWhatWasPut) {
  const auto tiers = make(100'000, 0);
  std::map<Block, Bytes> all;
  for (std::uint64_t i = 0; i < 10; ++i) {
    const Bytes bytes = bytes_of(i, 1 + i * 1000);
    const auto block = put(*tiers, bytes);
    ASSERT_TRUE(block);
    all[*block] = bytes;
  }
  for (const auto& [block, bytes] : all) {
    const auto back = fetch(*tiers, block);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, bytes);
    tiers->drop(block);
  }
  EXPECT_EQ(tiers->usage().memory_bytes, 0);
  EXPECT_EQ(tiers->usage().memory_bytes_max, 45'010);
}

TEST(Tiers, RefuseWhatDoesNotFitWithTheNumbers) {
  const auto tiers = make(1000, 0);
  ASSERT_TRUE(put(*tiers, bytes_of(1, 600)));
  const auto refused = put(*tiers, bytes_of(2, 500));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kNoSpace);
  EXPECT_EQ(refused.error().numbers().wanted, 500);
  EXPECT_EQ(refused.error().numbers().available, 400);
  EXPECT_EQ(refused.error().numbers().setting, "memory_tier_bytes");
  EXPECT_EQ(tiers->usage().memory_bytes, 600);
}

TEST(Tiers, RefuseADiskThatCannotBeReached) {
  const auto without_memory = Tiers::create({0, 1 << 20, ::testing::TempDir()}, base::system_files());
  ASSERT_FALSE(without_memory);
  EXPECT_EQ(without_memory.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(without_memory.error().numbers().setting, "memory_tier_bytes");
  const auto without_directory = Tiers::create({1 << 20, 1 << 20, ""}, base::system_files());
  ASSERT_FALSE(without_directory);
  EXPECT_EQ(without_directory.error().numbers().setting, "spill_directory");
  const auto nowhere = Tiers::create({1 << 20, 1 << 20, "/no/such/place"}, base::system_files());
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code(), Outcome::kNotFound);
}

// D1, D3
TEST(Tiers, TheOldestGoToTheDiskAndComeBackUnchanged) {
  const auto tiers = make(40'000, 400'000);
  std::map<Block, Bytes> all;
  for (std::uint64_t i = 0; i < 30; ++i) {
    const Bytes bytes = bytes_of(i, 9000);
    const auto block = put(*tiers, bytes);
    ASSERT_TRUE(block) << block.error().message();
    all[*block] = bytes;
    ASSERT_LE(tiers->usage().memory_bytes, 40'000);
    ASSERT_LE(tiers->usage().disk_bytes, 400'000);
  }
  settle(*tiers);
  const TierUsage usage = tiers->usage();
  EXPECT_LE(usage.memory_bytes_max, 40'000);
  EXPECT_LE(usage.disk_bytes_max, 400'000);
  EXPECT_GE(usage.blocks_on_disk, 26);
  for (const auto& [block, bytes] : all) {
    const auto at_once = tiers->read(block);
    ASSERT_TRUE(at_once);
    EXPECT_TRUE(std::ranges::equal(at_once->all(), bytes));
    const auto back = fetch(*tiers, block);
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(*back, bytes);
    tiers->drop(block);
  }
  settle(*tiers);
  EXPECT_EQ(tiers->usage().memory_bytes, 0);
  EXPECT_EQ(tiers->usage().disk_bytes, 0);
  EXPECT_GE(tiers->usage().bytes_read, 26 * 9000);
}

// B3
TEST(Tiers, TheFileHasNoName) {
  const std::string directory = kvasir::test::scratch_directory();
  {
    auto tiers = Tiers::create({10'000, 100'000, directory}, base::system_files());
    ASSERT_TRUE(tiers);
    for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(put(**tiers, bytes_of(i, 8000)));
    settle(**tiers);
    EXPECT_GT((*tiers)->usage().disk_bytes, 0);
    EXPECT_TRUE(std::filesystem::is_empty(directory));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

// D2. For every n: a write that fails leaves its block in memory and says so once; nothing is lost.
TEST(Tiers, AWriteThatFailsLosesNothing) {
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<Fault>(FileOperation::kScratchWrite, n);
    FaultyFileSystem files(base::system_files(), fault);
    const auto tiers = make(20'000, 200'000, files);
    std::map<Block, Bytes> all;
    std::uint64_t refusals = 0;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const Bytes bytes = bytes_of(i, 5000);
      auto block = put(*tiers, bytes);
      if (!block) {
        EXPECT_EQ(block.error().code(), Outcome::kIo);
        ++refusals;
        block = put(*tiers, bytes);
      }
      ASSERT_TRUE(block) << block.error().message();
      all[*block] = bytes;
    }
    settle(*tiers);
    EXPECT_EQ(tiers->usage().failures, fault->fired() ? 1 : 0);
    EXPECT_LE(refusals, 1);
    for (const auto& [block, bytes] : all) {
      const auto back = fetch(*tiers, block);
      ASSERT_TRUE(back) << back.error().message();
      EXPECT_EQ(*back, bytes);
    }
    if (!fault->fired()) {
      EXPECT_GT(n, 5);
      return;
    }
  }
}

TEST(Tiers, ADiskThatTakesNothingLeavesTheMemoryTierAsItIs) {
  const auto fault = std::make_shared<Fault>(FileOperation::kScratchWrite, 0, Fault::Lasting::kFromThenOn);
  FaultyFileSystem files(base::system_files(), fault);
  const auto tiers = make(20'000, 200'000, files);
  std::map<Block, Bytes> all;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto block = put(*tiers, bytes_of(i, 5000));
    ASSERT_TRUE(block);
    all[*block] = bytes_of(i, 5000);
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto refused = put(*tiers, bytes_of(9, 5000));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Outcome::kIo);
  }
  settle(*tiers);
  EXPECT_EQ(tiers->usage().disk_bytes, 0);
  for (const auto& [block, bytes] : all) EXPECT_EQ(fetch(*tiers, block).value(), bytes);
}

// For every n: a read that fails is the fault of its block alone, and is tried again.
TEST(Tiers, AReadThatFailsIsTheFaultOfItsBlockAlone) {
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<Fault>(FileOperation::kScratchRead, n);
    FaultyFileSystem files(base::system_files(), fault);
    const auto tiers = make(10'000, 200'000, files);
    std::map<Block, Bytes> all;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto block = put(*tiers, bytes_of(i, 5000));
      ASSERT_TRUE(block);
      all[*block] = bytes_of(i, 5000);
    }
    settle(*tiers);
    int failed = 0;
    for (const auto& [block, bytes] : all) {
      auto back = fetch(*tiers, block);
      if (!back) {
        EXPECT_EQ(back.error().code(), Outcome::kIo);
        ++failed;
        back = fetch(*tiers, block);
      }
      ASSERT_TRUE(back);
      EXPECT_EQ(*back, bytes);
    }
    EXPECT_EQ(failed, fault->fired() ? 1 : 0);
    if (!fault->fired()) {
      EXPECT_GT(n, 4);
      return;
    }
  }
}

// A file of memory whose bytes a test can change.
class Rotting final : public FaultyFileSystem {
 public:
  Rotting()
      : FaultyFileSystem(base::system_files(), std::make_shared<Fault>(FileOperation::kOpen, UINT64_MAX)) {}

  class File final : public base::ScratchFile {
   public:
    explicit File(Bytes& rotting) : bytes_(&rotting) {}
    Status write_at(std::uint64_t offset, std::span<const std::byte> from) override {
      if (bytes_->size() < offset + from.size()) bytes_->resize(offset + from.size());
      std::ranges::copy(from, bytes_->begin() + static_cast<std::ptrdiff_t>(offset));
      return {};
    }
    Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
      if (offset + into.size() > bytes_->size()) return fail(Outcome::kCorrupt, "the file ends before");
      std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    }

   private:
    Bytes* bytes_;
  };
  Result<std::unique_ptr<base::ScratchFile>> scratch(const std::string& /*directory*/) override {
    return std::make_unique<File>(bytes);
  }
  Bytes bytes;
};

TEST(Tiers, AFileThatHasChangedOrIsShortIsNoticed) {
  Rotting files;
  const auto tiers = make(8192, 100'000, files);
  const Bytes first = bytes_of(1, 8000);
  const auto block = put(*tiers, first);
  ASSERT_TRUE(block);
  ASSERT_TRUE(put(*tiers, bytes_of(2, 8000)));
  settle(*tiers);
  const Bytes whole = files.bytes;
  for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{7999}}) {
    files.bytes[at] ^= std::byte{1};
    const auto changed = fetch(*tiers, *block);
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().code(), Outcome::kCorrupt);
    tiers->unwant(*block);
    const auto at_once = tiers->read(*block);
    ASSERT_FALSE(at_once);
    EXPECT_EQ(at_once.error().code(), Outcome::kCorrupt);
    files.bytes = whole;
  }
  files.bytes.resize(5000);
  EXPECT_EQ(fetch(*tiers, *block).error().code(), Outcome::kCorrupt);
  files.bytes = whole;
  EXPECT_EQ(fetch(*tiers, *block).value(), first);
}

TEST(Tiers, MissingMemoryLosesNothing) {
  for (std::uint64_t n = 0;; ++n) {
    const auto tiers = make(20'000, 100'000);
    const Bytes first = bytes_of(1, 15'000);
    const Bytes second = bytes_of(2, 15'000);
    const auto block = put(*tiers, first);
    ASSERT_TRUE(block);
    bool fired = false;
    bool refused = false;
    {
      const kvasir::test::AllocationFault fault(n);
      const auto more = put(*tiers, second);
      fired = fault.fired();
      refused = !more;
      if (refused) {
        EXPECT_EQ(more.error().code(), Outcome::kOutOfMemory);
      }
    }
    settle(*tiers);
    EXPECT_EQ(fetch(*tiers, *block).value(), first);
    EXPECT_LE(tiers->usage().memory_bytes, 20'000);
    if (refused) {
      EXPECT_EQ(fetch(*tiers, put(*tiers, second).value()).value(), second);
    }
    if (!fired) {
      EXPECT_GT(n, 2);
      return;
    }
  }
}

// Puts, looks and drops in any order, also of what is on its way, against a map.
TEST(Tiers, RandomUseAgreesWithAMap) {
  std::mt19937_64 random(7);
  const auto tiers = make(60'000, 300'000);
  std::map<Block, Bytes> all;
  std::uint64_t refused = 0;
  std::optional<Block> asked;  // and left on its way
  for (std::uint64_t step = 0; step < 4000; ++step) {
    const std::uint64_t what = random() % 10;
    if (what < 5) {
      const Bytes bytes = bytes_of(step, 1 + random() % 12'000);
      const auto block = put(*tiers, bytes);
      if (block) {
        all[*block] = bytes;
      } else {
        ASSERT_EQ(block.error().code(), Outcome::kNoSpace);
        ++refused;
      }
    } else if (!all.empty()) {
      auto one = all.begin();
      std::advance(one, static_cast<std::ptrdiff_t>(random() % all.size()));
      if (asked) tiers->unwant(*std::exchange(asked, std::nullopt));
      if (what < 8) {
        ASSERT_EQ(fetch(*tiers, one->first).value(), one->second);
      }
      if (what == 6) {
        ASSERT_TRUE(tiers->want(one->first));
        asked = one->first;
      }
      if (what == 7) tiers->unwant(one->first);
      if (what >= 7 || refused % 3 == 1) {
        tiers->drop(one->first);
        all.erase(one);
      }
    }
    const TierUsage usage = tiers->usage();
    ASSERT_LE(usage.memory_bytes, 60'000);
    ASSERT_LE(usage.disk_bytes, 300'000);
  }
  EXPECT_GT(refused, 0);
  for (const auto& [block, bytes] : all) {
    EXPECT_EQ(fetch(*tiers, block).value(), bytes);
    tiers->drop(block);
  }
  settle(*tiers);
  EXPECT_EQ(tiers->usage().memory_bytes, 0);
  EXPECT_EQ(tiers->usage().disk_bytes, 0);
}

}  // namespace
}  // namespace kvasir::tiers
