// What the reader refuses, and how it says so.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/allocations.h"

namespace kvasir::gguf::test {
namespace {

using Dims = std::vector<std::uint64_t>;

constexpr std::uint32_t kF32 = 0;
constexpr std::array<std::uint64_t, 5> kHuge = {std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                                std::uint64_t{1} << 48, std::uint64_t{1} << 63,
                                                ~std::uint64_t{0}};

// The file is refused with this code, and each of the parts stands in the sentence.
void expect_refused(const Bytes& bytes, Outcome code, const std::vector<std::string>& parts) {
  auto files = in_memory(bytes);
  const kvasir::test::AllocationMeter meter;
  const Result<File> file = File::parse(std::move(files));
  EXPECT_LT(meter.peak(), static_cast<std::int64_t>(bytes.size()) + (256 << 10));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), code) << file.error().message();
  for (const std::string& part : parts) {
    EXPECT_NE(file.error().message().find(part), std::string::npos) << file.error().message();
  }
}

void expect_corrupt(const RawGguf& file, const std::vector<std::string>& parts) {
  expect_refused(file.bytes(), Outcome::kCorrupt, parts);
}

// One tensor and no metadata, with 1 KiB of tensor data.
RawGguf one_tensor(const Dims& dims, std::uint32_t type = kF32, std::uint64_t offset = 0,
                   std::string_view name = "weights") {
  RawGguf file;
  file.header(1, 0).tensor(name, dims, type, offset).pad(32).raw(noise(1024, 1));
  return file;
}

TEST(GgufRefusals, AFileThatIsNoGguf) {
  expect_refused({}, Outcome::kCorrupt, {"magic", "4 bytes", "0 are left"});
  expect_refused(Bytes(3, std::byte{'G'}), Outcome::kCorrupt, {"3 are left"});
  const std::string text = "#!/bin/sh\n";
  const auto bytes = std::as_bytes(std::span(text));
  expect_refused(Bytes(bytes.begin(), bytes.end()), Outcome::kCorrupt, {"not a GGUF file", "'#!/b'"});
  expect_refused(Bytes(64, std::byte{0x1B}), Outcome::kCorrupt, {"'\\x1B\\x1B\\x1B\\x1B'"});
}

TEST(GgufRefusals, VersionsAndByteOrdersThatAreNotRead) {
  for (const std::uint32_t version : {0U, 4U, 99U, 0xFFFFFFFFU}) {
    expect_refused(RawGguf().header(0, 0, version).bytes(), Outcome::kUnsupported,
                   {"version " + std::to_string(version), "only 2 and 3"});
  }
  expect_refused(RawGguf().header(0, 0, 1).bytes(), Outcome::kUnsupported, {"version 1", "convert"});
  expect_refused(RawGguf().header(0, 0, 0x02000000).bytes(), Outcome::kUnsupported,
                 {"big-endian", "version 2"});
  expect_refused(RawGguf().header(0, 0, 0x03000000).bytes(), Outcome::kUnsupported,
                 {"big-endian", "version 3"});
}

// K44.
TEST(GgufRefusals, CountsThatTheFileCannotHold) {
  for (const std::uint64_t count : kHuge) {
    expect_corrupt(RawGguf().header(count, 0), {"list of tensors", std::to_string(count)});
    expect_corrupt(RawGguf().header(0, count), {"list of metadata keys", std::to_string(count)});
  }
  expect_corrupt(RawGguf().header(0, 1), {"list of metadata keys", "0 are left"});
}

