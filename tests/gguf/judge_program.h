// Judges what the kvasir program makes of a file.
#pragma once

#include <optional>
#include <string>

#include "raw_gguf.h"

namespace kvasir::gguf::test {

// Writes the file and runs `program inspect` on it, with --json or without. It must end by itself, with
// status 0 and an answer for a file that File::parse takes, and else with status 1 and one sentence. Answers
// a complaint, or nothing.
[[nodiscard]] std::optional<std::string> judge_program(const std::string& program, const Bytes& bytes,
                                                       bool json);

}  // namespace kvasir::gguf::test
