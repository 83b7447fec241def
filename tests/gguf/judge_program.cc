#include "judge_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "support/paths.h"
#include "support/process.h"

namespace kvasir::gguf::test {

std::optional<std::string> judge_program(const std::string& program, const Bytes& bytes, bool json) {
  static const std::string path = kvasir::test::scratch_directory() + "/damaged.gguf";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::vector<std::string> arguments = {"inspect", path};
  if (json) arguments.emplace_back("--json");
  const kvasir::test::ProgramRun run = kvasir::test::run_program(program, arguments);
  const bool valid = parse(bytes).has_value();
  if (run.signal != 0) return fmt::format("the program ended by signal {}: {}", run.signal, run.err);
  if (run.status != (valid ? 0 : 1))
    return fmt::format("the program ended with status {}: {}", run.status, run.err);
  if (run.out.empty() == valid) return fmt::format("the program answers '{}'", run.out);
  if (valid) return run.err.empty() ? std::nullopt : std::optional("the program complains: " + run.err);
  if (!run.err.starts_with("kvasir: ") || std::ranges::count(run.err, '\n') != 1) {
    return "the program does not say one sentence: " + run.err;
  }
  return std::nullopt;
}

}  // namespace kvasir::gguf::test
