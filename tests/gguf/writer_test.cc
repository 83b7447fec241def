#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "raw_gguf.h"
#include "support/allocations.h"
#include "support/faults.h"
#include "support/paths.h"

namespace kvasir::gguf::test {
namespace {

using kvasir::test::Fault;
using kvasir::test::FaultyFileSystem;
using kvasir::test::FaultyReplacingFile;
using kvasir::test::FileOperation;
using quant::BlockType;

Status describe_sample(Writer& writer) {
  for (KeyValue& entry : sample_metadata()) KVASIR_TRY(writer.add(entry.key, entry.value));
  for (SampleTensor& tensor : sample_tensors())
    KVASIR_TRY(writer.add_tensor(tensor.name, tensor.type, tensor.dims));
  return {};
}

// Writes the sample in pieces of this many bytes.
Status write_sample(base::FileSystem& files, const std::string& path, std::size_t piece) {
  Writer writer;
  KVASIR_TRY(describe_sample(writer));
  KVASIR_ASSIGN(std::unique_ptr<base::ReplacingFile> target, files.replace(path));
  KVASIR_TRY(writer.begin(std::move(target)));
  for (const SampleTensor& tensor : sample_tensors()) {
    std::span<const std::byte> rest = tensor.data;
    while (!rest.empty()) {
      const std::size_t taken = std::min(piece, rest.size());
      KVASIR_TRY(writer.write(rest.first(taken)));
      rest = rest.subspan(taken);
    }
  }
  return writer.commit();
}

Bytes content(const std::string& path) {
  return base::read_whole(base::system_files(), path, std::uint64_t{1} << 30).value();
}

class GgufWriter : public testing::Test {
 protected:
  const std::string path_ = kvasir::test::scratch_directory() + "/written.gguf";
  Writer writer_;

  Result<std::unique_ptr<base::ReplacingFile>> target() { return base::system_files().replace(path_); }
};

template <class T>
void expect_refused(const Result<T>& result, Outcome code, const std::string& part) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code) << result.error().message();
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
}

TEST_F(GgufWriter, WritesTheSampleAsItIsPutTogetherByHand) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    ASSERT_TRUE(write_sample(base::system_files(), path_, piece));
    EXPECT_EQ(content(path_), sample()) << "in pieces of " << piece;
  }
}

TEST_F(GgufWriter, TellsBeforehandHowLargeTheFileWillBe) {
  EXPECT_EQ(writer_.file_bytes(), 32U);  // 24 bytes of header, aligned
  ASSERT_TRUE(describe_sample(writer_));
  EXPECT_EQ(writer_.file_bytes(), sample().size());
}

TEST_F(GgufWriter, WritesAFileOfMetadataAlone) {
  ASSERT_TRUE(writer_.add("key", Value::scalar(1.5)));
  ASSERT_TRUE(writer_.begin(*target()));
  EXPECT_EQ(writer_.current(), nullptr);
  ASSERT_TRUE(writer_.commit());
  const Result<File> file = parse(content(path_));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->get_float("key").value(), 1.5);
}

TEST_F(GgufWriter, SaysWhichTensorComesNextAndWhereItLies) {
  ASSERT_TRUE(describe_sample(writer_));
  EXPECT_EQ(writer_.current(), nullptr);
  ASSERT_TRUE(writer_.begin(*target()));
  std::vector<std::uint64_t> offsets;
  for (const SampleTensor& tensor : sample_tensors()) {
    ASSERT_NE(writer_.current(), nullptr);
    EXPECT_EQ(writer_.current()->name, tensor.name);
    offsets.push_back(writer_.current()->offset);
    ASSERT_TRUE(writer_.write(std::span(tensor.data).first(1)));
    EXPECT_EQ(writer_.current_written(), 1U);
    ASSERT_TRUE(writer_.write(std::span(tensor.data).subspan(1)));
    EXPECT_EQ(writer_.current_written(), 0U);
  }
  EXPECT_EQ(writer_.current(), nullptr);
  ASSERT_TRUE(writer_.commit());
  const Result<File> file = parse(content(path_));
  for (std::size_t i = 0; i < offsets.size(); ++i) EXPECT_EQ(file->tensors()[i].offset, offsets[i]);
}

