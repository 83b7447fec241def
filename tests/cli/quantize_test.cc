#include "cli/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/hooks.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "quant/block_type.h"
#include "support/faults.h"
#include "support/paths.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using gguf::Value;
using quant::BlockType;

struct SourceTensor {
  std::string name;
  BlockType type;
  std::vector<std::uint64_t> dims;
};

// A small model of odd shapes, with tensors of every way to be treated.
std::vector<SourceTensor> source_tensors() {
  return {
      {"token_embd.weight", BlockType::kF16, {256, 300}},
      {"output_norm.weight", BlockType::kF32, {256}},
      {"blk.0.attn_norm.weight", BlockType::kF32, {256}},
      {"blk.0.attn_q.weight", BlockType::kF16, {256, 64}},
      {"blk.0.attn_v.weight", BlockType::kBF16, {512, 48}},
      {"blk.0.attn_output.weight", BlockType::kF32, {96, 256}},
      {"blk.0.ffn_gate.weight", BlockType::kF16, {40, 32}},
      {"blk.0.ffn_gate_inp.weight", BlockType::kF32, {256, 4}},
      {"blk.0.ffn_down.weight", BlockType::kQ8_0, {256, 32}},
      {"blk.0.ffn_up_exps.weight", BlockType::kF16, {256, 24, 3}},
      {"blk.0.table", BlockType::kI32, {7}},
  };
}

constexpr float kNormalDeviation = 0.02F;

std::vector<std::byte> random_blocks(const SourceTensor& tensor, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, kNormalDeviation);
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : tensor.dims) elements *= dim;
  const quant::BlockTypeInfo& info = quant::block_type_info(tensor.type);
  std::vector<std::byte> blocks(elements / info.values * info.bytes);
  if (!info.packs) return blocks;
  std::vector<float> values(elements);
  for (float& value : values) value = normal(random);
  EXPECT_TRUE(quant::pack(tensor.type, values, blocks));
  return blocks;
}

struct Part {
  std::size_t first;
  std::size_t end;
};

