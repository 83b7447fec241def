#include "cli/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/hooks.h"
#include "cli/synth_vocabulary.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "quant/block_type.h"
#include "support/faults.h"
#include "support/paths.h"
#include "text/tokenizer.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

SynthOptions tiny(const std::string& output, const char* type = "Q4_0") {
  const auto target = find_weight_target(type);
  EXPECT_TRUE(target) << type;
  return {
      .shape = find_synth_shape("llama-tiny"), .output = output, .target = *target, .seed = 1, .threads = 2};
}

std::vector<std::byte> bytes_of(const std::string& path) {
  auto bytes = base::read_whole(base::system_files(), path, std::uint64_t{64} << 20);
  EXPECT_TRUE(bytes) << path;
  return bytes ? *std::move(bytes) : std::vector<std::byte>{};
}

std::vector<std::byte> synthesized(const SynthOptions& options) {
  test::RecordingHooks recorder;
  const auto done = synthesize(base::system_files(), options, recorder.hooks());
  EXPECT_TRUE(done) << (done ? "" : done.error().message());
  return done ? bytes_of(options.output) : std::vector<std::byte>{};
}

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

std::vector<float> values_of(const gguf::File& file, const gguf::Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  EXPECT_TRUE(file.read(tensor, 0, bytes));
  std::vector<float> values(tensor.elements());
  EXPECT_TRUE(quant::unpack(tensor.type, bytes, values));
  return values;
}

double root_mean_square(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(Synth, EveryTypeThatUnpacksMakesAModelWithWeightsOfTheSizeTheyShouldHave) {
  const std::string directory = test::scratch_directory();
  for (const quant::BlockTypeInfo& info : quant::block_types()) {
    if (!info.unpacks) continue;
    const std::string path = directory + "/model.gguf";
    ASSERT_FALSE(synthesized(tiny(path, std::string(info.name).c_str())).empty()) << info.name;
    const auto file = gguf::File::open(base::system_files(), path);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_EQ(file->tensors().size(), 38U);
    for (const gguf::Tensor& tensor : file->tensors()) {
      const bool norm = tensor.name.find("_norm") != std::string::npos;
      EXPECT_EQ(tensor.type, norm ? quant::BlockType::kF32 : info.type) << tensor.name;
      const double size = norm ? 1.0 : 1.0 / std::sqrt(static_cast<double>(tensor.row_length()));
      EXPECT_NEAR(root_mean_square(values_of(*file, tensor)) / size, 1.0, 0.1)
          << info.name << " " << tensor.name;
    }
  }
}

TEST(Synth, TheSameSeedGivesTheSameBytesOnAnyNumberOfThreads) {
  const std::string directory = test::scratch_directory();
  SynthOptions options = tiny(directory + "/one.gguf", "Q4_K_M");
  options.threads = 1;
  const std::vector<std::byte> one = synthesized(options);
  options.threads = 3;
  options.output = directory + "/three.gguf";
  EXPECT_EQ(synthesized(options), one);
  options.seed = 2;
  EXPECT_NE(synthesized(options), one);
}

TEST(Synth, WritesTheMetadataThatAConverterWrites) {
  const std::string path = test::scratch_directory() + "/model.gguf";
  (void)synthesized(tiny(path, "Q4_K_M"));
  const auto file = gguf::File::open(base::system_files(), path);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->get_string("general.architecture").value_or(""), "llama");
  EXPECT_EQ(file->get_uint("general.file_type").value_or(0), 15U);
  EXPECT_EQ(file->get_uint("general.quantization_version").value_or(0), 2U);
  EXPECT_EQ(file->get_uint("llama.context_length").value_or(0), 32768U);
  EXPECT_EQ(file->get_uint("llama.embedding_length").value_or(0), 256U);
  EXPECT_EQ(file->get_uint("llama.block_count").value_or(0), 4U);
  EXPECT_EQ(file->get_uint("llama.feed_forward_length").value_or(0), 768U);
  EXPECT_EQ(file->get_uint("llama.attention.head_count").value_or(0), 4U);
  EXPECT_EQ(file->get_uint("llama.attention.head_count_kv").value_or(0), 2U);
  EXPECT_EQ(file->get_uint("llama.rope.dimension_count").value_or(0), 64U);
  EXPECT_EQ(file->get_uint("llama.vocab_size").value_or(0), 512U);
  EXPECT_EQ(file->get_float("llama.attention.layer_norm_rms_epsilon").value_or(0),
            static_cast<double>(1e-5F));
  EXPECT_EQ(file->get_float("llama.rope.freq_base").value_or(0), 10000.0);
}

