#include "support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "support/paths.h"

namespace kvasir::test {
namespace {

[[noreturn]] void give_up(const char* what, const std::string& about) {
  std::fprintf(stderr, "cannot %s '%s'\n", what, about.c_str());
  std::abort();
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What the child's standard files are: plain files, so that no pipe can fill up and block.
class Redirections {
 public:
  Redirections(const std::string& in, const std::string& out, const std::string& err) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
  }
  Redirections(const Redirections&) = delete;
  Redirections& operator=(const Redirections&) = delete;
  ~Redirections() { posix_spawn_file_actions_destroy(&actions_); }

  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

int run_to_end(const std::string& program, const std::vector<std::string>& arguments,
               const Redirections& redirections) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawn(&child, program.c_str(), redirections.get(), nullptr, pointers.data(), environ) != 0) {
    give_up("start", program);
  }
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) give_up("wait for", program);
  }
  return state;
}

}  // namespace

ProgramRun run_program(const std::string& program, const std::vector<std::string>& arguments,
                       std::string_view input, const std::string& out_path) {
  static const std::string folder = scratch_directory();
  const std::string in = folder + "/in";
  const std::string out = out_path.empty() ? folder + "/out" : out_path;
  const std::string err = folder + "/err";
  std::ofstream(in, std::ios::binary) << input;
  const int state = run_to_end(program, arguments, Redirections(in, out, err));
  ProgramRun run;
  if (WIFEXITED(state)) run.status = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) run.signal = WTERMSIG(state);
  if (out_path.empty()) run.out = content(out);
  run.err = content(err);
  return run;
}

}  // namespace kvasir::test
