// Where tests find their data.
#pragma once

#include <optional>
#include <string>

namespace kvasir::test {

// tests/data/NAME in the source tree.
std::string data_path(const std::string& name);

// shared/reference/NAME beside the repository, or nothing where it is not there. A test over it then skips
// with KVASIR_NEEDS_REFERENCE's sentence.
std::optional<std::string> reference_path(const std::string& name);

// A new empty directory for one test, removed when the process ends.
std::string scratch_directory();

}  // namespace kvasir::test

// Skips the test, saying so, where the large reference data is not present.
#define KVASIR_NEEDS_REFERENCE(variable, name)                                          \
  const auto variable##_found = ::kvasir::test::reference_path(name);                   \
  if (!variable##_found) GTEST_SKIP() << "needs the reference data '" << (name) << "'"; \
  const std::string& variable = *variable##_found
