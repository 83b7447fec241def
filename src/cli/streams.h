// The program's own three streams. What waits on them can be interrupted, nothing is kept back, and what
// becomes of standard error never decides how the program ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::cli {

// Puts something unusable where the program was started without one of its streams: a file that is opened
// later would get the stream's number, and messages would be written into a model. Before anything is opened.
void hold_streams() noexcept;

// Everything on standard input. kNoSpace beyond `limit` bytes, kIo, or kCancelled where the user interrupts.
[[nodiscard]] Result<std::vector<std::byte>> read_input(std::uint64_t limit);

// Whether a path names a pipe or a device: what is there is neither replaced nor read twice.
[[nodiscard]] bool is_stream(const std::string& path);

// The same of a file, of what a pipe or a device gives until its end, or, of "-", of standard input. As
// base::read_whole too.
[[nodiscard]] Result<std::vector<std::byte>> read_all(const std::string& path, std::uint64_t limit);

// Standard input line by line.
class Lines {
 public:
  // The next line without its end, nothing at the end of the input. kNoSpace for a line of more than 1 MiB,
  // kIo, or kCancelled where the user interrupts.
  [[nodiscard]] Result<std::optional<std::string>> next();

 private:
  std::string waiting_;  // read and not yet handed out
  bool ended_ = false;
};

// Writes all of it to standard output at once. kIo, or kCancelled where the user interrupts.
[[nodiscard]] Status print(std::string_view bytes);

// The same to any open descriptor that `name` stands for in a message.
[[nodiscard]] Status print_to(int descriptor, std::string_view name, std::string_view bytes);

// Writes to standard error as it is, as far as that can be done. What is printed before comes before it.
void show(std::string_view text) noexcept;

// A line on standard error, with control characters and ill-formed bytes escaped.
void say(std::string_view sentence);

}  // namespace kvasir::cli