// Writes source tensors [part.first, part.end) with their metadata; `shard` of `shards`, 1 for a whole file.
void write_source(const std::string& path, const std::vector<SourceTensor>& tensors, Part part,
                  std::uint16_t shard = 0, std::uint16_t shards = 1) {
  gguf::Writer writer;
  if (shard == 0) {
    ASSERT_TRUE(writer.add("general.architecture", Value::string("llama")));
    ASSERT_TRUE(writer.add("general.file_type", Value::scalar<std::uint32_t>(1)));
    ASSERT_TRUE(writer.add("general.alignment", Value::scalar<std::uint32_t>(64)));
    ASSERT_TRUE(writer.add("llama.block_count", Value::scalar<std::uint32_t>(1)));
    const std::vector<std::string> words = {"a", "b", ""};
    ASSERT_TRUE(writer.add("tokenizer.ggml.tokens", Value::strings(std::span<const std::string>(words))));
  } else {
    ASSERT_TRUE(writer.add("general.alignment", Value::scalar<std::uint32_t>(64)));
  }
  if (shards > 1) {
    ASSERT_TRUE(writer.add("split.no", Value::scalar<std::uint16_t>(shard)));
    ASSERT_TRUE(writer.add("split.count", Value::scalar<std::uint16_t>(shards)));
    ASSERT_TRUE(writer.add("split.tensors.count", Value::scalar(static_cast<std::int32_t>(tensors.size()))));
  }
  for (std::size_t i = part.first; i < part.end; ++i) {
    ASSERT_TRUE(writer.add_tensor(tensors[i].name, tensors[i].type, tensors[i].dims));
  }
  auto file = base::system_files().replace(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(writer.begin(*std::move(file)));
  for (std::size_t i = part.first; i < part.end; ++i) ASSERT_TRUE(writer.write(random_blocks(tensors[i], i)));
  ASSERT_TRUE(writer.commit());
}

std::string write_model(const std::string& directory,
                        const std::vector<SourceTensor>& tensors = source_tensors()) {
  const std::string path = directory + "/in.gguf";
  write_source(path, tensors, {0, tensors.size()});
  return path;
}

QuantizeOptions options_for(const std::string& input, const std::string& output, const char* type) {
  const auto target = find_weight_target(type);
  EXPECT_TRUE(target) << type;
  return {.input = input, .output = output, .target = *target, .threads = 2};
}

std::vector<std::byte> bytes_of(const std::string& path) {
  auto bytes = base::read_whole(base::system_files(), path, std::uint64_t{64} << 20);
  EXPECT_TRUE(bytes) << path;
  return bytes ? *std::move(bytes) : std::vector<std::byte>{};
}

std::vector<std::byte> data_of(const gguf::File& file, const std::string& name) {
  const gguf::Tensor* tensor = file.find_tensor(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<std::byte> bytes(tensor->bytes);
  EXPECT_TRUE(file.read(*tensor, 0, bytes)) << name;
  return bytes;
}

// The whole of a source tensor in another type, by the two functions that define it.
std::vector<std::byte> converted(const SourceTensor& tensor, const std::vector<std::byte>& blocks,
                                 BlockType type) {
  const quant::BlockTypeInfo& from = quant::block_type_info(tensor.type);
  const quant::BlockTypeInfo& to = quant::block_type_info(type);
  std::vector<float> values(blocks.size() / from.bytes * from.values);
  EXPECT_TRUE(quant::unpack(tensor.type, blocks, values));
  std::vector<std::byte> result(values.size() / to.values * to.bytes);
  EXPECT_TRUE(quant::pack(type, values, result));
  return result;
}

TEST(Quantize, GivesEveryTensorTheBlocksThatPackingItWholeGives) {
  const std::string directory = test::scratch_directory();
  const std::string input = write_model(directory);
  const std::vector<SourceTensor> tensors = source_tensors();
  for (const quant::BlockTypeInfo& info : quant::block_types()) {
    if (!info.packs) continue;
    test::RecordingHooks recorder;
    const auto options = options_for(input, directory + "/out.gguf", std::string(info.name).c_str());
    const auto report = quantize(base::system_files(), options, recorder.hooks());
    ASSERT_TRUE(report) << report.error().message();
    const auto file = gguf::File::open(base::system_files(), options.output);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_EQ(file->tensors().size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const gguf::Tensor& tensor = file->tensors()[i];
      ASSERT_EQ(tensor.name, tensors[i].name);
      EXPECT_EQ(tensor.dims, tensors[i].dims);
      const std::vector<std::byte> source = random_blocks(tensors[i], i);
      const std::vector<std::byte> expected =
          tensor.type == tensors[i].type ? source : converted(tensors[i], source, tensor.type);
      EXPECT_EQ(data_of(*file, tensor.name), expected) << info.name << " " << tensor.name;
    }
  }
}

TEST(Quantize, ChoosesTypesByShapeAndKeepsTheRest) {
  const std::string directory = test::scratch_directory();
  test::RecordingHooks recorder;
  const auto options = options_for(write_model(directory), directory + "/out.gguf", "Q4_K");
  const auto report = quantize(base::system_files(), options, recorder.hooks());
  ASSERT_TRUE(report);
  const auto file = gguf::File::open(base::system_files(), options.output);
  ASSERT_TRUE(file);
  const std::vector<BlockType> expected = {BlockType::kQ4_K, BlockType::kF32,  BlockType::kF32,
                                           BlockType::kQ4_K, BlockType::kQ4_K, BlockType::kQ8_0,
                                           BlockType::kF16,  BlockType::kF32,  BlockType::kQ4_K,
                                           BlockType::kQ4_K, BlockType::kI32};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(file->tensors()[i].type, expected[i]) << file->tensors()[i].name;
  }
  EXPECT_EQ(report->tensors, 11U);
  EXPECT_EQ(report->converted, 6U);
  EXPECT_EQ(report->bytes_written, fs::file_size(options.output));
  EXPECT_EQ(recorder.total(), fs::file_size(options.output));
  ASSERT_EQ(recorder.notes().size(), 3U);
  EXPECT_NE(recorder.notes()[0].find("rows of 40"), std::string::npos);
  EXPECT_NE(recorder.notes()[0].find("F16: blk.0.ffn_gate.weight"), std::string::npos);
  EXPECT_NE(recorder.notes()[1].find("Q8_0: blk.0.attn_output.weight"), std::string::npos);
  EXPECT_NE(recorder.notes()[2].find("Q8_0 already"), std::string::npos);
}

TEST(Quantize, CopiesMetadataAndSaysTheNewFileType) {
  const std::string directory = test::scratch_directory();
  test::RecordingHooks recorder;
  const auto options = options_for(write_model(directory), directory + "/out.gguf", "Q4_K_M");
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  const auto before = gguf::File::open(base::system_files(), options.input);
  const auto after = gguf::File::open(base::system_files(), options.output);
  ASSERT_TRUE(before && after);
  for (const gguf::KeyValue& entry : before->metadata()) {
    if (entry.key == "general.file_type") continue;
    ASSERT_NE(after->find(entry.key), nullptr) << entry.key;
    EXPECT_EQ(*after->find(entry.key), entry.value) << entry.key;
  }
  EXPECT_EQ(after->alignment(), 64U);
  EXPECT_EQ(after->get_uint("general.file_type").value_or(0), 15U);
  EXPECT_EQ(after->get_uint("general.quantization_version").value_or(0), 2U);
  EXPECT_EQ(after->metadata().size(), before->metadata().size() + 1);
}

TEST(Quantize, TheSameFromASplitFromOneFileAndOnAnyNumberOfThreads) {
  const std::string directory = test::scratch_directory();
  const std::vector<SourceTensor> tensors = source_tensors();
  write_source(directory + "/m-00001-of-00002.gguf", tensors, {0, 5}, 0, 2);
  write_source(directory + "/m-00002-of-00002.gguf", tensors, {5, tensors.size()}, 1, 2);
  test::RecordingHooks recorder;
  auto options = options_for(write_model(directory), directory + "/out.gguf", "Q5_1");
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  const std::vector<std::byte> expected = bytes_of(options.output);
  options.threads = 1;
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  EXPECT_EQ(bytes_of(options.output), expected);
  options.threads = 5;
  options.input = directory + "/m-00002-of-00002.gguf";
  const auto from_split = quantize(base::system_files(), options, recorder.hooks());
  ASSERT_TRUE(from_split) << from_split.error().message();
  EXPECT_EQ(bytes_of(options.output), expected);
}

TEST(Quantize, MayReplaceItsOwnInput) {
  const std::string directory = test::scratch_directory();
  test::RecordingHooks recorder;
  auto options = options_for(write_model(directory), directory + "/out.gguf", "Q4_0");
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  options.output = options.input;
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  EXPECT_EQ(bytes_of(options.input), bytes_of(directory + "/out.gguf"));
}

TEST(Quantize, CopiesTensorsThatHaveTheirTypeAlready) {
  const std::string directory = test::scratch_directory();
  test::RecordingHooks recorder;
  auto options = options_for(write_model(directory), directory + "/once.gguf", "Q4_K");
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  options.input = options.output;
  options.output = directory + "/twice.gguf";
  const auto again = quantize(base::system_files(), options, recorder.hooks());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->converted, 0U);
  EXPECT_EQ(bytes_of(options.output), bytes_of(options.input));
}

