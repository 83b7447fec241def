#include "cli/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/try.h"

namespace kvasir::cli {
namespace {

std::unexpected<Error> refused(const std::string& what, int code) {
  return fail(Outcome::kIo, what + ": " + std::error_code(code, std::generic_category()).message());
}

}  // namespace

Result<std::string> own_path() {
  std::error_code code;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return refused("cannot tell where this program is", code.value());
  return path.string();
}

Result<Child> Child::start(const std::vector<std::string>& arguments) {
  KVASIR_ASSIGN(const std::string path, own_path());
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return refused("cannot make a pipe", errno);
  std::vector<std::string> all = {path};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(all.size() + 1);
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  pid_t child = 0;
  const int code = ::posix_spawn(&child, path.c_str(), &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  if (code != 0) {
    ::close(pipe[0]);
    return refused("cannot start '" + path + "'", code);
  }
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  return Child(child, pipe[0]);
}

Child::Child(Child&& other) noexcept
    : child_(std::exchange(other.child_, 0)),
      id_(other.id_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      status_(other.status_),
      out_(std::move(other.out_)) {}

Child::~Child() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (child_ == 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<bool> Child::finished() {
  if (child_ == 0) return true;
  while (true) {
    std::array<char, 4096> some{};
    const ssize_t got = ::read(descriptor_, some.data(), some.size());
    if (got > 0) {
      out_.append(some.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) return refused("cannot read from a process", errno);
    break;  // it has closed its output: it ends
  }
  int state = 0;
  while (::waitpid(child_, &state, 0) < 0) {
    if (errno != EINTR) return refused("cannot wait for a process", errno);
  }
  child_ = 0;
  if (WIFEXITED(state)) status_ = WEXITSTATUS(state);
  return true;
}

}  // namespace kvasir::cli