// K44, K47.
TEST(GgufRefusals, LengthsThatTheFileCannotHold) {
  for (const std::uint64_t length : kHuge) {
    RawGguf key;
    key.header(0, 1).u64(length, "").raw(noise(30, 1));
    expect_corrupt(key, {"metadata key 1 of 1", std::to_string(length), "65535"});
    RawGguf string;
    string.header(0, 1).key("key", ValueType::kString).u64(length, "").raw(noise(30, 1));
    expect_corrupt(string, {"'key'", "string", std::to_string(length), "30 are left"});
    RawGguf array;
    array.header(0, 1).key("key", ValueType::kArray).u32(4, "").u64(length, "").raw(noise(30, 1));
    expect_corrupt(array, {"'key'", "array", std::to_string(length) + " times 4 bytes", "30 are left"});
    RawGguf strings;
    strings.header(0, 1).key("key", ValueType::kArray).u32(8, "").u64(length, "").raw(noise(30, 1));
    expect_corrupt(strings, {"'key'", "array of strings", std::to_string(length) + " times 8 bytes"});
    RawGguf arrays;
    arrays.header(0, 1).key("key", ValueType::kArray).u32(9, "").u64(length, "").raw(noise(30, 1));
    expect_corrupt(arrays, {"'key'", "array of arrays", std::to_string(length) + " times 12 bytes"});
    RawGguf name;
    name.header(1, 0).u64(length, "").raw(noise(30, 1));
    expect_corrupt(name, {"tensor 1 of 1", std::to_string(length), "65535"});
  }
}

// K47.
TEST(GgufRefusals, AFewDozenBytesThatClaimMore) {
  RawGguf key;
  key.header(0, 1).u64(std::uint64_t{1} << 48, "").raw(noise(16, 1));
  expect_corrupt(key, {"281474976710656"});
  RawGguf value;
  value.header(0, 1).key("a", ValueType::kString).u64(std::uint64_t{1} << 30, "");
  expect_corrupt(value, {"1073741824", "0 are left"});
}

// K44: a string inside an array of strings.
TEST(GgufRefusals, StringsOfAnArrayThatTheFileCannotHold) {
  for (const std::uint64_t length : kHuge) {
    RawGguf file;
    file.header(0, 1).key("key", ValueType::kArray).u32(8, "").u64(2, "");
    file.text("fine", "").u64(length, "").raw(noise(30, 1));
    expect_corrupt(file, {"'key'", "string", std::to_string(length)});
  }
}

// K44.
TEST(GgufRefusals, DimensionsThatTheFileCannotHold) {
  for (const std::uint64_t dim : kHuge) {
    for (std::size_t place = 0; place < 4; ++place) {
      Dims dims = {1, 1, 1, 1};
      dims[place] = dim;
      expect_corrupt(one_tensor(dims), {"'weights'"});
    }
  }
  expect_corrupt(one_tensor({std::uint64_t{1} << 32, std::uint64_t{1} << 32}), {"'weights'", "overflow"});
  expect_corrupt(one_tensor({std::uint64_t{1} << 62}), {"'weights'", "bytes", "overflow"});
  expect_corrupt(one_tensor({257}), {"'weights'", "1028 bytes", "incomplete"});
}

// K45.
TEST(GgufRefusals, NumbersOfDimensionsOtherThanOneToFour) {
  for (const std::uint32_t n : {0U, 5U, 9U, 0x80000000U, 0xFFFFFFFFU}) {
    RawGguf file;
    file.header(1, 0).text("weights", "").u32(n, "").raw(Bytes(1024, std::byte{1}));
    expect_corrupt(file, {"'weights'", std::to_string(n) + " dimensions", "1 to 4"});
  }
}

// K46.
TEST(GgufRefusals, ADimensionOfZero) {
  for (std::size_t place = 0; place < 4; ++place) {
    Dims dims = {2, 2, 2, 2};
    dims[place] = 0;
    expect_corrupt(one_tensor(dims), {"'weights'", "dimension " + std::to_string(place) + " is 0"});
  }
}

// K46.
TEST(GgufRefusals, AlignmentsThatAreNone) {
  for (const std::uint32_t alignment :
       {0U, 1U, 2U, 3U, 4U, 12U, 33U, 48U, 1U << 21, 1U << 30, 1U << 31, 0xFFFFFFFFU}) {
    RawGguf file;
    file.header(0, 1).entry("general.alignment", Value::scalar(alignment));
    expect_corrupt(file, {"general.alignment is " + std::to_string(alignment), "power of two"});
  }
  for (const std::uint32_t alignment : {8U, 16U, 32U, 4096U, 1U << 20}) {
    RawGguf file;
    file.header(0, 1).entry("general.alignment", Value::scalar(alignment));
    EXPECT_TRUE(parse(file.bytes())) << alignment;
  }
}

