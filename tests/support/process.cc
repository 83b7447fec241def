#include "support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

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

pid_t start(const std::string& program, const std::vector<std::string>& arguments,
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
  return child;
}

int run_to_end(const std::string& program, const std::vector<std::string>& arguments,
               const Redirections& redirections) {
  const pid_t child = start(program, arguments, redirections);
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) give_up("wait for", program);
  }
  return state;
}

ProgramRun run_of(int state) {
  ProgramRun run;
  if (WIFEXITED(state)) run.status = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) run.signal = WTERMSIG(state);
  return run;
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
  ProgramRun run = run_of(state);
  if (out_path.empty()) run.out = content(out);
  run.err = content(err);
  return run;
}

RunningProgram::RunningProgram(const std::string& program, const std::vector<std::string>& arguments)
    : folder_(scratch_directory()),
      child_(start(program, arguments, Redirections("/dev/null", folder_ + "/out", folder_ + "/err"))) {}

RunningProgram::~RunningProgram() {
  if (ended(WNOHANG)) return;
  send(SIGKILL);
  (void)ended(0);
}

bool RunningProgram::ended(int options) {
  if (child_ == 0) return true;
  pid_t found = 0;
  while ((found = ::waitpid(child_, &state_, options)) < 0) {
    if (errno != EINTR) give_up("wait for", folder_);
  }
  if (found == 0) return false;
  child_ = 0;
  return true;
}

bool has_open_in(pid_t process, const std::string& folder) {
  std::error_code gone;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    if (target.starts_with(folder + "/")) return true;
  }
  return false;
}

bool RunningProgram::wait_until(const std::function<bool()>& seen) {
  while (!seen()) {
    if (ended(WNOHANG)) return seen();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::string RunningProgram::out_so_far() const {
  return content(folder_ + "/out");
}

void RunningProgram::send(int signal) {
  if (child_ != 0) ::kill(child_, signal);
}

ProgramRun RunningProgram::wait() {
  (void)ended(0);
  ProgramRun run = run_of(state_);
  run.out = content(folder_ + "/out");
  run.err = content(folder_ + "/err");
  return run;
}

}  // namespace kvasir::test
