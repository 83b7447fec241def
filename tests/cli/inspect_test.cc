// kvasir inspect, as its users run it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "damage.h"
#include "judge_program.h"
#include "raw_gguf.h"
#include "support/paths.h"
#include "support/process.h"

namespace kvasir::cli {
namespace {

using gguf::Value;
using gguf::test::Bytes;
using gguf::test::RawGguf;
using test::ProgramRun;

const std::string kProgram = KVASIR_PROGRAM;

std::string stored(const Bytes& bytes, const std::string& name = "file.gguf") {
  const std::string path = test::scratch_directory() + "/" + name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

ProgramRun inspect(const std::vector<std::string>& arguments, std::string_view input = {}) {
  std::vector<std::string> words = {"inspect"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return test::run_program(kProgram, words, input);
}

// What Python's expression over the JSON `d` gives, printed.
std::string ask(const std::string& path, const std::string& expression) {
  const ProgramRun answer = inspect({path, "--json"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.err, "");
  const std::string script = R"(
import json, sys
def no(constant): raise ValueError(constant)
d = json.loads(sys.stdin.buffer.read().decode("utf-8", "strict"), parse_constant=no)
print()" + expression + R"(, end=""))";
  const ProgramRun asked = test::run_program("/usr/bin/python3", {"-c", script}, answer.out);
  EXPECT_EQ(asked.status, 0) << asked.err << answer.out;
  return asked.out;
}

void expect_refused(const ProgramRun& run, const std::string& part) {
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
}

TEST(Inspect, TellsWhatTheSampleHoldsAsJson) {
  const std::string path = stored(gguf::test::sample());
  EXPECT_EQ(
      ask(path, "d['format'], d['version'], d['architecture'], d['alignment'], d['shards'], d['size_bytes']"),
      fmt::format("gguf 3 sample 64 1 {}", gguf::test::sample().size()));
  EXPECT_EQ(ask(path, "d['n_vocab'], d['parameters']"), "5 441");
  EXPECT_EQ(ask(path, "d['types']['Q8_0'], len(d['types'])"),
            "{'tensors': 1, 'parameters': 128, 'bytes': 136} 6");
  EXPECT_EQ(ask(path, "d['tensors'][3]['name'], d['tensors'][3]['dims'], d['tensors'][3]['bytes']"),
            "blocks [64, 1, 2] 136");
  EXPECT_EQ(ask(path, "d['metadata']['a.uint64'], d['metadata']['a.float32'], d['metadata']['a.bool']"),
            "18446744073709551615 0.1 True");
  EXPECT_EQ(ask(path, "d['metadata']['many.array']"), "[[[-1, 2], []], [['deep', '']]]");
  EXPECT_EQ(ask(path, "d['metadata']['many.float32']"), "[0.5, None, None]");
  EXPECT_EQ(ask(path, "sorted(d['metadata']) == sorted(set(d['metadata'])) and len(d['metadata'])"),
            std::to_string(gguf::test::sample_metadata().size()));
}

TEST(Inspect, TellsWhatTheSampleHoldsAsText) {
  const ProgramRun run = inspect({stored(gguf::test::sample(2))});
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* line : {"GGUF version 2, 1 file, alignment 64, ", "architecture: sample\n", "n_vocab: 5\n",
                           "  a.int8 (int8): -100\n", "  many.bool (bool[3]): [true, false, true]\n",
                           "  a.string (string): \"gr\xC3\xBC\xC3\x9F dich\\x0A\"\n",
                           "  blocks: Q8_0 64 x 1 x 2, 136 bytes at "}) {
    EXPECT_NE(run.out.find(line), std::string::npos) << line << run.out;
  }
}

TEST(Inspect, TellsTheVocabularyFromTokensThenFromItsKeyThenFromTheEmbedding) {
  const std::vector<std::string> tokens(7, "t");
  const Value seven = Value::strings(std::span<const std::string>(tokens));
  RawGguf all;
  all.header(1, 3)
      .entry("general.architecture", Value::string("x"))
      .entry("x.vocab_size", Value::scalar<std::uint32_t>(9));
  all.entry("tokenizer.ggml.tokens", seven);
  all.tensor("token_embd.weight", std::vector<std::uint64_t>{1, 11}, 0, 0)
      .pad(32)
      .raw(gguf::test::noise(44, 1));
  EXPECT_EQ(ask(stored(all.bytes()), "d['n_vocab']"), "7");
  RawGguf key;
  key.header(0, 2)
      .entry("general.architecture", Value::string("x"))
      .entry("x.vocab_size", Value::scalar<std::uint32_t>(9));
  EXPECT_EQ(ask(stored(key.bytes()), "d['n_vocab']"), "9");
  EXPECT_EQ(ask(stored(RawGguf().header(0, 0).bytes()), "d['n_vocab'], d['architecture']"), "None None");
}

TEST(Inspect, AbbreviatesLongArrays) {
  std::vector<std::int32_t> numbers(17);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
  RawGguf file;
  file.header(0, 2).entry("long", Value::array(std::span<const std::int32_t>(numbers)));
  file.entry("short", Value::array(std::span<const std::int32_t>(numbers).first(16)));
  const std::string path = stored(file.bytes());
  EXPECT_EQ(ask(path, "d['metadata']['long']"),
            "{'type': 'int32', 'length': 17, 'first': [0, 1, 2, 3, 4, 5, 6, 7]}");
  EXPECT_EQ(ask(path, "d['metadata']['short'] == list(range(16))"), "True");
  EXPECT_NE(inspect({path}).out.find("long (int32[17]): [0, 1, 2, 3, 4, 5, 6, 7, ...]"), std::string::npos);
}

TEST(Inspect, StaysValidWhateverTheStringsHold) {
  RawGguf file;
  file.header(0, 2).entry("bad\n\"key\\", Value::string("\xFF\x1B[2J\"\\\xED\xA0\x80"));
  file.entry("general.architecture", Value::string("\x07\xC0"));
  const std::string path = stored(file.bytes());
  EXPECT_EQ(ask(path, "ascii(d['metadata']['bad\\n\"key\\\\'])"), R"('\ufffd\x1b[2J"\\\ufffd\ufffd\ufffd')");
  const ProgramRun text = inspect({path});
  EXPECT_EQ(text.status, 0);
  for (const char c : text.out) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_NE(text.out.find("architecture: \\x07\\xC0\n"), std::string::npos);
}

TEST(Inspect, CountsValuesThatAreNotFinite) {
  RawGguf file;
  file.header(3, 0)
      .tensor("f32", std::vector<std::uint64_t>{4}, 0, 0)
      .tensor("f16", std::vector<std::uint64_t>{3}, 1, 32);
  file.tensor("q8_0", std::vector<std::uint64_t>{32}, 8, 64).pad(32);
  file.number(1.0F, "").number(NAN, "").number(INFINITY, "").number(-INFINITY, "").pad(32);
  file.number<std::uint16_t>(0x7C00, "")
      .number<std::uint16_t>(0x3C00, "")
      .number<std::uint16_t>(0xFE01, "")
      .pad(32);
  file.number<std::uint16_t>(0x7E00, "").raw(Bytes(32, std::byte{1}));  // a block whose scale is NaN
  const std::string path = stored(file.bytes());
  EXPECT_EQ(ask(path, "d['non_finite'], [t['non_finite'] for t in d['tensors']]"), "37 [3, 2, 32]");
  const ProgramRun text = inspect({path});
  EXPECT_EQ(text.status, 0) << "it is information, no error";
  EXPECT_NE(text.out.find("37 values are not finite"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("at 160, 3 values not finite"), std::string::npos) << text.out;
}

TEST(Inspect, ReadsStandardInput) {
  const Bytes bytes = gguf::test::sample();
  const std::string_view input(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const ProgramRun piped = inspect({"-", "--json"}, input);
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(piped.out, inspect({stored(bytes), "--json"}).out);
  expect_refused(inspect({"-"}, input.substr(0, 100)), "incomplete");
}

TEST(Inspect, RefusesWhatIsNoModel) {
  const auto text = std::as_bytes(std::span(std::string_view("plain text")));
  expect_refused(inspect({stored(Bytes(text.begin(), text.end()))}), "not a GGUF file");
  const auto archive = std::as_bytes(std::span(std::string_view("KVASIR\0\2and more", 16)));
  expect_refused(inspect({stored(Bytes(archive.begin(), archive.end()))}), "the archive ends where");
  const auto older = std::as_bytes(std::span(std::string_view("KVASIR\0\1and more", 16)));
  expect_refused(inspect({stored(Bytes(older.begin(), older.end()))}), "the archive is of version 1");
  expect_refused(inspect({"/no/such/file"}), "/no/such/file");
  expect_refused(inspect({test::scratch_directory()}), "not a regular file");
  EXPECT_EQ(inspect({}).status, 2);
  EXPECT_EQ(inspect({"a", "b"}).status, 2);
}

TEST(Inspect, SaysWhenItsAnswerCannotBeWritten) {
  const std::string path = stored(gguf::test::sample());
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"inspect", path}, std::vector<std::string>{"inspect", path, "--json"}}) {
    const ProgramRun run = test::run_program(kProgram, arguments, {}, "/dev/full");
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.err.find("standard output"), std::string::npos) << run.err;
  }
}

// Some of what gguf_damage tries on the program in full.
TEST(Inspect, EndsWithStatusZeroOrOneWhateverTheFile) {
  constexpr std::uint64_t kStep = 23;
  std::uint64_t seen = 0;
  std::uint64_t judged = 0;
  const auto examine = [&](const Bytes& bytes, const std::string& what) {
    if (seen++ % kStep != 0) return;
    const auto complaint = gguf::test::judge_program(kProgram, bytes, judged++ % 2 == 0);
    EXPECT_EQ(complaint, std::nullopt) << what;
  };
  gguf::test::cut_everywhere(gguf::test::sample(), examine);
  gguf::test::set_extremes(gguf::test::sample(), examine);
  gguf::test::flip_bytes(gguf::test::sample(), 1000, 5, examine);
  EXPECT_GT(judged, 200U);
}

}  // namespace
}  // namespace kvasir::cli
