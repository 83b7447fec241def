// The program running itself once more, as a process of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::cli {

// Where this program's file is. kIo where the system does not tell.
[[nodiscard]] Result<std::string> own_path();

// Move-only. Whoever goes out of scope before finished() ends it.
class Child {
 public:
  // This program with these arguments; its standard error is ours, its input empty. kIo.
  [[nodiscard]] static Result<Child> start(const std::vector<std::string>& arguments);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  // Reads what has come, without waiting; whether it has ended. kIo.
  [[nodiscard]] Result<bool> finished();

  [[nodiscard]] int id() const noexcept { return id_; }
  [[nodiscard]] const std::string& out() const noexcept { return out_; }  // what it printed so far
  // Once it has finished: its exit status, or -1 where a signal ended it.
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  Child(pid_t child, int out) noexcept : child_(child), id_(child), descriptor_(out) {}

  pid_t child_ = 0;  // 0 once it has been waited for
  int id_ = 0;
  int descriptor_ = -1;
  int status_ = -1;
  std::string out_;
};

}  // namespace kvasir::cli
