#include "gguf/split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/paths.h"

namespace kvasir::gguf::test {
namespace {

using Dims = std::vector<std::uint64_t>;

// What a shard says of itself; nothing where the key is left out.
struct Place {
  std::optional<std::uint16_t> number;
  std::optional<std::uint16_t> count;
  std::optional<std::int32_t> tensors;
};

// A shard with one tensor of 32 bytes.
Bytes shard(const Place& place, std::string_view tensor, std::uint64_t seed) {
  std::vector<KeyValue> metadata = {{"own", Value::scalar(seed)}};
  if (place.number) metadata.push_back({"split.no", Value::scalar(*place.number)});
  if (place.count) metadata.push_back({"split.count", Value::scalar(*place.count)});
  if (place.tensors) metadata.push_back({"split.tensors.count", Value::scalar(*place.tensors)});
  RawGguf file;
  file.header(1, metadata.size());
  for (const KeyValue& entry : metadata) file.entry(entry.key, entry.value);
  file.tensor(tensor, Dims{8}, 0, 0).pad(32).raw(noise(32, seed));
  return file.bytes();
}

std::vector<Bytes> three_shards() {
  return {shard({0, 3, 3}, "a", 1), shard({1, 3, 3}, "b", 2), shard({2, 3, 3}, "c", 3)};
}

Result<File> parse_all(std::vector<Bytes> shards) {
  std::vector<std::unique_ptr<base::ReadFile>> files;
  for (Bytes& bytes : shards) files.push_back(base::memory_file(std::move(bytes)));
  return File::parse(std::move(files));
}

void write_file(const std::string& path, const Bytes& bytes) {
  auto target = base::system_files().replace(path);
  ASSERT_TRUE(target);
  ASSERT_TRUE((*target)->write(bytes));
  ASSERT_TRUE((*target)->commit());
}

// A directory with the shards under their names.
std::string stored(const std::vector<Bytes>& shards) {
  const std::string stem = kvasir::test::scratch_directory() + "/model";
  for (std::size_t i = 0; i < shards.size(); ++i) {
    write_file(fmt::format("{}-{:05}-of-{:05}.gguf", stem, i + 1, shards.size()), shards[i]);
  }
  return stem;
}

void expect_whole(const Result<File>& file) {
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->shard_count(), 3U);
  EXPECT_EQ(file->get_uint("own").value(), 1U);
  ASSERT_EQ(file->tensors().size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Tensor& tensor = file->tensors()[i];
    EXPECT_EQ(tensor.name, std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(tensor.shard, i);
    Bytes data(32);
    ASSERT_TRUE(file->read(tensor, 0, data));
    EXPECT_EQ(data, noise(32, i + 1));
  }
}

void expect_refused(const Result<File>& file, Outcome code, const std::string& part) {
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), code) << file.error().message();
  EXPECT_NE(file.error().message().find(part), std::string::npos) << file.error().message();
}

TEST(GgufSplit, AnyShardOpensAllOfThem) {
  const std::string stem = stored(three_shards());
  for (int i = 1; i <= 3; ++i) {
    expect_whole(File::open(base::system_files(), fmt::format("{}-{:05}-of-00003.gguf", stem, i)));
  }
}

TEST(GgufSplit, ShardsThatAreOpenAlreadyAreTakenInOrder) {
  expect_whole(parse_all(three_shards()));
  EXPECT_EQ(parse_all(three_shards())->size_bytes(), three_shards()[0].size() * 3);
}

TEST(GgufSplit, RefusesShardsInAnotherOrderOrNumber) {
  std::vector<Bytes> shards = three_shards();
  std::swap(shards[1], shards[2]);
  expect_refused(parse_all(shards), Outcome::kCorrupt, "shard 2 of 3 says it is shard 3 of 3");
  shards = three_shards();
  shards.pop_back();
  expect_refused(parse_all(shards), Outcome::kCorrupt, "shard 1 of 2 says it is shard 1 of 3");
  expect_refused(parse(three_shards()[1]), Outcome::kCorrupt, "shard 1 of 1 says it is shard 2 of 3");
}

TEST(GgufSplit, NamesTheShardThatIsMissing) {
  const std::string stem = stored(three_shards());
  ASSERT_TRUE(base::system_files().remove(stem + "-00002-of-00003.gguf"));
  expect_refused(File::open(base::system_files(), stem + "-00001-of-00003.gguf"), Outcome::kNotFound,
                 "model-00002-of-00003.gguf");
}

TEST(GgufSplit, SaysWhenTheNameDoesNotLeadToTheOthers) {
  const std::string path = kvasir::test::scratch_directory() + "/model.gguf";
  write_file(path, three_shards()[1]);
  expect_refused(File::open(base::system_files(), path), Outcome::kNotFound, "-00002-of-00003.gguf");
}

