// The shipped model, loaded once, and talks with it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/village.h"
#include "kvasir/executor.h"

namespace kvasir::test {

// The value of a call that must succeed; ends the test with the error's sentence otherwise.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// models/village.gguf on two threads.
[[nodiscard]] const Model& village_model();

// A cache with room for everybody, and nobody in it; the program's sizes but for the pool.
[[nodiscard]] Executor roomy_executor(std::uint64_t pool);

// A conversation that is told who it is, and has read it.
[[nodiscard]] Conversation wake(Executor& executor, const cli::Person& person);

// Asks all of them at once, the i-th the i-th question; what they answer.
[[nodiscard]] std::vector<std::string> ask(const std::vector<Conversation*>& talks,
                                           const std::vector<std::string>& questions);

// Asks one.
[[nodiscard]] std::string ask(Conversation& talk, std::string_view question);

}  // namespace kvasir::test
