// kvasir bench as its users run it: what it prints, and that its figures are of what they name. No figure of
// time is judged.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/process.h"

namespace kvasir::cli {
namespace {

using test::ProgramRun;

const std::string kProgram = KVASIR_PROGRAM;
const std::string kModel = test::data_path("models/llama/model.gguf");
// 3 layers of 2 KV heads, each of 16 + 16 half floats.
constexpr std::uint64_t kCellBytes = 3 * 2 * (16 + 16) * 2;

ProgramRun bench(const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {"bench", "-m", kModel, "--ctx", "4096", "--tg", "3"};
  if (std::ranges::find(flags, "--tokens") == flags.end()) arguments.insert(arguments.end(), {"--pp", "20"});
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return test::run_program(kProgram, arguments);
}

// The text behind `"key":` within what follows the other keys, one behind the other.
std::string member(const std::string& json, const std::vector<std::string>& keys) {
  std::size_t at = 0;
  for (const std::string& key : keys) {
    const std::string quoted = "\"" + key + "\":";
    at = json.find(quoted, at);
    if (at == std::string::npos) return {};
    at += quoted.size();
  }
  return json.substr(at, json.find_first_of(",}]", at) - at);
}
double number(const std::string& json, const std::vector<std::string>& keys) {
  const std::string text = member(json, keys);
  EXPECT_FALSE(text.empty()) << keys.back() << " is missing in " << json;
  return text.empty() ? -1 : std::stod(text);
}

TEST(BenchVerb, MeasuresPromptsAndGenerationAtEveryNumberOfConversations) {
  const ProgramRun run = bench({"--batch", "1,3", "--threads", "2", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(number(run.out, {"threads"}), 2);
  EXPECT_GT(number(run.out, {"pp"}), 0);
  EXPECT_GT(number(run.out, {"tg", "1"}), 0);
  EXPECT_GT(number(run.out, {"tg", "3"}), 0);
  EXPECT_GT(number(run.out, {"overhead", "3"}), 0);
  EXPECT_EQ(member(run.out, {"cost_us", "fork"}), "") << "nothing to fork without a depth";
  const std::string ids = run.out.substr(run.out.find("\"ids\":["));
  EXPECT_EQ(std::count(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(ids.find(']')), ','), 19);
}

TEST(BenchVerb, MeasuresWhatTheCacheCostsAtADepthAndMovesNoByteForIt) {
  const ProgramRun run = bench({"--depth", "300", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* operation : {"save", "load"}) {
    EXPECT_GT(number(run.out, {"cost_us", operation}), 0) << operation;
    EXPECT_GT(number(run.out, {"bytes_moved", operation}), 0) << operation;
  }
  for (const char* operation : {"fork", "rewind", "shift", "plan", "commit", "rollback", "close"}) {
    EXPECT_GT(number(run.out, {"cost_us", operation}), 0) << operation;
    EXPECT_EQ(number(run.out, {"bytes_moved", operation}), 0) << operation;
  }
  // All of it is moved out and back, and costs what that is.
  for (const char* operation : {"spill", "return"}) {
    EXPECT_GT(number(run.out, {"cost_us", operation}), 0) << operation;
    EXPECT_GT(number(run.out, {"bytes_moved", operation}), 300 * 64) << operation;
  }
  for (const char* conversations : {"1", "16"}) {
    const double plan = number(run.out, {"step", conversations, "plan_us"});
    const double commit = number(run.out, {"step", conversations, "commit_us"});
    const double step = number(run.out, {"step", conversations, "step_us"});
    EXPECT_GT(step, plan + commit);
    EXPECT_NEAR(number(run.out, {"step", conversations, "overhead"}),
                (plan + commit) / (step - plan - commit), 1e-9);
  }
  EXPECT_GT(number(run.out, {"attention_us", "before_shift"}), 0);
  EXPECT_GT(number(run.out, {"attention_us", "after_shift"}), 0);
  EXPECT_GE(number(run.out, {"attention_us", "runs"}), 20);
}

TEST(BenchVerb, ComparesWithTheCeilingsOfTheSameRun) {
  const ProgramRun run = bench({"--batch", "1,3", "--depth", "64", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const double read = number(run.out, {"ceilings", "read"});
  EXPECT_GT(read, 0);
  EXPECT_GT(number(run.out, {"ceilings", "read_huge"}), 0);
  EXPECT_GE(number(run.out, {"ceilings", "bytes"}), 0);
  // Generating reads the weights and what lies in the cache: no rate is above that of the bytes of its cells.
  const double limit = number(run.out, {"limit", "tg", "3"});
  EXPECT_GT(limit, 0);
  EXPECT_LT(limit, read / (64 * kCellBytes));
  EXPECT_GT(number(run.out, {"limit", "pp"}), 0);
  const ProgramRun text = bench({});
  for (const char* part : {"ceilings of ", " GB/s read, ", " of huge pages\n", " % of the limit, digest "})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in " << text.out;
}

TEST(BenchVerb, CountsTheStatesOfEachConversationInTheLimit) {
  const std::string model = test::scratch_directory() + "/mamba2.gguf";
  ASSERT_EQ(test::run_program(kProgram, {"synth", "mamba2-tiny", model}).status, 0);
  const ProgramRun run = test::run_program(
      kProgram, {"bench", "-m", model, "--pp", "2", "--tg", "1", "--batch", "1,16", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  // Each token reads and writes what 4 layers keep: 8 heads of 32 x 32 floats.
  const double state_bytes = 2.0 * 4 * 8 * 32 * 32 * sizeof(float);
  const double read = number(run.out, {"ceilings", "read"});
  for (const char* conversations : {"1", "16"}) {
    EXPECT_GT(number(run.out, {"limit", "tg", conversations}), 0);
    EXPECT_LT(number(run.out, {"limit", "tg", conversations}), read / state_bytes) << conversations;
  }
}

TEST(BenchVerb, CompactsWhatItHasScattered) {
  const ProgramRun run = bench({"--depth", "300", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* cells : {"12", "1"}) {
    const std::string of_spans = run.out.substr(run.out.find("{\"span_cells\":" + std::string(cells)));
    EXPECT_GT(number(of_spans, {"bytes"}), 100 * kCellBytes) << cells;
    EXPECT_EQ(static_cast<std::uint64_t>(number(of_spans, {"bytes"})) % kCellBytes, 0U) << "whole cells";
    const double with_planning = number(of_spans, {"bytes_per_second"});
    EXPECT_GT(with_planning, 0);
    EXPECT_GT(number(of_spans, {"copy_bytes_per_second"}), with_planning);
    EXPECT_GT(number(of_spans, {"memcpy_bytes_per_second"}), 0);
  }
}

TEST(BenchVerb, MeasuresArchivesInMemoryAndAsFiles) {
  const ProgramRun memory = bench({"--depth", "300", "--json"});
  ASSERT_EQ(memory.status, 0) << memory.err;
  EXPECT_GT(number(memory.out, {"archives", "bytes"}), 300 * kCellBytes);
  for (const char* rate :
       {"save_bytes_per_second", "load_bytes_per_second", "load_scattered_bytes_per_second",
        "memcpy_bytes_per_second", "step_us", "step_meanwhile_us"})
    EXPECT_GT(number(memory.out, {"archives", rate}), 0) << rate;
  EXPECT_EQ(member(memory.out, {"archives", "files"}), "") << "nobody named a disk";
  const std::string directory = test::scratch_directory();
  const ProgramRun files = bench({"--depth", "300", "--files", directory, "--json"});
  ASSERT_EQ(files.status, 0) << files.err;
  for (const char* rate :
       {"save_bytes_per_second", "load_bytes_per_second", "write_bytes_per_second", "read_bytes_per_second"})
    EXPECT_GT(number(files.out, {"archives", "files", rate}), 0) << rate;
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_EQ(bench({"--files", directory + "/nowhere"}).status, 2);
}

TEST(BenchVerb, PrintsALineForEachFigure) {
  const ProgramRun run = bench({"--depth", "300", "--files", test::scratch_directory()});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* part :
       {"prompt of 20: ", "generation, 1 at depth 300: ", "fork at depth 300: ", "0 bytes of K and V moved",
        "rollback at depth 300: ", "a step of 1 at depth 300: ", "a step of 16 at depth 300: ",
        "attention at depth 300, least of 20 runs: ", "compaction of spans of 12: ",
        "save to memory at depth 300, one thread: ", "load into every second cell at depth 300, one thread: ",
        "load from a file at depth 300, one thread: ", "a step of another conversation: "}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << " in " << run.out;
  }
}

// The bits behind the figures are the same however they are measured, and those of kvasir logits.
TEST(BenchVerb, PrintsTheDigestOfTheSameBitsWhateverItMeasures) {
  const ProgramRun plain = bench({"--json"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  const std::string digest = member(plain.out, {"digest"});
  EXPECT_EQ(digest.size(), 18U);
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--batch", "4,2"}, {"--depth", "100"}, {"--threads", "3"}, {"--page", "16"}, {"--pass", "7"}}) {
    std::vector<std::string> all = flags;
    all.emplace_back("--json");
    EXPECT_EQ(member(bench(all).out, {"digest"}), digest) << testing::PrintToString(flags);
  }
  const std::size_t begin = plain.out.find("\"ids\":[") + 7;
  std::string ids = plain.out.substr(begin, plain.out.find(']', begin) - begin);
  for (char& each : ids) each = each == ',' ? ' ' : each;
  const std::string file = test::scratch_directory() + "/ids.txt";
  std::ofstream(file) << ids;
  EXPECT_EQ(member(bench({"--tokens", file, "--json"}).out, {"digest"}), digest);
  const ProgramRun logits = test::run_program(
      kProgram, {"logits", "-m", kModel, "--tokens", file, "--out", file + ".f32", "--json"});
  EXPECT_EQ(member(logits.out, {"digest"}), digest) << logits.err;
}

TEST(BenchVerb, RefusesWhatCannotBeMeasured) {
  const ProgramRun deep = bench({"--depth", "3600"});
  EXPECT_EQ(deep.status, 1);
  EXPECT_NE(deep.err.find("4096"), std::string::npos) << deep.err;
  EXPECT_NE(deep.err.find("--ctx"), std::string::npos) << deep.err;
  EXPECT_NE(deep.err.find("the 512 tokens of the step whose planning is measured"), std::string::npos)
      << deep.err;
  EXPECT_TRUE(deep.out.empty());
  const ProgramRun small = bench({"--depth", "300", "--pool", "320"});
  EXPECT_EQ(small.status, 1);
  EXPECT_NE(small.err.find("the whole pool holds 320"), std::string::npos) << small.err;
  EXPECT_TRUE(small.out.empty());
  EXPECT_EQ(bench({"--batch", "0"}).status, 2);
  EXPECT_EQ(bench({"--depth", "-1"}).status, 2);
}

}  // namespace
}  // namespace kvasir::cli
