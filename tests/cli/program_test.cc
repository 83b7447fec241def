// What every verb of the program has in common: help, exit statuses, one sentence about what went wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
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

// What wrong usage says: one line, with the program's name first.
std::string refusal(const std::vector<std::string>& arguments) {
  const ProgramRun run = run_program(kProgram, arguments);
  EXPECT_EQ(run.status, 2) << testing::PrintToString(arguments) << run.err;
  EXPECT_TRUE(run.err.starts_with("kvasir: ")) << run.err;
  EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  return run.err;
}

TEST(Program, NumbersAreNeitherClampedNorWrapped) {
  const std::vector<std::string> run = {"run", "-m", kModel, "-p", "text"};
  const std::vector<std::string> bench = {"bench", "-m", kModel};
  const std::vector<std::string> logits = {"logits", "-m", kModel, "--tokens", kTokens, "--out", kOutput};
  const std::vector<std::string> perplexity = {"perplexity", "-m", kModel, "-f", kTokens};
  const std::vector<std::string> synth = {"synth", "llama-tiny", kOutput};
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> verbs = {
      {run, {"-n", "--seed", "--top-k", "--threads", "--ctx", "--pool", "--page", "--pass"}},
      {bench, {"--pp", "--tg", "--batch", "--depth", "--parallel"}},
      {logits, {"--split", "--beside"}},
      {perplexity, {"--window"}},
      {synth, {"--seed", "--threads"}}};
  for (const auto& [verb, flags] : verbs) {
    for (const std::string& flag : flags) {
      for (const char* number :
           {"18446744073709551616", "99999999999999999999", "-1", "1e3", "0x10", " 1", ""}) {
        std::vector<std::string> arguments = verb;
        arguments.push_back(flag + (flag == "-n" ? "" : "=") + number);
        if (flag == "-n" && *number == '\0') continue;  // then it has no value at all
        const std::string said = refusal(arguments);
        EXPECT_NE(said.find(flag), std::string::npos) << said;
        EXPECT_LT(said.size(), 200U) << said;
      }
    }
  }
}

TEST(Program, AFlagThatWouldBeIgnoredIsWrongUsage) {
  const std::vector<std::vector<std::string>> flags = {{"--parallel", "2", "--pp", "3"},
                                                       {"--parallel", "2", "--tg", "3"},
                                                       {"--parallel", "2", "--batch", "3"},
                                                       {"--parallel", "2", "--depth", "3"},
                                                       {"--requests", "3"},
                                                       {"--parallel", "2", "--tokens", kTokens}};
  for (const std::vector<std::string>& pair : flags) {
    std::vector<std::string> arguments = {"bench", "-m", kModel};
    arguments.insert(arguments.end(), pair.begin(), pair.end());
    EXPECT_NE(refusal(arguments).find(pair[0]), std::string::npos);
  }
  EXPECT_NE(
      refusal({"logits", "-m", kModel, "--tokens", kTokens, "--out", kOutput, "--at", "3"}).find("--via"),
      std::string::npos);
}

TEST(Program, NamesTheVerbAndTheFlagThatAreWrong) {
  EXPECT_NE(refusal({"bogus"}).find("there is no verb 'bogus'"), std::string::npos);
  EXPECT_NE(refusal({"help", "bogus"}).find("there is no verb 'bogus'"), std::string::npos);
  EXPECT_NE(refusal({"run", "-m", kModel, "-p", "x", "--temp", "-1"}).find("--temp"), std::string::npos);
  EXPECT_NE(refusal({"run", "-m", kModel, "-p", "x", "--top-p", "2"}).find("--top-p"), std::string::npos);
  EXPECT_NE(refusal({"run", "-m", kModel, "-p", "x", "--min-p", "2"}).find("--min-p"), std::string::npos);
  EXPECT_NE(refusal({"run", "-p", "x"}).find("kvasir run --help"), std::string::npos);
}

TEST(Program, HelpIsAlsoAVerb) {
  EXPECT_EQ(run_program(kProgram, {"help"}).out, run_program(kProgram, {"--help"}).out);
  const ProgramRun run = run_program(kProgram, {"help", "run"});
  EXPECT_EQ(run.status, 0);
  EXPECT_NE(run.out.find("--seed"), std::string::npos) << run.out;
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