TEST(SynthShapes, HaveTheParametersOfTheModelsTheyAreNamedAfter) {
  const auto parameters = [](const char* name) {
    const Shape* shape = find_synth_shape(name);
    std::uint64_t sum = 0;
    for (const SynthTensor& tensor : tensors_of(*shape, shape->sizes)) {
      std::uint64_t product = 1;
      for (const std::uint64_t dim : tensor.dims) product *= dim;
      sum += product;
    }
    return sum;
  };
  EXPECT_EQ(parameters("llama-1b"), 1'235'814'400U);   // Llama 3.2 1B
  EXPECT_EQ(parameters("qwen-0.5b"), 494'032'768U);    // Qwen2 0.5B
  EXPECT_EQ(parameters("mamba2-370m"), 368'346'624U);  // Mamba-2 370M
  EXPECT_EQ(find_synth_shape("llama-1B"), nullptr);
}

TEST(SynthVocabulary, HasItsSizeDistinctTokensAndAMergeForEveryWord) {
  for (const std::uint64_t size : {258U, 300U, 512U, 20000U}) {
    const auto vocabulary = make_vocabulary(size);
    ASSERT_TRUE(vocabulary);
    EXPECT_EQ(vocabulary->size, size);
    std::vector<std::string> tokens;
    std::vector<std::string> merges;
    for (const gguf::KeyValue& entry : vocabulary->keys) {
      for (std::uint64_t i = 0; i < entry.value.size() && entry.value.is_array(); ++i) {
        if (entry.key == "tokenizer.ggml.tokens") tokens.emplace_back(*entry.value.string_at(i));
        if (entry.key == "tokenizer.ggml.merges") merges.emplace_back(*entry.value.string_at(i));
      }
    }
    ASSERT_EQ(tokens.size(), size);
    ASSERT_EQ(merges.size(), size - 258);
    std::set<std::string> known(tokens.begin(), tokens.begin() + 256);
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const std::size_t space = merges[i].find(' ');
      const std::string left = merges[i].substr(0, space);
      const std::string right = merges[i].substr(space + 1);
      ASSERT_TRUE(known.contains(left) && known.contains(right)) << merges[i];
      ASSERT_EQ(left + right, tokens[256 + i]);
      known.insert(left + right);
    }
    EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), size);
  }
}

