// The reader when the system refuses a read, or memory.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/allocations.h"
#include "support/faults.h"
#include "support/paths.h"

namespace kvasir::gguf::test {
namespace {

using kvasir::test::AllocationFault;
using kvasir::test::AllocationMeter;
using kvasir::test::Fault;
using kvasir::test::FaultyFileSystem;
using kvasir::test::FaultyReadFile;
using kvasir::test::FileOperation;

// A file larger than the reader's buffer, in two shards, with reads of every kind: fields, long arrays, and
// strings that lie over the ends of buffers.
std::string stored_split() {
  const std::string stem = kvasir::test::scratch_directory() + "/m";
  const std::vector<std::string> texts(3000, std::string(50, 't'));
  const std::vector<float> numbers(40000, 0.5F);
  for (std::uint16_t i = 0; i < 2; ++i) {
    RawGguf raw;
    raw.header(1, 5)
        .entry("split.no", Value::scalar(i))
        .entry("split.count", Value::scalar<std::uint16_t>(2));
    raw.entry("split.tensors.count", Value::scalar<std::int32_t>(2));
    raw.entry("texts", Value::strings(std::span<const std::string>(texts)));
    raw.entry("numbers", Value::array(std::span<const float>(numbers)));
    raw.tensor(i == 0 ? "a" : "b", std::vector<std::uint64_t>{8}, 0, 0).pad(32).raw(noise(32, i));
    auto file = *base::system_files().replace(stem + "-0000" + std::to_string(i + 1) + "-of-00002.gguf");
    EXPECT_TRUE(file->write(raw.bytes()));
    EXPECT_TRUE(file->commit());
  }
  return stem + "-00001-of-00002.gguf";
}

TEST(GgufFaults, EveryRefusedOpenOrReadShowsAsIoAndLeavesNothing) {
  const std::string path = stored_split();
  for (const auto lasting : {Fault::Lasting::kOnce, Fault::Lasting::kFromThenOn}) {
    for (std::uint64_t n = 0;; ++n) {
      const auto fault = std::make_shared<Fault>(FileOperation::kAny, n, lasting);
      FaultyFileSystem files(base::system_files(), fault);
      const AllocationMeter meter;
      {
        const Result<File> file = File::open(files, path);
        if (!fault->fired()) {
          ASSERT_TRUE(file) << file.error().message();
          EXPECT_EQ(FaultyReadFile::alive(), 2);
          EXPECT_GT(n, 10U);
          break;
        }
        ASSERT_FALSE(file) << "operation " << n;
        EXPECT_EQ(file.error().code(), Outcome::kIo) << file.error().message();
        EXPECT_EQ(FaultyReadFile::alive(), 0);
      }
      EXPECT_EQ(meter.now(), 0) << "operation " << n;
    }
  }
  EXPECT_EQ(FaultyReadFile::alive(), 0);
}

TEST(GgufFaults, ARefusedReadOfTensorDataNamesTheTensor) {
  std::vector<std::unique_ptr<base::ReadFile>> files;
  const auto idle = std::make_shared<Fault>(FileOperation::kRead, UINT64_MAX);
  files.push_back(std::make_unique<FaultyReadFile>(base::memory_file(sample()), idle));
  const Result<File> counted = File::parse(std::move(files));
  ASSERT_TRUE(counted);
  files.clear();
  const auto next = std::make_shared<Fault>(FileOperation::kRead, idle->seen());
  files.push_back(std::make_unique<FaultyReadFile>(base::memory_file(sample()), next));
  const Result<File> file = File::parse(std::move(files));
  ASSERT_TRUE(file);
  Bytes data(12);
  const Status refused = file->read(*file->find_tensor("half"), 0, data);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kIo);
  EXPECT_EQ(refused.error().message(), "tensor 'half': injected fault: read");
  EXPECT_TRUE(file->read(*file->find_tensor("half"), 0, data)) << "the next read is as good as any";
}

TEST(GgufFaults, AFileThatShrinksLaterShowsWhenItIsRead) {
  const std::string path = kvasir::test::scratch_directory() + "/shrinks.gguf";
  auto target = *base::system_files().replace(path);
  ASSERT_TRUE(target->write(sample()));
  ASSERT_TRUE(target->commit());
  const Result<File> file = File::open(base::system_files(), path);
  ASSERT_TRUE(file);
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  Bytes data(12);
  const Status refused = file->read(*file->find_tensor("half"), 0, data);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kCorrupt);
}

// Strings are read in two rounds; here the second finds other lengths than the first.
class ChangingFile final : public base::ReadFile {
 public:
  ChangingFile(Bytes first, Bytes later) : first_(std::move(first)), later_(std::move(later)) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return first_.size(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    const Bytes& bytes = offset < highest_ ? later_ : first_;
    highest_ = std::max(highest_, offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }

 private:
  Bytes first_;
  Bytes later_;
  mutable std::uint64_t highest_ = 0;
};

TEST(GgufFaults, AFileThatChangesBetweenTwoReadsIsRefusedOrTakenAsItIs) {
  RawGguf raw;
  const std::vector<std::string> texts(4000, std::string(30, 't'));
  raw.header(0, 1).entry("texts", Value::strings(std::span<const std::string>(texts)));
  const std::vector<Field> fields = raw.fields();
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{31}, std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
    Bytes later = raw.bytes();
    for (std::size_t i = fields.size() - texts.size(); i < fields.size() - texts.size() + 100; ++i) {
      std::memcpy(&later[fields[i].offset], &length, sizeof(length));
    }
    std::vector<std::unique_ptr<base::ReadFile>> files;
    files.push_back(std::make_unique<ChangingFile>(raw.bytes(), later));
    const Result<File> file = File::parse(std::move(files));
    if (!file) {
      EXPECT_EQ(file.error().code(), Outcome::kCorrupt) << file.error().message();
      continue;
    }
    const Value& value = *file->find("texts");
    EXPECT_EQ(value.size(), texts.size());
    for (std::uint64_t i = 0; i < value.size(); ++i) EXPECT_TRUE(value.string_at(i));
  }
}

TEST(GgufFaults, EveryRefusedAllocationShowsAsOutOfMemoryAndLeavesNothing) {
  for (const auto lasting : {AllocationFault::Lasting::kOnce, AllocationFault::Lasting::kFromThenOn}) {
    for (std::uint64_t n = 0;; ++n) {
      auto files = in_memory(sample());
      const AllocationMeter meter;
      bool fired = false;
      {
        const AllocationFault fault(n, lasting);
        const Result<File> file = File::parse(std::move(files));
        fired = fault.fired();
        ASSERT_NE(file.has_value(), fired);
        if (fired) {
          EXPECT_EQ(file.error().code(), Outcome::kOutOfMemory);
        }
      }
      if (!fired) {
        EXPECT_GT(n, 40U);
        break;
      }
      EXPECT_LE(meter.now(), 0) << "allocation " << n;
    }
  }
}

TEST(GgufFaults, ARefusedAllocationOfAListShowsAsOutOfMemory) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  const AllocationFault fault(0);
  const auto list = file->get_float_array("many.uint8");
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), Outcome::kOutOfMemory);
}

}  // namespace
}  // namespace kvasir::gguf::test
