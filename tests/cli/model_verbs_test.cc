// kvasir synth and kvasir quantize, as their users run them.

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/interrupt.h"
#include "cli/weight_types.h"
#include "support/paths.h"
#include "support/process.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using test::ProgramRun;

const std::string kProgram = KVASIR_PROGRAM;

ProgramRun kvasir(const std::vector<std::string>& arguments, std::string_view input = {},
                  const std::string& out_path = {}) {
  return test::run_program(kProgram, arguments, input, out_path);
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_empty(const std::string& directory) {
  return fs::directory_iterator(directory) == fs::directory_iterator();
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(ModelVerbs, NamesThatDoNotExistAreWrongUsage) {
  const std::string directory = test::scratch_directory();
  const ProgramRun shape = kvasir({"synth", "llama-9b", directory + "/out.gguf"});
  EXPECT_EQ(shape.status, 2);
  EXPECT_NE(shape.err.find("llama-1b qwen-0.5b llama-tiny"), std::string::npos) << shape.err;
  const ProgramRun type = kvasir({"synth", "llama-tiny", directory + "/out.gguf", "--type", "Q9_0"});
  EXPECT_EQ(type.status, 2);
  EXPECT_NE(type.err.find("Q4_K_M"), std::string::npos) << type.err;
  EXPECT_EQ(kvasir({"quantize", "in.gguf", directory + "/out.gguf", "Q9_0"}).status, 2);
  EXPECT_EQ(kvasir({"quantize", "in.gguf", directory + "/out.gguf"}).status, 2);
  EXPECT_EQ(kvasir({"synth", "llama-tiny", directory + "/out.gguf", "--threads", "0"}).status, 2);
  EXPECT_TRUE(is_empty(directory));
}

TEST(ModelVerbs, WhatCannotBeDoneIsOneSentenceAndStatus1) {
  const std::string directory = test::scratch_directory();
  const std::string out = directory + "/out.gguf";
  const std::string absent = directory + "/no.gguf";
  const std::vector<std::string> lines = {"synth llama-tiny " + out + " --type IQ1_S",
                                          "synth llama-tiny " + directory + "/no/out.gguf",
                                          "synth llama-tiny " + directory,
                                          "synth llama-tiny " + out + " --vocab " + absent,
                                          "quantize " + absent + " " + out + " Q8_0",
                                          "quantize " + directory + " " + out + " Q8_0"};
  for (const std::string& line : lines) {
    std::istringstream text(line);
    const std::vector<std::string> arguments(std::istream_iterator<std::string>(text), {});
    const ProgramRun run = kvasir(arguments);
    EXPECT_EQ(run.status, 1) << line;
    EXPECT_EQ(lines_in(run.err), 1U) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(is_empty(directory));
  }
}

TEST(ModelVerbs, ADeviceTakesWhatIsWrittenAndStaysOne) {
  const std::string device =
      test::scratch_directory() + "/device";  // a link, so that a mistake takes no device away
  fs::create_symlink("/dev/null", device);
  EXPECT_EQ(kvasir({"synth", "llama-tiny", device}).status, 0);
  EXPECT_TRUE(fs::is_character_file(device));
  EXPECT_TRUE(fs::is_symlink(device));
  const ProgramRun full = kvasir({"synth", "llama-tiny", "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.err.find("cannot write to '/dev/full'"), std::string::npos) << full.err;
}

TEST(ModelVerbs, AFileAndAPipeCarryTheSameBytes) {
  const std::string directory = test::scratch_directory();
  ASSERT_EQ(kvasir({"synth", "llama-tiny", directory + "/a.gguf", "--type", "Q8_0", "--seed", "7"}).status,
            0);
  ASSERT_EQ(
      kvasir({"synth", "llama-tiny", "-", "--type", "Q8_0", "--seed", "7"}, {}, directory + "/b.gguf").status,
      0);
  const std::string model = content(directory + "/a.gguf");
  EXPECT_EQ(content(directory + "/b.gguf"), model);
  ASSERT_EQ(kvasir({"quantize", directory + "/a.gguf", directory + "/c.gguf", "Q4_K_M"}).status, 0);
  const ProgramRun piped = kvasir({"quantize", "-", "-", "q4_k_m"}, model, directory + "/d.gguf");
  ASSERT_EQ(piped.status, 0);
  EXPECT_NE(piped.err.find("Q8_0 already"), std::string::npos) << piped.err;
  EXPECT_EQ(content(directory + "/d.gguf"), content(directory + "/c.gguf"));
}

TEST(ModelVerbs, AFullDeviceIsAnErrorAndNotASignal) {
  const ProgramRun run = kvasir({"synth", "llama-tiny", "-"}, {}, "/dev/full");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.signal, 0);
  EXPECT_NE(run.err.find("cannot write"), std::string::npos) << run.err;
}

// Files of this process and its children may not grow beyond some bytes while this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(ModelVerbs, WithoutSpaceTheOldFileStaysAndNothingElse) {
  const std::string directory = test::scratch_directory();
  const std::string path = directory + "/out.gguf";
  std::ofstream(path) << "old";
  ProgramRun run;
  {
    const FileSizeLimit limit(100'000);
    run = kvasir({"synth", "llama-tiny", path});
  }
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.signal, 0);
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
}

// Starts the program, waits until it has begun a file in `directory`, sends it `signal`, and answers its exit
// status.
int status_after_signal(std::vector<std::string> words, const std::string& directory, int signal) {
  std::string program = kProgram;
  std::vector<char*> pointers = {program.data()};
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", 1, 0);
  pid_t child = 0;
  const int started = ::posix_spawn(&child, kProgram.c_str(), &quiet, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (started != 0) return -1;
  int status = 0;
  while (!test::has_open_in(child, directory) && ::waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(child, signal);
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(ModelVerbs, ASignalEndsThemWithStatus1AndTheOutputRemoved) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string directory = test::scratch_directory();
    EXPECT_EQ(status_after_signal({"synth", "qwen-0.5b", directory + "/out.gguf", "--type", "Q8_0"},
                                  directory, signal),
              1);
    EXPECT_TRUE(is_empty(directory));
  }
}

TEST(Interrupts, ASignalThatIsWatchedOnlySetsTheFlag) {
  EXPECT_FALSE(interrupted());
  EXPECT_EXIT(
      {
        watch_interrupts();
        if (interrupted()) std::_Exit(2);
        std::raise(SIGINT);
        std::raise(SIGTERM);  // of the same request
        std::_Exit(interrupted() ? 7 : 3);
      },
      testing::ExitedWithCode(7), "");
}

TEST(Interrupts, ASecondSignalAGoodWhileLaterEndsTheProcess) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          watch_interrupts();
          std::raise(signal);
          std::this_thread::sleep_for(std::chrono::milliseconds(400));
          std::raise(signal);
          std::_Exit(3);
        },
        testing::KilledBySignal(signal), "");
  }
}

TEST(ModelVerbs, ProgressEndsAtAHundredPercent) {
  const std::string path = test::scratch_directory() + "/out.gguf";
  EXPECT_NE(kvasir({"synth", "llama-tiny", path}).err.find("100 %\n"), std::string::npos);
  EXPECT_NE(kvasir({"quantize", path, path + "2", "F16"}).err.find("100 %\n"), std::string::npos);
}

TEST(ModelVerbs, QuantizeListsOnlyTheTypesThatItCanWrite) {
  const std::string out = test::scratch_directory() + "/out.gguf";
  const ProgramRun unknown = kvasir({"quantize", "in.gguf", out, "Q99"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("there is no weight type 'Q99'"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find(weight_target_names(true) + ";"), std::string::npos) << unknown.err;
  ASSERT_NE(weight_target_names(true), weight_target_names(false));
  const ProgramRun unmade = kvasir({"quantize", "in.gguf", out, "IQ1_S"});
  EXPECT_EQ(unmade.status, 1);
  EXPECT_NE(unmade.err.find(weight_target_names(true)), std::string::npos) << unmade.err;
}

}  // namespace
}  // namespace kvasir::cli