TEST(Quantize, ATensorLargerThanManyPiecesComesOutWhole) {
  const std::string directory = test::scratch_directory();
  const std::vector<SourceTensor> tensors = {
      {"output.weight", BlockType::kF16, {288, 10007}}};  // 44 pieces, the last short
  const std::string input = write_model(directory, tensors);
  test::RecordingHooks recorder;
  const auto options = options_for(input, directory + "/out.gguf", "Q8_0");
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  const auto file = gguf::File::open(base::system_files(), options.output);
  ASSERT_TRUE(file);
  EXPECT_EQ(data_of(*file, "output.weight"),
            converted(tensors[0], random_blocks(tensors[0], 0), BlockType::kQ8_0));
}

TEST(Quantize, SaysWhatWasNotFinite) {
  const std::string directory = test::scratch_directory();
  gguf::Writer writer;
  ASSERT_TRUE(writer.add_tensor("output.weight", BlockType::kF32, {32, 2}));
  ASSERT_TRUE(writer.begin(*base::system_files().replace(directory + "/in.gguf")));
  std::vector<float> values(64, 1.0F);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[40] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(writer.write(std::as_bytes(std::span(values))));
  ASSERT_TRUE(writer.commit());
  test::RecordingHooks recorder;
  const auto options = options_for(directory + "/in.gguf", directory + "/out.gguf", "F16");
  ASSERT_TRUE(quantize(base::system_files(), options, recorder.hooks()));
  ASSERT_EQ(recorder.notes().size(), 1U);
  EXPECT_NE(recorder.notes()[0].find("'output.weight': 2 values"), std::string::npos) << recorder.notes()[0];
  const auto file = gguf::File::open(base::system_files(), options.output);
  ASSERT_TRUE(file);
  std::vector<float> result(64);
  ASSERT_TRUE(quant::unpack(BlockType::kF16, data_of(*file, "output.weight"), result));
  EXPECT_EQ(result[3], 0.0F);
  EXPECT_EQ(result[40], 65504.0F);
  EXPECT_EQ(result[0], 1.0F);
}