TEST(SynthVocabulary, IsRefusedBelowTheBytesThemselves) {
  const auto vocabulary = make_vocabulary(257);
  ASSERT_FALSE(vocabulary);
  EXPECT_EQ(vocabulary.error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(vocabulary.error().numbers().limit, 258U);
}

TEST(SynthVocabulary, LetsAnyBytesBeTokenizedAndComeBack) {
  const std::string path = test::scratch_directory() + "/model.gguf";
  (void)synthesized(tiny(path));
  const auto file = gguf::File::open(base::system_files(), path);
  ASSERT_TRUE(file);
  const auto tokenizer = text::Tokenizer::load(*file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  std::string any = "A house, a haka; zuzuzu baba.\n\tÄöß 森 \xF0\x9F\x98\x80 1234";
  for (int byte = 1; byte < 256; ++byte) any += static_cast<char>(byte);
  const auto ids = (*tokenizer)->tokenize(any, {});
  ASSERT_TRUE(ids) << ids.error().message();
  EXPECT_LT(ids->size(), any.size());  // some words are tokens
  EXPECT_EQ((*tokenizer)->detokenize(*ids).value_or(""), any);
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ((*tokenizer)->piece(byte).value_or(""), std::string(1, static_cast<char>(byte)));
  }
  const auto begun = (*tokenizer)->tokenize("x", {.add_begin_end = true});
  ASSERT_TRUE(begun);
  EXPECT_EQ(*begun, (std::vector<Token>{510, 'x'}));
  EXPECT_EQ((*tokenizer)->end_token(), 511);
}

TEST(Synth, CopiesAnotherFilesVocabularyAndTakesItsSize) {
  const std::string directory = test::scratch_directory();
  SynthOptions options = tiny(directory + "/model.gguf");
  Shape other = *find_synth_shape("llama-tiny");
  other.sizes.vocabulary = 700;
  SynthOptions from = tiny(directory + "/other.gguf");
  from.shape = &other;
  ASSERT_FALSE(synthesized(from).empty());
  options.vocabulary = from.output;
  ASSERT_FALSE(synthesized(options).empty());
  const auto file = gguf::File::open(base::system_files(), options.output);
  const auto origin = gguf::File::open(base::system_files(), options.vocabulary);
  ASSERT_TRUE(file && origin);
  EXPECT_EQ(file->get_uint("llama.vocab_size").value_or(0), 700U);
  EXPECT_EQ(file->find_tensor("token_embd.weight")->dims, (std::vector<std::uint64_t>{256, 700}));
  int copied = 0;
  for (const gguf::KeyValue& entry : origin->metadata()) {
    if (!entry.key.starts_with("tokenizer.")) continue;
    ASSERT_NE(file->find(entry.key), nullptr) << entry.key;
    EXPECT_EQ(*file->find(entry.key), entry.value) << entry.key;
    ++copied;
  }
  EXPECT_EQ(copied, 8);
}

TEST(Synth, RefusesAVocabularyFileWithoutOne) {
  const std::string directory = test::scratch_directory();
  gguf::Writer writer;
  ASSERT_TRUE(writer.add("general.architecture", gguf::Value::string("llama")));
  ASSERT_TRUE(writer.begin(*base::system_files().replace(directory + "/bare.gguf")));
  ASSERT_TRUE(writer.commit());
  SynthOptions options = tiny(directory + "/model.gguf");
  test::RecordingHooks recorder;
  options.vocabulary = directory + "/bare.gguf";
  const auto bare = synthesize(base::system_files(), options, recorder.hooks());
  ASSERT_FALSE(bare);
  EXPECT_EQ(bare.error().code(), Outcome::kNotFound);
  options.vocabulary = directory + "/absent.gguf";
  const auto absent = synthesize(base::system_files(), options, recorder.hooks());
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), Outcome::kNotFound);
  EXPECT_EQ(files_in(directory), 1U);
}

TEST(Synth, CountsEveryByteOfTheOutputAsProgress) {
  const std::string path = test::scratch_directory() + "/model.gguf";
  test::RecordingHooks recorder;
  const auto report = synthesize(base::system_files(), tiny(path), recorder.hooks());
  ASSERT_TRUE(report);
  EXPECT_EQ(recorder.total(), fs::file_size(path));
  EXPECT_EQ(report->bytes_written, fs::file_size(path));
  EXPECT_EQ(report->tensors, 38U);
  EXPECT_TRUE(std::is_sorted(recorder.done().begin(), recorder.done().end()));
  ASSERT_FALSE(recorder.done().empty());
  EXPECT_EQ(recorder.done().back(), recorder.total());
}

TEST(Synth, LeavesNothingBehindWhateverFileOperationFails) {
  const std::string directory = test::scratch_directory();
  std::uint64_t failures = 0;
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<test::Fault>(test::FileOperation::kAny, n);
    test::FaultyFileSystem files(base::system_files(), fault);
    test::RecordingHooks recorder;
    const auto done = synthesize(files, tiny(directory + "/model.gguf"), recorder.hooks());
    if (!fault->fired()) {
      EXPECT_TRUE(done);
      break;
    }
    ++failures;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Outcome::kIo);
    ASSERT_EQ(files_in(directory), 0U) << "operation " << n;
  }
  EXPECT_GT(failures, 38U);  // at least a write for each tensor
  EXPECT_EQ(files_in(directory), 1U);
}

TEST(Synth, LeavesNothingBehindWhenItIsStopped) {
  const std::string directory = test::scratch_directory();
  for (const int calls : {0, 1, 20, 38}) {
    test::RecordingHooks recorder(calls);
    const auto done = synthesize(base::system_files(), tiny(directory + "/model.gguf"), recorder.hooks());
    ASSERT_FALSE(done) << calls;
    EXPECT_EQ(done.error().code(), Outcome::kCancelled);
    EXPECT_EQ(files_in(directory), 0U);
  }
}

}  // namespace
}  // namespace kvasir::cli
