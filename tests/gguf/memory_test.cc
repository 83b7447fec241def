// However a file is made, the reader takes little more memory than the file has bytes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/allocations.h"

namespace kvasir::gguf::test {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// The most memory that opening the file takes beyond its size.
std::int64_t beyond_size(const Bytes& bytes) {
  auto files = in_memory(bytes);
  const kvasir::test::AllocationMeter meter;
  const Result<File> file = File::parse(std::move(files));
  EXPECT_TRUE(file) << file.error().message();
  return meter.peak() - static_cast<std::int64_t>(bytes.size());
}

TEST(GgufMemory, ArraysTakeWhatTheyTakeInTheFile) {
  RawGguf bytes;
  bytes.header(0, 1).key("key", ValueType::kArray).u32(0, "").u64(8 << 20, "").raw(Bytes(8 << 20));
  EXPECT_LT(beyond_size(bytes.bytes()), kMiB);
  RawGguf empty_strings;
  empty_strings.header(0, 1).key("key", ValueType::kArray).u32(8, "").u64(1 << 20, "").raw(Bytes(8 << 20));
  EXPECT_LT(beyond_size(empty_strings.bytes()), kMiB);
  RawGguf short_strings;
  short_strings.header(0, 1).key("key", ValueType::kArray).u32(8, "").u64(1 << 19, "");
  for (int i = 0; i < 1 << 19; ++i) short_strings.text("abc", "");
  EXPECT_LT(beyond_size(short_strings.bytes()), kMiB);
}

// The smallest entries, as many as are read, of every kind in one file.
TEST(GgufMemory, TheSmallestEntriesTogetherStayWithin64MiB) {
  RawGguf file;
  file.header(kMaxTensors, kMaxKeys);
  file.key("arrays", ValueType::kArray)
      .u32(9, "")
      .u64(kMaxNestedArrays, "")
      .raw(Bytes(kMaxNestedArrays * 12));
  for (std::uint64_t i = 1; i < kMaxKeys; ++i)
    file.entry(fmt::format("{:x}", i), Value::scalar<std::uint8_t>(1));
  for (std::uint64_t i = 0; i < kMaxTensors; ++i) {
    file.tensor(fmt::format("{:x}", i), std::vector<std::uint64_t>{1}, 24, i * 32);
  }
  file.pad(32).raw(Bytes(kMaxTensors * 32));
  EXPECT_LT(beyond_size(file.bytes()), 64 * kMiB);
}

// A file of this size, all zero but for its beginning; it takes no memory itself.
class ZeroFile final : public base::ReadFile {
 public:
  ZeroFile(Bytes beginning, std::uint64_t size) : beginning_(std::move(beginning)), size_(size) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    std::ranges::fill(into, std::byte{0});
    for (std::uint64_t i = offset; i < beginning_.size() && i - offset < into.size(); ++i) {
      into[i - offset] = beginning_[i];
    }
    return {};
  }

 private:
  Bytes beginning_;
  std::uint64_t size_;
};

TEST(GgufMemory, MoreMetadataThanIsReadIsRefusedBeforeItIsTaken) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 40;
  std::vector<RawGguf> files(3);
  files[0].header(0, 1).key("key", ValueType::kString).u64(std::uint64_t{1} << 39, "");
  files[1].header(0, 1).key("key", ValueType::kArray).u32(6, "").u64(std::uint64_t{1} << 37, "");
  files[2].header(0, 1).key("key", ValueType::kArray).u32(8, "").u64(kMaxMetadataBytes / 8, "");
  for (const RawGguf& raw : files) {
    std::vector<std::unique_ptr<base::ReadFile>> shards;
    shards.push_back(std::make_unique<ZeroFile>(raw.bytes(), kSize));
    const kvasir::test::AllocationMeter meter;
    const Result<File> file = File::parse(std::move(shards));
    EXPECT_LT(meter.peak(), kMiB);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), Outcome::kUnsupported) << file.error().message();
    EXPECT_EQ(file.error().numbers().limit, kMaxMetadataBytes);
  }
}

TEST(GgufMemory, IsGivenBackWithTheFile) {
  Bytes bytes = sample();
  const kvasir::test::AllocationMeter meter;
  {
    const Result<File> file = parse(bytes);
  }
  EXPECT_EQ(meter.now(), 0);
}

}  // namespace
}  // namespace kvasir::gguf::test
