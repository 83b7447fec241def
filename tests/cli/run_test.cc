// kvasir run, as its users run it.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/process.h"
#include "support/tiny_model.h"

namespace kvasir::cli {
namespace {

using test::ProgramRun;
using test::run_program;

const std::string kProgram = KVASIR_PROGRAM;
const std::string kModel = test::data_path("models/llama/model.gguf");

ProgramRun run(const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"run", "-m", kModel};
  words.insert(words.end(), flags.begin(), flags.end());
  return run_program(kProgram, words);
}

// The value of a key of a JSON object, as written.
std::string value_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\":");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 3;
  if (json[begin] == '[') return json.substr(begin, json.find(']', begin) + 1 - begin);
  if (json[begin] != '"') return json.substr(begin, json.find_first_of(",}", begin) - begin);
  std::size_t end = begin + 1;
  while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
  return json.substr(begin, end + 1 - begin);
}

std::size_t count_of(const std::string& array) {
  if (array == "[]") return 0;
  return 1 + static_cast<std::size_t>(std::count(array.begin(), array.end(), ','));
}

// K31: the same seed gives the same text, on any threads, pages and passes; and a seed that the program chose
// itself is reported and gives it again.
TEST(RunVerb, TheSameSeedGivesTheSameTextHoweverItIsComputed) {
  const std::vector<std::string> base = {"-p", "hello", "-n", "24", "--temp", "1", "--json"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = base;
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun answer = run(words);
    EXPECT_EQ(answer.status, 0) << answer.err;
    return answer.out;
  };
  const std::string plain = with({"--seed", "42"});
  ASSERT_GT(count_of(value_of(plain, "tokens")), 4U) << plain;
  EXPECT_EQ(value_of(plain, "seed"), "42");
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--seed", "42"},
                                             {"--seed", "42", "--threads", "3"},
                                             {"--seed", "42", "--page", "16", "--pass", "1"}}) {
    EXPECT_EQ(value_of(with(more), "tokens"), value_of(plain, "tokens")) << testing::PrintToString(more);
  }
  EXPECT_NE(value_of(with({"--seed", "43"}), "tokens"), value_of(plain, "tokens"));
  const std::string chosen = with({});
  EXPECT_EQ(value_of(with({"--seed", value_of(chosen, "seed")}), "tokens"), value_of(chosen, "tokens"));
}

// They never go back, so recurrent models have the states that a step works with, and no other.
TEST(RunVerb, RecurrentModelsCompleteLongPromptsHoweverTheyAreCut) {
  std::string prompt;
  for (int i = 0; i < 200; ++i) prompt += "word" + std::to_string(i * 7 % 50) + " ";
  const std::string model = test::scratch_directory() + "/recurrent.gguf";
  for (const std::string shape : {"mamba2-tiny", "hybrid-tiny"}) {
    ASSERT_EQ(run_program(kProgram, {"synth", shape, model}).status, 0);
    std::vector<std::string> texts;
    for (const std::string pass : {"512", "64", "7"}) {
      const ProgramRun answer = run_program(
          kProgram, {"run", "-m", model, "-p", prompt, "-n", "20", "--temp", "0", "--pass", pass});
      EXPECT_EQ(answer.status, 0) << shape << " " << answer.err;
      EXPECT_FALSE(answer.out.empty());
      texts.push_back(answer.out);
    }
    EXPECT_EQ(texts[1], texts[0]) << shape;
    EXPECT_EQ(texts[2], texts[0]) << shape;
  }
}

TEST(RunVerb, GreedyNeedsNoSeedAndStreamsWhatJsonHolds) {
  const std::vector<std::string> flags = {"-p", "hello", "-n", "20", "--temp", "0"};
  const ProgramRun streamed = run(flags);
  EXPECT_EQ(streamed.status, 0) << streamed.err;
  std::vector<std::string> with_json = flags;
  with_json.emplace_back("--json");
  const ProgramRun object = run(with_json);
  EXPECT_EQ("\"" + streamed.out.substr(0, streamed.out.size() - 1) + "\"", value_of(object.out, "text"));
  EXPECT_EQ(value_of(object.out, "finish"), "\"length\"");
  EXPECT_EQ(count_of(value_of(object.out, "tokens")), 20U);
}

TEST(RunVerb, EndsAtTheContextAtThePoolAndAtNothing) {
  const auto json = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"-p", "hello", "--temp", "0", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun answer = run(words);
    EXPECT_EQ(answer.status, 0) << answer.err;
    return answer.out;
  };
  const std::string context = json({"-n", "1000", "--ctx", "20"});
  EXPECT_EQ(value_of(context, "finish"), "\"context\"");
  EXPECT_EQ(value_of(context, "prompt_tokens"), "3");
  EXPECT_EQ(count_of(value_of(context, "tokens")), 18U) << "the last one is drawn, not computed";
  EXPECT_EQ(value_of(json({"-n", "1000", "--pool", "32"}), "finish"), "\"pool\"");
  EXPECT_EQ(value_of(json({"-n", "18446744073709551615"}), "finish"), "\"context\"");
  const std::string none = json({"-n", "0"});
  EXPECT_EQ(value_of(none, "finish"), "\"length\"");
  EXPECT_EQ(value_of(none, "tokens"), "[]");
}

TEST(RunVerb, RefusesAPromptThatDoesNotFit) {
  const std::string long_text(2000, 'x');
  const ProgramRun refused = run({"-p", long_text});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("256"), std::string::npos) << refused.err;
  EXPECT_EQ(run({"-p", ""}).status, 1) << "an empty prompt has nothing to go on from";
}

// K72: a file that claims a context of 2^31 costs what is used of it.
TEST(RunVerb, AClaimedContextOfTwoToTheThirtyFirstRuns) {
  test::GgufDraft draft = test::tiny_model({.vocabulary = 128, .context = 1U << 31});
  const test::LoadedModel llama = test::load_file(kModel);
  for (const gguf::KeyValue& entry : llama.file->metadata()) {
    if (entry.key.starts_with("tokenizer.")) draft.set(entry.key, entry.value);
  }
  const std::string path = test::scratch_directory() + "/claims.gguf";
  draft.write(path);
  const ProgramRun answer = run_program(kProgram, {"run", "-m", path, "-p", "hello", "-n", "5", "--json"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_NE(value_of(answer.out, "finish"), "");
}

TEST(RunVerb, AnInterruptEndsItCleanly) {
  test::RunningProgram program(
      kProgram, {"run", "-m", kModel, "-p", "hello", "-n", "90000", "--temp", "0", "--ctx", "100000"});
  ASSERT_TRUE(program.wait_until([&] { return !program.out_so_far().empty(); }));
  program.send(SIGINT);
  const ProgramRun answer = program.wait();
  EXPECT_EQ(answer.signal, 0);
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_NE(answer.err.find("ended by interrupted"), std::string::npos) << answer.err;
  EXPECT_TRUE(answer.out.ends_with("\n"));
}

}  // namespace
}  // namespace kvasir::cli
