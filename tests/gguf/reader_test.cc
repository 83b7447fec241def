#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/paths.h"

namespace kvasir::gguf::test {
namespace {

class GgufReader : public testing::TestWithParam<std::uint32_t> {};

TEST_P(GgufReader, TellsTheSampleAsItWasPutTogether) {
  const Result<File> file = parse(sample(GetParam()));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->version(), GetParam());
  EXPECT_EQ(file->alignment(), kSampleAlignment);
  EXPECT_EQ(file->shard_count(), 1U);
  EXPECT_EQ(file->size_bytes(), sample().size());
  const std::vector<KeyValue> expected = sample_metadata();
  ASSERT_EQ(file->metadata().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(file->metadata()[i].key, expected[i].key);
    EXPECT_EQ(file->metadata()[i].value, expected[i].value) << expected[i].key;
  }
  const std::vector<SampleTensor> tensors = sample_tensors();
  ASSERT_EQ(file->tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = file->tensors()[i];
    EXPECT_EQ(tensor.name, tensors[i].name);
    EXPECT_EQ(tensor.type, tensors[i].type);
    EXPECT_EQ(tensor.dims, tensors[i].dims);
    EXPECT_EQ(tensor.bytes, tensors[i].data.size());
    Bytes data(tensor.bytes);
    ASSERT_TRUE(file->read(tensor, 0, data));
    EXPECT_EQ(data, tensors[i].data) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, GgufReader, testing::Values(2U, 3U));

TEST(GgufReader, FindsKeysAndTensorsByNameAndNothingElse) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  for (const KeyValue& entry : file->metadata()) EXPECT_EQ(file->find(entry.key), &entry.value);
  for (const Tensor& tensor : file->tensors()) EXPECT_EQ(file->find_tensor(tensor.name), &tensor);
  for (const char* absent : {"", "a", "a.uint", "a.uint88", "zzz", "half "}) {
    EXPECT_EQ(file->find(absent), nullptr) << absent;
    EXPECT_EQ(file->find_tensor(absent), nullptr) << absent;
  }
}

TEST(GgufReader, KeepsItsPointersWhenItMoves) {
  Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  const Value* value = file->find("a.string");
  const Tensor* tensor = file->find_tensor("half");
  const File moved = *std::move(file);
  EXPECT_EQ(moved.find("a.string"), value);
  EXPECT_EQ(moved.find_tensor("half"), tensor);
}

TEST(GgufReader, AnswersTypedValues) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->get_uint("a.uint8").value(), 200U);
  EXPECT_EQ(file->get_int("a.int32").value(), -2000000000);
  EXPECT_EQ(file->get_float("a.float32").value(), static_cast<double>(0.1F));
  EXPECT_EQ(file->get_float("a.int8").value(), -100.0);
  EXPECT_EQ(file->get_bool("a.bool").value(), true);
  EXPECT_EQ(file->get_string("general.architecture").value(), "sample");
  EXPECT_EQ(file->get_int_array("many.int8").value(), std::vector<std::int64_t>({-128, 127}));
  EXPECT_EQ(file->get_float_array("many.uint16").value(), std::vector<double>({0, 65535}));
  EXPECT_EQ(file->get_string_array("many.string").value(),
            std::vector<std::string_view>({"", "one", "zwei \xF0\x9F\x90\xA6"}));
  EXPECT_TRUE(file->get_string_array("none.string").value().empty());
}

template <class T>
void expect_refused(const Result<T>& result, Outcome code, const std::string& sentence) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code);
  EXPECT_EQ(result.error().message(), sentence);
}

TEST(GgufReader, NamesTheKeyThatIsMissing) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  const std::string sentence = "the metadata key 'no.such' is missing";
  expect_refused(file->get_uint("no.such"), Outcome::kNotFound, sentence);
  expect_refused(file->get_int("no.such"), Outcome::kNotFound, sentence);
  expect_refused(file->get_float("no.such"), Outcome::kNotFound, sentence);
  expect_refused(file->get_bool("no.such"), Outcome::kNotFound, sentence);
  expect_refused(file->get_string("no.such"), Outcome::kNotFound, sentence);
  expect_refused(file->get_int_array("no.such"), Outcome::kNotFound, sentence);
  expect_refused(file->get_float_array("no.such"), Outcome::kNotFound, sentence);
  expect_refused(file->get_string_array("no.such"), Outcome::kNotFound, sentence);
}

