// The kvasir program: exit status 0 done, 1 could not (one sentence on standard error), 2 wrong usage.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cli/verbs.h"

namespace kvasir::cli {
namespace {

constexpr int kCouldNot = 1;
constexpr int kWrongUsage = 2;

int complain(const std::string& sentence) {
  std::fprintf(stderr, "kvasir: %s\n", sentence.c_str());
  return kCouldNot;
}

int run_program(int argc, char** argv) {
  CLI::App program("Many LLM conversations over one model and one KV cache.", "kvasir");
  program.set_version_flag("--version", "kvasir 0.1.0");
  program.require_subcommand(1);
  Action action;
  add_bench(program, action);
  add_inspect(program, action);
  add_logits(program, action);
  add_perplexity(program, action);
  add_quantize(program, action);
  add_run(program, action);
  add_synth(program, action);
  add_tokenize(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : kWrongUsage;
  }
  if (const Status done = action(); !done) return complain(done.error().message());
  if (std::fflush(stdout) != 0) return complain("cannot write to standard output");
  return 0;
}

}  // namespace
}  // namespace kvasir::cli

int main(int argc, char** argv) {
  // A reader that goes away, or a file that may not grow, shows as a failed write, not as a signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return kvasir::cli::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    return kvasir::cli::complain("out of memory");
  } catch (const std::exception& error) {
    return kvasir::cli::complain(std::string("internal error: ") + error.what());
  }
}
