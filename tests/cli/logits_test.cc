// kvasir logits, as its users run it.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
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

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Logits {
  ProgramRun run;
  std::string bytes;
};

Logits logits(const std::vector<std::string>& flags, const std::string& tokens = kTokens,
              const std::string& model = kModel) {
  const std::string out = test::scratch_directory() + "/out.f32";
  std::vector<std::string> words = {"logits", "-m", model, "--tokens", tokens, "--out", out};
  words.insert(words.end(), flags.begin(), flags.end());
  ProgramRun run = run_program(kProgram, words);
  return {std::move(run), content(out)};
}

// The number of a key in the line of JSON on standard error.
long long reported(const ProgramRun& run, const std::string& key) {
  const std::size_t line = run.err.find("{\"");
  const std::size_t at = run.err.find("\"" + key + "\":", line);
  if (line == std::string::npos || at == std::string::npos) return -1;
  return std::stoll(run.err.substr(at + key.size() + 3));
}

TEST(LogitsVerb, WritesARowOfFloatsForEachToken) {
  const Logits plain = logits({"--kv", "f32"});
  EXPECT_EQ(plain.run.status, 0) << plain.run.err;
  EXPECT_EQ(plain.run.out, "");
  EXPECT_EQ(plain.bytes.size(), 48U * 128U * 4U);
}

TEST(LogitsVerb, GivesTheSameBytesAndSaysWhatItDid) {
  const Logits plain = logits({});
  struct Variant {
    std::vector<std::string> flags;
    std::string key;
    long long least;
  };
  for (const Variant& variant :
       std::vector<Variant>{{{"--split", "1"}, "steps", 48},
                            {{"--split", "7,16,1"}, "steps", 27},
                            {{"--split", "100"}, "steps", 1},
                            {{"--threads", "3"}, "threads", 3},
                            {{"--page", "16"}, "page", 16},
                            {{"--pass", "7"}, "passes", 7},
                            {{"--beside", "3"}, "beside_in_same_pass", 1},
                            {{"--beside", "3", "--split", "5,1"}, "beside_in_same_pass", 1}}) {
    const Logits other = logits(variant.flags);
    EXPECT_EQ(other.run.status, 0) << other.run.err;
    EXPECT_TRUE(other.bytes == plain.bytes) << testing::PrintToString(variant.flags);
    EXPECT_GE(reported(other.run, variant.key), variant.least) << other.run.err;
  }
}

// K10 and K14 through the program: a file, another pool, every second cell of it held, pages of another size.
TEST(LogitsVerb, GoesThroughAnArchiveToTheBit) {
  struct Variant {
    std::vector<std::string> flags;
    std::string at;
  };
  for (const Variant& variant : std::vector<Variant>{{{}, "24"},
                                                     {{"--page", "16"}, "47"},
                                                     {{"--kv", "q8_0:q4_0"}, "40"},
                                                     {{"--beside", "2", "--split", "7"}, "21"},
                                                     {{"--kv", "f32"}, "1"}}) {
    const Logits plain = logits(variant.flags);
    std::vector<std::string> via = variant.flags;
    via.insert(via.end(), {"--via", "archive", "--at", variant.at});
    const Logits through = logits(via);
    EXPECT_EQ(through.run.status, 0) << through.run.err;
    EXPECT_TRUE(through.bytes == plain.bytes) << testing::PrintToString(via);
    EXPECT_GT(reported(through.run, "bytes_loaded"), 0) << through.run.err;
    EXPECT_EQ(reported(through.run, "tokens_recomputed"), 0) << through.run.err;
    EXPECT_EQ(reported(plain.run, "bytes_loaded"), 0) << plain.run.err;
  }
}

// The cells that fill the cache lie in the windows too, so that these find holes of their own.
TEST(LogitsVerb, MovesWhatAWindowHoldsThroughAScatteredCacheAndAnArchive) {
  const std::string directory = test::scratch_directory();
  const std::string model = directory + "/windows.gguf";
  const std::string tokens = directory + "/tokens.txt";
  ASSERT_EQ(run_program(kProgram, {"synth", "window-tiny", model}).status, 0);
  std::ofstream ids(tokens);
  for (int i = 0; i < 1200; ++i) ids << i * 7919 % 509 << ' ';
  ids.close();
  const Logits plain = logits({}, tokens, model);
  EXPECT_EQ(plain.run.status, 0) << plain.run.err;
  for (const std::vector<std::string>& via :
       std::vector<std::vector<std::string>>{{"--via", "compact"}, {"--via", "archive"}}) {
    const Logits moved = logits(via, tokens, model);
    EXPECT_EQ(moved.run.status, 0) << moved.run.err;
    EXPECT_TRUE(moved.bytes == plain.bytes) << via[1];
    EXPECT_GT(reported(moved.run, "cells_moved") + reported(moved.run, "bytes_loaded"), 0) << moved.run.err;
  }
}