TEST(GgufReader, NamesTheKeyWhoseValueDoesNotFit) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  expect_refused(file->get_uint("a.int8"), Outcome::kCorrupt,
                 "the metadata key 'a.int8' is the int8 -100; an integer of 0 or more is needed");
  expect_refused(file->get_uint("a.float64"), Outcome::kCorrupt,
                 "the metadata key 'a.float64' is the float64 1e+300; an integer of 0 or more is needed");
  expect_refused(
      file->get_int("a.uint64"), Outcome::kCorrupt,
      "the metadata key 'a.uint64' is the uint64 18446744073709551615; an integer below 2^63 is needed");
  expect_refused(file->get_float("general.architecture"), Outcome::kCorrupt,
                 "the metadata key 'general.architecture' is the string 'sample'; a number is needed");
  expect_refused(file->get_bool("a.uint8"), Outcome::kCorrupt,
                 "the metadata key 'a.uint8' is the uint8 200; a bool is needed");
  expect_refused(file->get_string("many.int8"), Outcome::kCorrupt,
                 "the metadata key 'many.int8' is an array of 2 int8; a string is needed");
  expect_refused(file->get_string_array("a.string"), Outcome::kCorrupt,
                 "the metadata key 'a.string' is the string 'gr\xC3\xBC\xC3\x9F dich\\x0A'; an array of "
                 "strings is needed");
  expect_refused(
      file->get_string_array("many.int8"), Outcome::kCorrupt,
      "element 0: the metadata key 'many.int8' is an array of 2 int8; an array of strings is needed");
  expect_refused(
      file->get_int_array("many.uint64"), Outcome::kCorrupt,
      "element 1: the metadata key 'many.uint64' is an array of 2 uint64; an array of integers below 2^63 "
      "is needed");
  expect_refused(
      file->get_float_array("many.array"), Outcome::kCorrupt,
      "element 0: the metadata key 'many.array' is an array of 2 array; an array of numbers is needed");
}

TEST(GgufReader, ReadsAnyPartOfATensorAndNothingBeyondIt) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  const Tensor& tensor = *file->find_tensor("blocks");
  const Bytes expected = sample_tensors()[3].data;
  Bytes part(34);
  ASSERT_TRUE(file->read(tensor, 102, part));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + 102));
  EXPECT_TRUE(file->read(tensor, 136, {}));
  for (const std::uint64_t offset :
       {std::uint64_t{103}, std::uint64_t{136}, std::uint64_t{137}, UINT64_MAX}) {
    const Status beyond = file->read(tensor, offset, part);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().code(), Outcome::kInvalidArgument);
  }
  Tensor foreign = tensor;
  foreign.shard = 1;
  const Status refused = file->read(foreign, 0, part);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Outcome::kInvalidArgument);
}

TEST(GgufReader, TellsShapesInRowsAndElements) {
  const Result<File> file = parse(sample());
  ASSERT_TRUE(file);
  const Tensor& blocks = *file->find_tensor("blocks");
  EXPECT_EQ(blocks.row_length(), 64U);
  EXPECT_EQ(blocks.rows(), 2U);
  EXPECT_EQ(blocks.elements(), 128U);
  EXPECT_EQ(Tensor{}.elements(), 0U);
}

TEST(GgufReader, TakesAFileOfMetadataAlone) {
  RawGguf raw;
  raw.header(0, 1).entry("general.architecture", Value::string("vocabulary"));
  const Result<File> file = parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_EQ(file->alignment(), kDefaultAlignment);
  EXPECT_TRUE(parse(RawGguf().header(0, 0).bytes()));
}

TEST(GgufReader, TakesTensorsInAnyOrderOfOffsetsWithGapsBetween) {
  RawGguf raw;
  raw.header(2, 0);
  raw.tensor("second", std::vector<std::uint64_t>{8}, 0, 128)
      .tensor("first", std::vector<std::uint64_t>{8}, 0, 0);
  raw.pad(32).raw(noise(32, 1)).raw(noise(96, 2)).raw(noise(32, 3));
  const Result<File> file = parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message();
  Bytes data(32);
  ASSERT_TRUE(file->read(*file->find_tensor("second"), 0, data));
  EXPECT_EQ(data, noise(32, 3));
}

TEST(GgufReader, TakesNamesAndArraysAtTheirLimits) {
  const std::string longest(kMaxNameBytes, 'k');
  Value deepest = Value::array(std::span<const bool>());
  for (int depth = 1; depth < kMaxArrayDepth; ++depth) deepest = *Value::arrays({deepest});
  RawGguf raw;
  raw.header(1, 2).entry(longest, Value::scalar(1.0)).entry("deep", deepest);
  raw.tensor(longest, std::vector<std::uint64_t>{1}, 0, 0).pad(32).raw(noise(4, 1));
  const Result<File> file = parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_NE(file->find_tensor(longest), nullptr);
  EXPECT_EQ(file->find("deep")->depth(), kMaxArrayDepth);
}

TEST(GgufReader, OpensAFileOfTheSystem) {
  const std::string path = kvasir::test::scratch_directory() + "/sample.gguf";
  auto target = base::system_files().replace(path);
  ASSERT_TRUE(target);
  ASSERT_TRUE((*target)->write(sample()));
  ASSERT_TRUE((*target)->commit());
  const Result<File> file = File::open(base::system_files(), path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->metadata().size(), sample_metadata().size());
  const Result<File> absent = File::open(base::system_files(), path + ".no");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Outcome::kNotFound);
}

}  // namespace
}  // namespace kvasir::gguf::test
