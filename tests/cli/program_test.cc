// What every verb of the program has in common: help, exit statuses, one sentence about what went wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/process.h"

namespace kvasir::cli {
namespace {

using test::ProgramRun;
using test::run_program;

const std::string kProgram = KVASIR_PROGRAM;
const std::string kModel = test::data_path("models/llama/model.gguf");
const std::string kTokens = test::data_path("models/llama/tokens.txt");
const std::string kOutput = test::scratch_directory() + "/out.f32";

// Wrong usage: status 2, nothing on standard output, a word about it on standard error.
void expect_wrong_usage(const std::vector<std::string>& arguments) {
  const ProgramRun run = run_program(kProgram, arguments);
  EXPECT_EQ(run.status, 2) << testing::PrintToString(arguments) << run.err;
  EXPECT_EQ(run.out, "") << testing::PrintToString(arguments);
  EXPECT_NE(run.err, "") << testing::PrintToString(arguments);
}

// Status 1 and one line that begins with the program's name, after whatever progress was shown.
void expect_refused(const std::vector<std::string>& arguments, const std::string& part) {
  const ProgramRun run = run_program(kProgram, arguments);
  EXPECT_EQ(run.status, 1) << testing::PrintToString(arguments) << run.err;
  const std::size_t at = run.err.find("kvasir: ");
  ASSERT_NE(at, std::string::npos) << run.err;
  EXPECT_NE(run.err.find(part, at), std::string::npos) << run.err;
  EXPECT_EQ(std::count(run.err.begin() + static_cast<std::ptrdiff_t>(at), run.err.end(), '\n'), 1) << run.err;
}

TEST(Program, HelpsWithEveryVerb) {
  const ProgramRun all = run_program(kProgram, {"--help"});
  EXPECT_EQ(all.status, 0);
  for (const char* verb : {"inspect", "logits", "perplexity", "quantize", "run", "synth", "tokenize"}) {
    EXPECT_NE(all.out.find(std::string("\n  ") + verb + " "), std::string::npos) << verb;
    const ProgramRun help = run_program(kProgram, {verb, "--help"});
    EXPECT_EQ(help.status, 0) << verb;
    EXPECT_NE(help.out.find("Usage"), std::string::npos) << verb;
    EXPECT_EQ(help.err, "") << verb;
  }
}

TEST(Program, TellsItsVersion) {
  const ProgramRun run = run_program(kProgram, {"--version"});
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(run.out.starts_with("kvasir 0.")) << run.out;
}

TEST(Program, WrongUsageIsStatusTwo) {
  expect_wrong_usage({});
  expect_wrong_usage({"no-such-verb"});
  expect_wrong_usage({"--no-such-flag"});
  expect_wrong_usage({"run"});
  expect_wrong_usage({"run", "-m", kModel});
  expect_wrong_usage({"run", "-p", "text"});
  expect_wrong_usage({"logits", "-m", kModel, "--tokens", kTokens});
  expect_wrong_usage({"logits", "-m", kModel, "--out", "-"});
}

TEST(Program, ValuesThatCanNeverBeRightAreWrongUsage) {
  const std::vector<std::vector<std::string>> flags = {
      {"--threads", "0"}, {"--threads", "-1"}, {"--threads", "x"}, {"--ctx", "0"},   {"--pool", "0"},
      {"--pool", "1e3"},  {"--pass", "0"},     {"--page", "0"},    {"--page", "17"}, {"--page", "272"},
      {"--page", "x"},    {"--kv", "f64"},     {"--kv", "f16:"},   {"--kv", ":f16"}, {"--kv", "f16:f16:f16"},
  };
  for (const std::vector<std::string>& flag : flags) {
    std::vector<std::string> run = {"run", "-m", kModel, "-p", "text"};
    run.insert(run.end(), flag.begin(), flag.end());
    expect_wrong_usage(run);
    std::vector<std::string> logits = {"logits", "-m", kModel, "--tokens", kTokens, "--out", kOutput};
    logits.insert(logits.end(), flag.begin(), flag.end());
    expect_wrong_usage(logits);
  }
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{{"--temp", "-1"},
                                                                                    {"--temp", "nan"},
                                                                                    {"--temp", "inf"},
                                                                                    {"--top-p", "0"},
                                                                                    {"--top-p", "1.5"},
                                                                                    {"--min-p", "-0.1"},
                                                                                    {"--min-p", "2"},
                                                                                    {"--top-k", "-1"},
                                                                                    {"-n", "-1"},
                                                                                    {"--seed", "x"},
                                                                                    {"--seed", "-1"}}) {
    std::vector<std::string> run = {"run", "-m", kModel, "-p", "text"};
    run.insert(run.end(), flag.begin(), flag.end());
    expect_wrong_usage(run);
  }
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{{"--split", "0"},
                                                                                    {"--split", "3,x"},
                                                                                    {"--beside", "-1"},
                                                                                    {"--beside", "70000"},
                                                                                    {"--via", "nothing"},
                                                                                    {"--via", "swap:1"},
                                                                                    {"--via", "shift:1:x"}}) {
    std::vector<std::string> logits = {"logits", "-m", kModel, "--tokens", kTokens, "--out", kOutput};
    logits.insert(logits.end(), flag.begin(), flag.end());
    expect_wrong_usage(logits);
  }
}

TEST(Program, AModelThatCannotBeReadIsOneSentence) {
  for (const std::string& model :
       {std::string("/no/such/model.gguf"), kTokens, std::string("/dev/null"), test::scratch_directory()}) {
    expect_refused({"run", "-m", model, "-p", "text"}, "");
    expect_refused({"logits", "-m", model, "--tokens", kTokens, "--out", kOutput}, "");
  }
  expect_refused({"run", "-m", "/no/such/model.gguf", "-p", "text"}, "/no/such/model.gguf");
}

// A device that is always full: every byte is refused.
TEST(Program, OutputThatCannotBeWrittenIsStatusOne) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"run", "-m", kModel, "-p", "hello", "-n", "5"},
                                             {"run", "-m", kModel, "-p", "hello", "-n", "5", "--json"},
                                             {"logits", "-m", kModel, "--tokens", kTokens, "--out", "-"},
                                             {"logits", "-m", kModel, "--tokens", kTokens, "--out",
                                              test::scratch_directory() + "/x", "--json"}}) {
    const ProgramRun run = run_program(kProgram, arguments, {}, "/dev/full");
    EXPECT_EQ(run.status, 1) << testing::PrintToString(arguments) << run.err;
    EXPECT_NE(run.err.find("standard output"), std::string::npos) << run.err;
  }
}

}  // namespace
}  // namespace kvasir::cli