TEST(GgufSplit, RefusesAShardUnderTheNameOfAnother) {
  const std::string stem = stored(three_shards());
  write_file(stem + "-00002-of-00003.gguf", three_shards()[2]);
  expect_refused(File::open(base::system_files(), stem + "-00002-of-00003.gguf"), Outcome::kCorrupt,
                 "says inside that it is shard 3 of 3");
  expect_refused(File::open(base::system_files(), stem + "-00001-of-00003.gguf"), Outcome::kCorrupt,
                 "shard 2 of 3 says it is shard 3 of 3");
}

TEST(GgufSplit, RefusesATensorCountThatDisagrees) {
  std::vector<Bytes> shards = three_shards();
  shards[0] = shard({0, 3, 4}, "a", 1);
  expect_refused(parse_all(shards), Outcome::kCorrupt,
                 "split.tensors.count is 4, but the shards hold 3 tensors");
  shards[0] = shard({0, 3, std::nullopt}, "a", 1);
  expect_refused(parse_all(shards), Outcome::kCorrupt, "lacks the metadata key split.tensors.count");
  shards[0] = shard({0, 3, -3}, "a", 1);
  expect_refused(parse_all(shards), Outcome::kCorrupt, "split.tensors.count must be a count");
}

TEST(GgufSplit, RefusesATensorThatTwoShardsHold) {
  std::vector<Bytes> shards = three_shards();
  shards[2] = shard({2, 3, 3}, "a", 3);
  expect_refused(parse_all(shards), Outcome::kCorrupt, "'a' occurs twice");
}

TEST(GgufSplit, NamesTheShardThatIsDamaged) {
  std::vector<Bytes> shards = three_shards();
  shards[1].resize(shards[1].size() - 1);
  expect_refused(parse_all(shards), Outcome::kCorrupt, "shard 2 of 3: tensor 'b'");
  const std::string stem = stored(shards);
  expect_refused(File::open(base::system_files(), stem + "-00003-of-00003.gguf"), Outcome::kCorrupt,
                 "model-00002-of-00003.gguf': tensor 'b'");
}

TEST(GgufSplit, RefusesMoreTensorsThanAreReadOverAllShards) {
  constexpr std::uint64_t kEach = kMaxTensors / 2 + 1;
  std::vector<Bytes> shards;
  for (std::uint16_t number = 0; number < 2; ++number) {
    RawGguf file;
    file.header(kEach, 3).entry("split.no", Value::scalar(number));
    file.entry("split.count", Value::scalar<std::uint16_t>(2));
    file.entry("split.tensors.count", Value::scalar(static_cast<std::int32_t>(2 * kEach)));
    for (std::uint64_t i = 0; i < kEach; ++i) {
      file.tensor(fmt::format("{}.{:x}", number, i), Dims{1}, 24, i * 32);
    }
    shards.push_back(file.pad(32).raw(Bytes(kEach * 32)).bytes());
  }
  expect_refused(parse_all(shards), Outcome::kUnsupported, "131074 tensors up to shard 2; at most 131072");
}

TEST(GgufSplit, TakesAFileThatSaysItIsWhole) {
  for (const Place& place : {Place{}, Place{0, 1, 1}, Place{0, 0, 1}, Place{std::nullopt, 1, std::nullopt}}) {
    EXPECT_TRUE(parse(shard(place, "a", 1)));
  }
}

TEST(GgufSplit, RefusesPlacesThatCannotBe) {
  expect_refused(parse(shard({1, 1, 1}, "a", 1)), Outcome::kCorrupt, "split.no is 1, but split.count is 1");
  expect_refused(parse(shard({3, 3, 3}, "a", 1)), Outcome::kCorrupt, "split.no is 3, but split.count is 3");
  RawGguf huge;
  huge.header(0, 1).entry("split.count", Value::scalar<std::uint64_t>(65536));
  expect_refused(parse(huge.bytes()), Outcome::kCorrupt, "split.count is 65536");
  RawGguf text;
  text.header(0, 1).entry("split.count", Value::string("3"));
  expect_refused(parse(text.bytes()), Outcome::kCorrupt, "split.count must be a count, not of type string");
}

TEST(GgufSplit, TellsTheNamesOfShardsFromOthers) {
  const auto name = parse_split_name("/models/big-00002-of-00012.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "/models/big");
  EXPECT_EQ(name->number, 1U);
  EXPECT_EQ(name->count, 12U);
  EXPECT_EQ(name->sibling(0), "/models/big-00001-of-00012.gguf");
  EXPECT_EQ(name->sibling(11), "/models/big-00012-of-00012.gguf");
  for (const char* other :
       {"", ".gguf", "model.gguf", "-of-00003.gguf", "m-0001-of-00003.gguf", "m-00001-of-0003.gguf",
        "m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-00001-of-00003.bin", "m00001-of-00003.gguf",
        "m-0000a-of-00003.gguf", "m-+0001-of-00003.gguf", "m-00001of-00003.gguf"}) {
    EXPECT_FALSE(parse_split_name(other)) << other;
  }
}

}  // namespace
}  // namespace kvasir::gguf::test
