// The kvasir program: exit status 0 done, 1 could not (one sentence on standard error), 2 wrong usage.

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/remedy.h"
#include "cli/streams.h"
#include "cli/verbs.h"
#include "kvasir/log.h"

namespace kvasir::cli {
namespace {

constexpr int kCouldNot = 1;
constexpr int kWrongUsage = 2;

int complain(const std::string& sentence) {
  say("kvasir: " + sentence);
  return kCouldNot;
}

int refuse(const std::string& sentence, const std::string& help) {
  say("kvasir: " + sentence + "; " + help);
  return kWrongUsage;
}

int refuse_verb(const std::string& sentence) {
  return refuse(sentence, "kvasir --help lists the verbs");
}

int finish(const Status& done) {
  return done ? 0 : complain(sentence_of(done.error()));
}

const CLI::App* find_verb(const CLI::App& program, const std::string& name) {
  const auto found = program.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// `kvasir help` and `kvasir help VERB`.
int help(const CLI::App& program, const std::string& verb) {
  if (verb.empty()) return finish(print(program.help()));
  const CLI::App* known = find_verb(program, verb);
  if (known == nullptr) return refuse_verb("there is no verb '" + verb + "'");
  return finish(print(known->help(program.get_name())));
}

// What the parser ended with: a text that was asked for, or what is wrong with the arguments.
int end_with(const CLI::App& program, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream unused;
  if (program.exit(error, out, unused) == 0) return finish(print(out.str()));
  const auto verbs = program.get_subcommands();
  const std::string verb = verbs.empty() ? "" : verbs.front()->get_name() + " ";
  return refuse(error.what(), "kvasir " + verb + "--help tells more");
}

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};  // as LogLevel

// What the library tells is told on standard error, from the level on that KVASIR_LOG names.
bool start_log() {
  const char* const named = std::getenv("KVASIR_LOG");  // NOLINT(concurrency-mt-unsafe): no thread sets it
  const std::string_view wanted = named != nullptr && *named != 0 ? named : "warn";
  const auto found = std::ranges::find(kLevels, wanted);
  if (found == kLevels.end()) return false;
  set_log(static_cast<LogLevel>(found - kLevels.begin()), [](LogLevel level, std::string_view line) {
    say("kvasir: " + std::string(kLevels[static_cast<std::size_t>(level)]) + ": " + std::string(line));
  });
  return true;
}

int run_program(int argc, char** argv) {
  if (!start_log()) {
    say("kvasir: KVASIR_LOG may be debug, info, warn or error");
    return kWrongUsage;
  }
  CLI::App program("Many LLM conversations over one model and one KV cache.", "kvasir");
  program.set_version_flag("--version", "kvasir 0.1.0");
  Action action;
  add_bench(program, action);
  add_chat(program, action);
  add_demo(program, action);
  add_embed(program, action);
  add_inspect(program, action);
  add_logits(program, action);
  add_perplexity(program, action);
  add_quantize(program, action);
  add_run(program, action);
  add_synth(program, action);
  add_tokenize(program, action);
  program.require_subcommand(1);
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb.empty()) return refuse_verb("a verb is missing");
  if (verb == "help") return help(program, argc > 2 ? argv[2] : "");
  if (verb[0] != '-' && find_verb(program, verb) == nullptr) {
    return refuse_verb("there is no verb '" + verb + "'");
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return end_with(program, error);
  }
  return finish(action());
}

}  // namespace
}  // namespace kvasir::cli

int main(int argc, char** argv) {
  kvasir::cli::hold_streams();
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
