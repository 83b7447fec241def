// The verbs of the kvasir program. Each verb is one file verb_NAME.cc with one function here, which adds the
// verb's flags to the program and binds what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "kvasir/result.h"

namespace kvasir::cli {

// What main() runs once the flags are parsed, and the status it ends with: an error is printed as one
// sentence on standard error and gives exit status 1.
using Action = std::function<Status()>;

void add_bench(CLI::App& program, Action& action);
void add_chat(CLI::App& program, Action& action);
void add_demo(CLI::App& program, Action& action);
void add_embed(CLI::App& program, Action& action);
void add_inspect(CLI::App& program, Action& action);
void add_logits(CLI::App& program, Action& action);
void add_perplexity(CLI::App& program, Action& action);
void add_quantize(CLI::App& program, Action& action);
void add_run(CLI::App& program, Action& action);
void add_synth(CLI::App& program, Action& action);
void add_tokenize(CLI::App& program, Action& action);

}  // namespace kvasir::cli
