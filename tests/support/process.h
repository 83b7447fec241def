// Running a program as its users do.
#pragma once

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

}  // namespace kvasir::test
