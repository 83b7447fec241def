// The reader against damaged files, in the short form; the program gguf_damage tries more.

#include <gtest/gtest.h>

#include <vector>

#include "damage.h"
#include "judge.h"

namespace kvasir::gguf::test {
namespace {

constexpr std::uint64_t kFlips = 10000;

// No file of this size has a reason to need more than the reader's buffer, and entries that are larger in
// memory.
constexpr std::int64_t kSmallFileMemory = 256 << 10;

void expect_judged_right(const Tally& tally) {
  for (const std::string& complaint : tally.complaints) ADD_FAILURE() << complaint;
  EXPECT_LE(tally.most_beyond_size, kSmallFileMemory);
}

class GgufDamage : public testing::TestWithParam<std::uint32_t> {
 protected:
  const Bytes file_ = sample(GetParam());
  Tally tally_;
};

// K48: all that may be missing is the padding after the last tensor's data (12 bytes of 64).
TEST_P(GgufDamage, EveryPrefixIsRefusedUnlessOnlyPaddingIsMissing) {
  cut_everywhere(file_, judging(tally_));
  expect_judged_right(tally_);
  EXPECT_EQ(tally_.accepted, kSampleAlignment - 12);
  EXPECT_EQ(tally_.all(), file_.size());
}

// K44, K45, K46.
TEST_P(GgufDamage, EveryNumberSetToEveryExtremeIsRefusedUnlessTheFileIsValid) {
  set_extremes(file_, judging(tally_));
  expect_judged_right(tally_);
  EXPECT_GT(tally_.refused, 1000U);
  EXPECT_GT(tally_.accepted, 100U) << "most values of metadata may be anything";
}

TEST_P(GgufDamage, RandomFlipsAreRefusedUnlessTheFileIsValid) {
  flip_bytes(file_, kFlips, 20240601, judging(tally_));
  expect_judged_right(tally_);
  EXPECT_EQ(tally_.all(), kFlips);
  EXPECT_GT(tally_.refused, kFlips / 10);
  EXPECT_GT(tally_.accepted, kFlips / 10);
}

INSTANTIATE_TEST_SUITE_P(Versions, GgufDamage, testing::Values(2U, 3U));

TEST(GgufDamageJudge, NoticesEachByteThatTheFileDoesNotTellRight) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  const Bytes right = sample();
  EXPECT_EQ(judge_accepted(*file, right), std::nullopt);
  const std::size_t header = image_of(*file).bytes().size();
  std::vector<std::size_t> told;
  for (std::size_t place = 0; place < header; ++place) told.push_back(place);
  for (const Tensor& tensor : file->tensors()) told.push_back(tensor.offset + tensor.bytes - 1);
  for (const std::size_t place : told) {
    Bytes other = right;
    other[place] ^= std::byte{1};
    EXPECT_NE(judge_accepted(*file, other), std::nullopt) << "byte " << place;
  }
}

}  // namespace
}  // namespace kvasir::gguf::test