// K46.
TEST(GgufRefusals, AlignmentsOfAnotherType) {
  const std::vector<Value> values = {Value::scalar(32.0F), Value::string("32"), Value::scalar(true),
                                     Value::scalar<std::uint64_t>(32), Value::scalar<std::int32_t>(32)};
  for (const Value& value : values) {
    RawGguf file;
    file.header(0, 1).entry("general.alignment", value);
    expect_corrupt(file, {"general.alignment", std::string(value_type_name(value.type())), "uint32"});
  }
}

TEST(GgufRefusals, NamesThatAreEmptyOrNoUtf8) {
  RawGguf empty_key;
  empty_key.header(0, 1).text("", "").raw(noise(30, 1));
  expect_corrupt(empty_key, {"metadata key 1 of 1", "empty"});
  for (const std::string bad :
       {"\xFF", "a\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "cut \xE2\x82"}) {
    RawGguf key;
    key.header(0, 1).entry(bad, Value::scalar(1.0));
    expect_corrupt(key, {"metadata key 1 of 1", "UTF-8", "\\x"});
    expect_corrupt(one_tensor({8}, kF32, 0, bad), {"tensor 1 of 1", "UTF-8"});
  }
  expect_corrupt(one_tensor({8}, kF32, 0, ""), {"tensor 1 of 1", "empty"});
}

TEST(GgufRefusals, NamesThatOccurTwice) {
  RawGguf keys;
  keys.header(0, 3)
      .entry("b", Value::scalar(1.0))
      .entry("a", Value::scalar(1.0))
      .entry("b", Value::scalar(2.0));
  expect_corrupt(keys, {"'b'", "twice"});
  RawGguf tensors;
  tensors.header(2, 0).tensor("t", Dims{8}, kF32, 0).tensor("t", Dims{8}, kF32, 32).pad(32).raw(noise(64, 1));
  expect_corrupt(tensors, {"'t'", "twice"});
}

TEST(GgufRefusals, TypesOfValuesThatDoNotExist) {
  for (const std::uint32_t type : {13U, 255U, 0xFFFFFFFFU}) {
    RawGguf value;
    value.header(0, 1).text("key", "").u32(type, "").raw(Bytes(64));
    expect_corrupt(value, {"'key'", "value type is " + std::to_string(type)});
    RawGguf element;
    element.header(0, 1).key("key", ValueType::kArray).u32(type, "").u64(0, "").raw(Bytes(64));
    expect_corrupt(element, {"'key'", "value type is " + std::to_string(type)});
  }
}

TEST(GgufRefusals, BoolsOtherThanZeroAndOne) {
  for (const std::uint8_t bad : {std::uint8_t{2}, std::uint8_t{255}}) {
    RawGguf value;
    value.header(0, 1).key("key", ValueType::kBool).number(bad, "");
    expect_corrupt(value, {"'key'", "bool is " + std::to_string(bad)});
    RawGguf array;
    array.header(0, 1).key("key", ValueType::kArray).u32(7, "").u64(3, "");
    array.number<std::uint8_t>(1, "").number<std::uint8_t>(0, "").number(bad, "");
    expect_corrupt(array, {"'key'", "bool is " + std::to_string(bad)});
  }
}

TEST(GgufRefusals, ArraysThatLieTooDeepInEachOther) {
  RawGguf file;
  file.header(0, 1).key("key", ValueType::kArray);
  for (int depth = 0; depth < 100; ++depth) file.u32(9, "").u64(1, "");
  file.u32(0, "").u64(0, "");
  expect_refused(file.bytes(), Outcome::kUnsupported, {"'key'", "more than 8 deep"});
}

TEST(GgufRefusals, TypesOfTensorsThatAreNotKnown) {
  for (const std::uint32_t type : {4U, 5U, 31U, 41U, 0xFFFFFFFFU}) {
    expect_refused(one_tensor({256}, type).bytes(), Outcome::kUnsupported,
                   {"'weights'", "type is " + std::to_string(type)});
  }
}

TEST(GgufRefusals, RowsThatAreNoWholeBlocks) {
  for (const quant::BlockTypeInfo& type : quant::block_types()) {
    if (type.values == 1) continue;
    const Dims dims = {type.values + 1, 1};
    expect_corrupt(one_tensor(dims, static_cast<std::uint32_t>(type.type)),
                   {"'weights'", "whole " + std::string(type.name), std::to_string(type.values)});
  }
}

TEST(GgufRefusals, OffsetsThatAreNotAligned) {
  for (const std::uint64_t offset : {1U, 4U, 16U, 31U, 33U}) {
    expect_corrupt(one_tensor({8}, kF32, offset),
                   {"'weights'", "offset " + std::to_string(offset), "alignment 32"});
  }
}

// K49.
TEST(GgufRefusals, TensorDataThatIsNotInTheFile) {
  expect_corrupt(one_tensor({8}, kF32, 1024), {"'weights'", "incomplete", "32 bytes at offset 1024"});
  expect_corrupt(one_tensor({16}, kF32, 992), {"'weights'", "incomplete"});
  for (const std::uint64_t offset : {std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{31}}) {
    expect_corrupt(one_tensor({8}, kF32, offset), {"'weights'", "incomplete", std::to_string(offset)});
  }
  EXPECT_TRUE(parse(one_tensor({8}, kF32, 992).bytes()));
}

TEST(GgufRefusals, TensorsThatOverlap) {
  RawGguf same;
  same.header(2, 0).tensor("a", Dims{16}, kF32, 0).tensor("b", Dims{16}, kF32, 0).pad(32).raw(noise(128, 1));
  expect_corrupt(same, {"'a'", "'b'", "overlap"});
  RawGguf half;
  half.header(3, 0)
      .tensor("c", Dims{8}, kF32, 96)
      .tensor("a", Dims{16}, kF32, 32)
      .tensor("b", Dims{9}, kF32, 0);
  half.pad(32).raw(noise(128, 1));
  expect_corrupt(half, {"'b'", "'a'", "overlap"});
}

TEST(GgufRefusals, MoreEntriesThanAreRead) {
  RawGguf keys;
  keys.header(0, kMaxKeys + 1).raw(Bytes((kMaxKeys + 1) * 14));
  expect_refused(keys.bytes(), Outcome::kUnsupported, {"65537 metadata keys", "65536"});
  RawGguf tensors;
  tensors.header(kMaxTensors + 1, 0).raw(Bytes((kMaxTensors + 1) * 33));
  expect_refused(tensors.bytes(), Outcome::kUnsupported, {"131073 tensors", "131072"});
  RawGguf arrays;
  arrays.header(0, 1).key("key", ValueType::kArray).u32(9, "").u64(kMaxNestedArrays + 1, "");
  arrays.raw(Bytes((kMaxNestedArrays + 1) * 12));
  expect_refused(arrays.bytes(), Outcome::kUnsupported, {"'key'", "65537 more arrays", "65536"});
}

TEST(GgufRefusals, NoFileAtAll) {
  const Result<File> file = File::parse({});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Outcome::kInvalidArgument);
}

TEST(GgufRefusals, ShowHostileNamesInOneReadableLine) {
  const std::string hostile = "\x1B[2J\n" + std::string(1000, 'x');
  const Result<File> file = parse(one_tensor({0}, kF32, 0, hostile).bytes());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message(),
            "tensor '\\x1B[2J\\x0A" + std::string(75, 'x') + "...': dimension 0 is 0");
}

}  // namespace
}  // namespace kvasir::gguf::test
