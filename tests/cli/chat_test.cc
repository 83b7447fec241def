// kvasir chat and kvasir inspect on what it saves, as their users run them.

#include <gtest/gtest.h>
#include <sys/stat.h>

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

ProgramRun chat(const std::string& lines, std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), {"chat", "-m", kModel, "--seed", "7", "-n", "6"});
  return run_program(kProgram, flags, lines);
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ChatVerb, AnswersEachLineAndTheSameForTheSameSeed) {
  const ProgramRun once = chat("hello\nand then\n");
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_FALSE(once.out.empty());
  EXPECT_EQ(chat("hello\nand then\n").out, once.out);
  EXPECT_EQ(chat("hello\r\n\nand then").out, once.out) << "ends of lines and empty ones do not matter";
  EXPECT_NE(chat("hello\nand then\n", {"--system", "Be brief."}).out, once.out);
  EXPECT_EQ(chat("").status, 0);
}

TEST(ChatVerb, GoesOnFromAnArchiveAsIfNothingHadHappened) {
  const std::string file = test::scratch_directory() + "/talk.kvar";
  const ProgramRun whole = chat("hello\nand then\n");
  const ProgramRun first = chat("hello\n/save " + file + "\n");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.err.find("tokens saved in"), std::string::npos) << first.err;
  EXPECT_EQ(whole.out.substr(0, first.out.size()), first.out);
  const ProgramRun second = chat("/load " + file + "\nand then\n", {"--page", "64"});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(first.out + second.out, whole.out);
}

TEST(ChatVerb, ForksAndReturns) {
  const ProgramRun forked = chat("hello\n/fork\nsomething else\n/back\nand then\n");
  EXPECT_EQ(forked.status, 0) << forked.err;
  const std::string whole = chat("hello\nand then\n").out;
  const std::string first = chat("hello\n").out;
  ASSERT_GT(forked.out.size(), whole.size() - 1);
  EXPECT_TRUE(forked.out.ends_with(whole.substr(first.size()))) << "the fork has left no trace";
}

TEST(ChatVerb, RewindsAndSaysWhatCannotBe) {
  const ProgramRun run = chat(
      "hello\n/rewind 3\n/rewind 99999\n/rewind x\n/back\n/load /no/such/file\n/save\n/nothing\n/help\n/help "
      "me\nand\n");
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* part : {"kvasir: 3 tokens", "99999", "not 'x'", "this is no fork", "/no/such/file",
                           "/save: ", "there is no /nothing", "/load FILE"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " in " << run.err;
  }
  EXPECT_FALSE(run.out.empty());
}

TEST(ChatVerb, GoesOnWhereAnArchiveCannotBeWrittenAndEndsAtQuit) {
  const std::string directory = test::scratch_directory();
  const std::string link = directory + "/link.kvar";
  std::ofstream(directory + "/real.kvar") << "old";
  std::filesystem::create_symlink(directory + "/real.kvar", link);
  const std::string pipe = directory + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const ProgramRun run = chat("hello\n/save " + directory + "\n/save " + pipe + "\n/save " + directory +
                              "/none/x\n/save " + link + "\nand then\n/quit\nnever read\n");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, chat("hello\nand then\n").out);
  EXPECT_NE(run.err.find("pipe' is not a regular file"), std::string::npos) << run.err;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_GT(std::filesystem::file_size(directory + "/real.kvar"), 100U);
}

TEST(ChatVerb, CtrlCIsAnOrdinaryEnd) {
  test::RunningProgram program(kProgram, {"chat", "-m", kModel});
  program.send(SIGINT);
  const ProgramRun run = program.wait();
  EXPECT_TRUE(run.status == 0 || run.signal == SIGINT) << "the latter before it has begun to watch";
}

TEST(InspectVerb, ShowsAnArchiveAndChecksItWhole) {
  const std::string file = test::scratch_directory() + "/talk.kvar";
  ASSERT_EQ(chat("hello\n/save " + file + "\n").status, 0);
  const ProgramRun text = run_program(kProgram, {"inspect", file});
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* part : {"Kvasir archive version 2", "llama", "keys f16", "conversations: 1", "seed 7"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in " << text.out;
  const ProgramRun json = run_program(kProgram, {"inspect", file, "--json"});
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_TRUE(json.out.starts_with("{\"format\":\"archive\",\"version\":2,")) << json.out;
  const std::string bytes = content(file);
  EXPECT_EQ(run_program(kProgram, {"inspect", "-", "--json"}, bytes).out, json.out);
  // K13 through the program.
  for (std::size_t at = 3; at < bytes.size(); at += bytes.size() / 40) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_EQ(run_program(kProgram, {"inspect", "-"}, damaged).status, 1) << at;
    EXPECT_EQ(run_program(kProgram, {"inspect", "-"}, bytes.substr(0, at)).status, 1) << at;
  }
}

}  // namespace
}  // namespace kvasir::cli