TEST(Quantize, RefusesATypeThatItCannotReadNamingTheTensor) {
  const std::string directory = test::scratch_directory();
  const std::string input = write_model(directory, {{"blk.0.attn_q.weight", BlockType::kIQ1_S, {256, 2}}});
  test::RecordingHooks recorder;
  const auto done =
      quantize(base::system_files(), options_for(input, directory + "/out.gguf", "Q4_0"), recorder.hooks());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Outcome::kUnsupported);
  EXPECT_NE(done.error().message().find("blk.0.attn_q.weight"), std::string::npos);
  EXPECT_NE(done.error().message().find("IQ1_S"), std::string::npos);
  EXPECT_FALSE(fs::exists(directory + "/out.gguf"));
}

TEST(Quantize, RefusesATypeThatItCannotWriteWithThoseItCan) {
  const std::string directory = test::scratch_directory();
  test::RecordingHooks recorder;
  const auto done =
      quantize(base::system_files(), options_for(write_model(directory), directory + "/out.gguf", "IQ3_S"),
               recorder.hooks());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Outcome::kUnsupported);
  EXPECT_NE(done.error().message().find("Q4_K_M"), std::string::npos);
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

TEST(Quantize, LeavesTheOldFileWhateverFileOperationFails) {
  const std::string directory = test::scratch_directory();
  const std::string input = write_model(directory);
  const std::string output = directory + "/out.gguf";
  test::RecordingHooks recorder;
  ASSERT_TRUE(quantize(base::system_files(), options_for(input, output, "Q8_0"), recorder.hooks()));
  const std::vector<std::byte> old = bytes_of(output);
  std::uint64_t failures = 0;
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<test::Fault>(test::FileOperation::kAny, n);
    test::FaultyFileSystem files(base::system_files(), fault);
    const auto done = quantize(files, options_for(input, output, "Q4_0"), recorder.hooks());
    if (!fault->fired()) {
      EXPECT_TRUE(done);
      break;
    }
    ++failures;
    ASSERT_FALSE(done) << "operation " << n;
    EXPECT_EQ(done.error().code(), Outcome::kIo);
    ASSERT_EQ(bytes_of(output), old) << "operation " << n;
    ASSERT_EQ(names_in(directory), (std::vector<std::string>{"in.gguf", "out.gguf"})) << "operation " << n;
  }
  EXPECT_GT(failures, 2 * source_tensors().size());  // a read and a write of each, and more
  EXPECT_NE(bytes_of(output), old);
  EXPECT_EQ(test::FaultyReplacingFile::alive(), 0);
  EXPECT_EQ(test::FaultyReadFile::alive(), 0);
}

TEST(Quantize, LeavesTheOldFileWhenItIsStopped) {
  const std::string directory = test::scratch_directory();
  const std::string input = write_model(directory);
  for (const int calls : {0, 1, 5, 11}) {
    test::RecordingHooks recorder(calls);
    const auto done =
        quantize(base::system_files(), options_for(input, directory + "/out.gguf", "Q4_0"), recorder.hooks());
    ASSERT_FALSE(done) << calls;
    EXPECT_EQ(done.error().code(), Outcome::kCancelled);
    EXPECT_EQ(names_in(directory), (std::vector<std::string>{"in.gguf"}));
  }
}

TEST(Quantize, RefusesAFileThatEndsEarly) {
  const std::string directory = test::scratch_directory();
  const std::string input = write_model(directory);
  fs::resize_file(input, fs::file_size(input) - 100);
  test::RecordingHooks recorder;
  const auto done =
      quantize(base::system_files(), options_for(input, directory + "/out.gguf", "Q4_0"), recorder.hooks());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Outcome::kCorrupt);
  EXPECT_EQ(names_in(directory), (std::vector<std::string>{"in.gguf"}));
}

}  // namespace
}  // namespace kvasir::cli