TEST_F(GgufWriter, RefusesWhatTheReaderWouldRefuse) {
  expect_refused(writer_.add("", Value::scalar(1.0)), Outcome::kInvalidArgument, "empty");
  expect_refused(writer_.add("\xFF", Value::scalar(1.0)), Outcome::kInvalidArgument, "UTF-8");
  expect_refused(writer_.add(std::string(65536, 'k'), Value::scalar(1.0)), Outcome::kInvalidArgument,
                 "65536");
  expect_refused(writer_.add("general.alignment", Value::scalar<std::uint32_t>(24)),
                 Outcome::kInvalidArgument, "24");
  expect_refused(writer_.add("general.alignment", Value::scalar(32.0)), Outcome::kInvalidArgument, "float64");
  expect_refused(writer_.add_tensor("", BlockType::kF32, {1}), Outcome::kInvalidArgument, "empty");
  expect_refused(writer_.add_tensor("t", BlockType::kF32, {}), Outcome::kInvalidArgument, "0 dimensions");
  expect_refused(writer_.add_tensor("t", BlockType::kF32, {1, 1, 1, 1, 1}), Outcome::kInvalidArgument,
                 "5 dimensions");
  expect_refused(writer_.add_tensor("t", BlockType::kF32, {4, 0}), Outcome::kInvalidArgument,
                 "dimension 1 is 0");
  expect_refused(writer_.add_tensor("t", BlockType::kQ4_K, {255}), Outcome::kInvalidArgument, "Q4_K");
  expect_refused(writer_.add_tensor("t", static_cast<BlockType>(4), {32}), Outcome::kInvalidArgument,
                 "type 4");
  expect_refused(writer_.add_tensor("t", BlockType::kF64, {std::numeric_limits<std::uint64_t>::max()}),
                 Outcome::kInvalidArgument, "overflow");
  EXPECT_EQ(writer_.file_bytes(), 32U) << "what was refused is not in the file";
}

TEST_F(GgufWriter, RefusesNamesThatOccurTwiceAndCanGoOnWithoutThem) {
  ASSERT_TRUE(writer_.add("key", Value::scalar(1.0)));
  ASSERT_TRUE(writer_.add("key", Value::scalar(2.0)));
  expect_refused(writer_.begin(*target()), Outcome::kInvalidArgument, "key 'key' occurs twice");
  Writer tensors;
  ASSERT_TRUE(tensors.add_tensor("t", BlockType::kF32, {1}));
  ASSERT_TRUE(tensors.add_tensor("t", BlockType::kF32, {1}));
  expect_refused(tensors.begin(*target()), Outcome::kInvalidArgument, "name 't' occurs twice");
  EXPECT_FALSE(base::system_files().exists(path_));
}

TEST_F(GgufWriter, RefusesMoreThanIsRead) {
  for (std::uint64_t i = 0; i <= kMaxKeys; ++i)
    ASSERT_TRUE(writer_.add(std::to_string(i), Value::scalar(true)));
  expect_refused(writer_.begin(*target()), Outcome::kInvalidArgument, "65537 metadata keys");
  Writer large;
  const std::vector<std::uint8_t> bytes(kMaxMetadataBytes);
  ASSERT_TRUE(large.add("key", Value::array(std::span<const std::uint8_t>(bytes))));
  expect_refused(large.begin(*target()), Outcome::kInvalidArgument, "bytes of metadata");
  Writer nested;
  const std::vector<Value> inner(kMaxNestedArrays + 1, Value::array(std::span<const bool>()));
  ASSERT_TRUE(nested.add("key", *Value::arrays(inner)));
  expect_refused(nested.begin(*target()), Outcome::kInvalidArgument, "65537 arrays inside arrays");
  Writer endless;
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(endless.add_tensor(name, BlockType::kI8, {1ULL << 63}));
  EXPECT_EQ(endless.file_bytes(), std::numeric_limits<std::uint64_t>::max());
  expect_refused(endless.begin(*target()), Outcome::kInvalidArgument, "2^64");
}

TEST_F(GgufWriter, RefusesBytesThatBelongToNoTensor) {
  const Bytes bytes(33);
  ASSERT_TRUE(writer_.add_tensor("t", BlockType::kF32, {8}));
  expect_refused(writer_.write(bytes), Outcome::kWrongState, "begin()");
  ASSERT_TRUE(writer_.begin(*target()));
  expect_refused(writer_.write(bytes), Outcome::kInvalidArgument, "lacks only 32 of 32");
  ASSERT_TRUE(writer_.write(std::span(bytes).first(30)));
  expect_refused(writer_.write(std::span(bytes).first(3)), Outcome::kInvalidArgument, "lacks only 2 of 32");
  expect_refused(writer_.commit(), Outcome::kWrongState, "'t' has 30 of its 32 bytes");
  ASSERT_TRUE(writer_.write(std::span(bytes).first(2)));
  expect_refused(writer_.write(std::span(bytes).first(1)), Outcome::kWrongState, "commit()");
  EXPECT_TRUE(writer_.write({}));
  ASSERT_TRUE(writer_.commit());
  expect_refused(writer_.commit(), Outcome::kWrongState, "finished");
  expect_refused(writer_.write(std::span(bytes).first(1)), Outcome::kWrongState, "finished");
}

