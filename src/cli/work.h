// What long work asks of, and tells, whoever started it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace kvasir::cli {

// All are called from the thread that started the work; none may be empty.
struct WorkHooks {
  std::function<void(std::uint64_t total)> begin;  // once, before the first progress
  std::function<void(std::uint64_t done, std::string_view what)> progress;
  std::function<void(std::string_view sentence)> note;  // something its user should know
  std::function<bool()> stop;                           // whether to give up, asked every few MiB
};

}  // namespace kvasir::cli