TEST(LogitsVerb, WritesTheSameBytesForAConversationThatWasAway) {
  const Logits plain = logits({});
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--beside", "2"}, {"--kv", "q8_0"}, {"--at", "47"}}) {
    std::vector<std::string> words = {"--via", "spill", "--page", "16"};
    words.insert(words.end(), more.begin(), more.end());
    const Logits away = logits(words);
    EXPECT_EQ(away.run.status, 0) << away.run.err;
    EXPECT_TRUE(away.bytes ==
                logits(more.empty() || more[0] != "--kv" ? std::vector<std::string>() : more).bytes);
    EXPECT_GT(reported(away.run, "bytes_returned"), 0) << away.run.err;
    EXPECT_EQ(reported(away.run, "bytes_returned"), reported(away.run, "bytes_spilled"));
    EXPECT_GT(reported(away.run, "bytes_on_disk"), 0) << away.run.err;
    EXPECT_EQ(reported(away.run, "tokens_recomputed"), 0);
  }
  EXPECT_FALSE(plain.bytes.empty());
}

TEST(LogitsVerb, PrintsTheSameDigestForAnySplit) {
  const Logits plain = logits({"--json"});
  EXPECT_NE(plain.run.out.find("\"digest\":\""), std::string::npos) << plain.run.out;
  EXPECT_TRUE(plain.run.out.starts_with("{\"ids\":[")) << plain.run.out;
  EXPECT_EQ(logits({"--json", "--split", "3"}).run.out, plain.run.out);
  EXPECT_EQ(logits({"--json", "--beside", "2"}).run.out, plain.run.out);
  EXPECT_NE(logits({"--json", "--kv", "bf16"}).run.out, plain.run.out) << "other bits have another digest";
}

TEST(LogitsVerb, ReadsStandardInputAndWritesStandardOutput) {
  const Logits plain = logits({});
  const ProgramRun piped =
      run_program(kProgram, {"logits", "-m", kModel, "--tokens", "-", "--out", "-"}, content(kTokens));
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_TRUE(piped.out == plain.bytes);
}

TEST(LogitsVerb, RefusesTokensThatAreNone) {
  for (const char* ids : {"", " \n", "1 2 x", "1 -1", "1 128", "1 99999999999999999999", "1.5"}) {
    const std::string out = test::scratch_directory() + "/out.f32";
    const ProgramRun run =
        run_program(kProgram, {"logits", "-m", kModel, "--tokens", "-", "--out", out}, ids);
    EXPECT_EQ(run.status, 1) << ids;
    EXPECT_NE(run.err.find("kvasir: "), std::string::npos) << run.err;
    EXPECT_FALSE(std::filesystem::exists(out)) << ids;
  }
}

// The default context is what the model was trained for.
TEST(LogitsVerb, RefusesMoreTokensThanTheContextAndNamesTheFlag) {
  std::string ids;
  for (int i = 0; i < 300; ++i) ids += std::to_string(i % 128) + " ";
  const std::string out = test::scratch_directory() + "/out.f32";
  std::vector<std::string> words = {"logits", "-m", kModel, "--tokens", "-", "--out", out};
  const ProgramRun refused = run_program(kProgram, words, ids);
  EXPECT_EQ(refused.status, 1);
  for (const char* part : {"300", "256"}) EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  words.insert(words.end(), {"--ctx", "300"});
  EXPECT_EQ(run_program(kProgram, words, ids).status, 0);
}

TEST(LogitsVerb, RefusesAPoolThatIsTooSmallAndKeepsAnOldFile) {
  const std::string out = test::scratch_directory() + "/out.f32";
  std::ofstream(out) << "old";
  const ProgramRun refused =
      run_program(kProgram, {"logits", "-m", kModel, "--tokens", kTokens, "--out", out, "--pool", "32"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("48"), std::string::npos) << refused.err;
  EXPECT_EQ(content(out), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(out).parent_path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(LogitsVerb, AnInterruptRemovesTheOutputAndIsStatusOne) {
  const std::string folder = test::scratch_directory();
  const std::string ids = test::scratch_directory() + "/ids.txt";
  std::ofstream(ids) << [] {
    std::string text;
    for (int i = 0; i < 20'000; ++i) text += std::to_string(i % 128) + " ";
    return text;
  }();
  test::RunningProgram program(kProgram, {"logits", "-m", kModel, "--tokens", ids, "--out",
                                          folder + "/out.f32", "--ctx", "30000", "--pass", "4"});
  // The file that will be the target shows that computing has begun.
  ASSERT_TRUE(program.wait_until([&] { return program.has_open_in(folder); }));
  program.send(SIGINT);
  const ProgramRun run = program.wait();
  EXPECT_EQ(run.signal, 0);
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_NE(run.err.find("interrupted"), std::string::npos) << run.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace kvasir::cli