TEST_F(GgufWriter, TakesDescriptionsOnlyBeforeItBegins) {
  expect_refused(writer_.commit(), Outcome::kWrongState, "begin()");
  ASSERT_TRUE(writer_.begin(*target()));
  expect_refused(writer_.add("key", Value::scalar(1.0)), Outcome::kWrongState, "before begin()");
  expect_refused(writer_.add_tensor("t", BlockType::kF32, {1}), Outcome::kWrongState, "before begin()");
  expect_refused(writer_.begin(*target()), Outcome::kWrongState, "begin()");
}

TEST_F(GgufWriter, LeavesNoFileWhenItIsDroppedUnfinished) {
  {
    Writer dropped;
    ASSERT_TRUE(describe_sample(dropped));
    ASSERT_TRUE(dropped.begin(*target()));
    ASSERT_TRUE(dropped.write(sample_tensors()[0].data));
  }
  EXPECT_FALSE(base::system_files().exists(path_));
}

TEST_F(GgufWriter, LeavesTheOldFileWhateverFails) {
  const Bytes old = noise(100, 7);
  for (std::uint64_t n = 0;; ++n) {
    auto before = *target();
    ASSERT_TRUE(before->write(old));
    ASSERT_TRUE(before->commit());
    const auto fault = std::make_shared<Fault>(FileOperation::kAny, n);
    FaultyFileSystem files(base::system_files(), fault);
    const Status written = write_sample(files, path_, 100);
    EXPECT_EQ(FaultyReplacingFile::alive(), 0);
    if (!fault->fired()) {
      EXPECT_TRUE(written);
      EXPECT_EQ(content(path_), sample());
      EXPECT_GT(n, 10U);
      break;
    }
    expect_refused(written, Outcome::kIo, "injected");
    EXPECT_EQ(content(path_), old) << "operation " << n;
  }
}

TEST_F(GgufWriter, CannotGoOnAfterAFailedWrite) {
  // The write of the first tensor: after the header and the padding behind it.
  const auto fault = std::make_shared<Fault>(FileOperation::kWrite, 2);
  FaultyFileSystem files(base::system_files(), fault);
  ASSERT_TRUE(describe_sample(writer_));
  ASSERT_TRUE(writer_.begin(*files.replace(path_)));
  expect_refused(writer_.write(sample_tensors()[0].data), Outcome::kIo, "injected");
  EXPECT_EQ(writer_.current(), nullptr);
  expect_refused(writer_.write(sample_tensors()[0].data), Outcome::kWrongState, "failed before");
  expect_refused(writer_.commit(), Outcome::kWrongState, "failed before");
}

TEST_F(GgufWriter, ShowsEveryRefusedAllocationAsOutOfMemory) {
  for (std::uint64_t n = 0;; ++n) {
    Writer writer;
    ASSERT_TRUE(describe_sample(writer));
    auto file = *target();
    Value value = Value::scalar(1.0);
    bool fired = false;
    {
      const kvasir::test::AllocationFault fault(n);
      Status done = writer.add("key", std::move(value));
      if (done) done = writer.add_tensor("t", BlockType::kF32, {});  // refused, but for another reason
      if (!done && done.error().code() == Outcome::kInvalidArgument) done = writer.begin(std::move(file));
      fired = fault.fired();
      ASSERT_NE(done.has_value(), fired) << "allocation " << n;
      if (fired) {
        EXPECT_EQ(done.error().code(), Outcome::kOutOfMemory);
      }
    }
    if (!fired) {
      EXPECT_GT(n, 2U);
      break;
    }
  }
  EXPECT_FALSE(base::system_files().exists(path_));
}

TEST_F(GgufWriter, NeverHoldsTensorData) {
  constexpr std::uint64_t kTensors = 64;
  constexpr std::size_t kTensorBytes = std::size_t{1} << 20;
  for (std::uint64_t i = 0; i < kTensors; ++i) {
    ASSERT_TRUE(writer_.add_tensor(std::to_string(i), BlockType::kI8, {kTensorBytes}));
  }
  const Bytes data = noise(kTensorBytes, 1);
  auto file = *target();
  const kvasir::test::AllocationMeter meter;
  ASSERT_TRUE(writer_.begin(std::move(file)));
  for (std::uint64_t i = 0; i < kTensors; ++i) ASSERT_TRUE(writer_.write(data));
  ASSERT_TRUE(writer_.commit());
  EXPECT_LT(meter.peak(), 256 << 10);
}

}  // namespace
}  // namespace kvasir::gguf::test
