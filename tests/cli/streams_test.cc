// The program's three streams, as its users lack, fill and block them.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.h"
#include "support/process.h"

namespace kvasir::cli {
namespace {

using test::ProgramRun;

const std::string kProgram = KVASIR_PROGRAM;
const std::string kModel = test::data_path("models/llama/model.gguf");
const std::string kTokens = test::data_path("models/llama/tokens.txt");

// What a shell makes of a line, in which $K is the program and $M a model.
ProgramRun shell(const std::string& line) {
  return test::run_program("/bin/sh", {"-c", "K='" + kProgram + "'; M='" + kModel + "'; " + line});
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Streams, WithoutTheirStreamsVerbsWriteTheSameBytes) {
  const std::string folder = test::scratch_directory() + "/";
  const std::string synth = "$K synth llama-tiny " + folder;
  ASSERT_EQ(shell(synth + "a").status, 0);
  const std::string quantize = "$K quantize " + folder + "a " + folder;
  ASSERT_EQ(shell(quantize + "q F16").status, 0);
  for (const char* closed : {"2>&-", "<&-", ">&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(shell(synth + "b " + closed).status, 0) << closed;
    EXPECT_TRUE(content(folder + "b") == content(folder + "a")) << closed;
    EXPECT_EQ(shell(quantize + "r F16 " + closed).status, 0) << closed;
    EXPECT_TRUE(content(folder + "r") == content(folder + "q")) << closed;
  }
}

TEST(Streams, AClosedStandardInputOrOutputIsAnErrorOfItsOwn) {
  const ProgramRun input = shell("$K tokenize -m $M <&-");
  EXPECT_EQ(input.status, 1);
  EXPECT_EQ(input.out, "");
  EXPECT_NE(input.err.find("cannot read standard input"), std::string::npos) << input.err;
  const ProgramRun output = shell("$K run -m $M -p hello -n 3 >&-");
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.err.find("cannot write to standard output"), std::string::npos) << output.err;
}

TEST(Streams, MessagesThatCannotBeWrittenDoNotChangeHowAVerbEnds) {
  const std::string folder = test::scratch_directory() + "/";
  for (const std::string& verb :
       std::vector<std::string>{"run -m $M -p hello -n 3 --temp 0",
                                fmt::format("logits -m $M --tokens '{}' --out {}l", kTokens, folder),
                                fmt::format("synth llama-tiny {}s", folder),
                                fmt::format("quantize {0}s {0}q F16", folder), "bench -m $M --pp 3 --tg 1"}) {
    EXPECT_EQ(shell("$K " + verb + " 2>/dev/full").status, 0) << verb;
    EXPECT_EQ(shell("$K " + verb + " 2>&-").status, 0) << verb;
  }
}

TEST(Streams, WhatIsPrintedComesBeforeWhatIsSaidAfterIt) {
  const ProgramRun run = shell("$K run -m $M -p hello -n 5 --temp 0 2>&1");
  EXPECT_EQ(run.status, 0);
  EXPECT_NE(run.out.find("\nkvasir: 3 prompt tokens"), std::string::npos) << run.out;
}

TEST(Streams, HelpAndVersionThatCannotBeWrittenAreStatusOne) {
  for (const char* flags : {"--help", "--version", "run --help", "help", "help run"}) {
    const ProgramRun run = shell(std::string("$K ") + flags + " >/dev/full");
    EXPECT_EQ(run.status, 1) << flags;
    EXPECT_NE(run.err.find("cannot write to standard output"), std::string::npos) << run.err;
  }
}

TEST(Streams, NamesWithControlCharactersAreEscapedInMessages) {
  for (const char* line :
       {"$K run -p x -m \"$(printf 'no\\033[31m\\nfile')\"", "$K \"$(printf 'no\\033\\nverb')\"",
        "$K synth \"$(printf 'no\\033\\nshape')\" x"}) {
    const ProgramRun run = shell(line);
    EXPECT_NE(run.status, 0) << line;
    EXPECT_NE(run.err.find("no\\x1B"), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find('\033'), std::string::npos) << line;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  }
}

// A named pipe that stays open at both ends.
class NamedPipe {
 public:
  NamedPipe() {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    both_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  }
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;
  ~NamedPipe() { ::close(both_); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool full() const {
    pollfd room{.fd = both_, .events = POLLOUT, .revents = 0};
    return ::poll(&room, 1, 0) == 0;
  }
  [[nodiscard]] bool empty() const {
    int bytes = -1;
    return ::ioctl(both_, FIONREAD, &bytes) == 0 && bytes == 0;
  }
  void put(std::string_view text) const {
    EXPECT_EQ(::write(both_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

 private:
  std::string path_ = test::scratch_directory() + "/pipe";
  int both_ = -1;
};

// The verb takes the shell's place: a signal goes to the verb itself.
std::vector<std::string> in_place_of_a_shell(const std::string& verb) {
  return {"-c", "M='" + kModel + "'; exec '" + kProgram + "' " + verb};
}

TEST(Streams, AnInterruptEndsAVerbWhoseOutputNobodyReads) {
  const std::string model = test::scratch_directory() + "/model";
  ASSERT_EQ(shell("$K synth llama-tiny " + model).status, 0);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "1 ";
  const std::string ids = test::scratch_directory() + "/ids";
  std::ofstream(ids) << many;
  for (const std::string& verb : {std::string("synth llama-tiny -"), "quantize " + model + " - F32",
                                  "logits -m $M --out - --split 1 --tokens " + ids}) {
    const NamedPipe pipe;
    test::RunningProgram program("/bin/sh", in_place_of_a_shell(verb + " >" + pipe.path()));
    ASSERT_TRUE(program.wait_until([&] { return pipe.full(); })) << verb;
    program.send(SIGINT);
    const ProgramRun run = program.wait();
    EXPECT_EQ(run.status, 1) << verb << run.err;
    EXPECT_NE(run.err.find("interrupted"), std::string::npos) << run.err;
  }
}

// Nothing was begun that had to be cleared away.
TEST(Streams, AnInterruptEndsAVerbThatWaitsForItsInput) {
  for (const char* verb : {"bench -m $M --tokens -", "logits -m $M --out x --tokens -",
                           "perplexity -m $M -f -", "quantize - x F16", "tokenize -m $M"}) {
    const NamedPipe pipe;
    test::RunningProgram program("/bin/sh", in_place_of_a_shell(std::string(verb) + " <" + pipe.path()));
    pipe.put("1 2 3 ");
    ASSERT_TRUE(program.wait_until([&] { return pipe.empty(); })) << verb;
    program.send(SIGINT);
    const test::ProgramRun run = program.wait();
    EXPECT_EQ(run.status, 1) << verb;
    EXPECT_EQ(run.signal, 0) << verb;
    EXPECT_NE(run.err.find("interrupted"), std::string::npos) << verb << ": " << run.err;
  }
}

}  // namespace
}  // namespace kvasir::cli
