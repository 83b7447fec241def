// Running a program as its users do.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::test {

struct ProgramRun {
  int status = -1;  // its exit status, or -1 where a signal ended it
  int signal = 0;   // that signal, or 0
  std::string out;
  std::string err;
};

// Runs `program` to its end with these arguments, `input` on standard input and this process's environment.
// `out_path` takes standard output instead of the answer. A program that cannot be started ends the test
// program.
[[nodiscard]] ProgramRun run_program(const std::string& program, const std::vector<std::string>& arguments,
                                     std::string_view input = {}, const std::string& out_path = {});

// Whether a process has a file of this folder open, be it one without a name.
[[nodiscard]] bool has_open_in(pid_t process, const std::string& folder);

// A program that still runs, with files of its own as its standard output and error. Killed when it goes out
// of scope before wait().
class RunningProgram {
 public:
  RunningProgram(const std::string& program, const std::vector<std::string>& arguments);
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();

  // Looks again and again until `seen` comes true or the program has ended; says whether it came true first.
  [[nodiscard]] bool wait_until(const std::function<bool()>& seen);

  [[nodiscard]] bool has_open_in(const std::string& folder) const {
    return test::has_open_in(child_, folder);
  }

  // What it has written to standard output so far.
  [[nodiscard]] std::string out_so_far() const;

  void send(int signal);
  [[nodiscard]] ProgramRun wait();

 private:
  bool ended(int options);

  std::string folder_;
  pid_t child_ = 0;  // 0 once it has been waited for
  int state_ = 0;
};

}  // namespace kvasir::test
