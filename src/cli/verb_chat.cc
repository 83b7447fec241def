// kvasir chat: a conversation by lines, each turn plain text.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/api_session.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/remedy.h"
#include "cli/sampler_flags.h"
#include "cli/streams.h"
#include "cli/verbs.h"
#include "kvasir/executor.h"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kPoolTokens = 8192;  // of a pool that nobody gives a size

constexpr std::string_view kHelp =
    "a line is a turn; the answer is a line too\n"
    "  /save FILE   put the conversation away, with all that was computed\n"
    "  /load FILE   take one back in the place of this one\n"
    "  /fork        go on in a copy; /back returns to where it was made\n"
    "  /rewind N    keep the first N tokens\n"
    "  /help        this list\n"
    "/quit, the end of the input, or Ctrl-C, ends it\n";

struct Options {
  ModelFlags model;
  std::string system;
  std::uint64_t count = 256;
  std::optional<std::uint64_t> seed;
  sample::SamplerSettings sampler;
};

class Chat {
 public:
  Chat(Executor& executor, Conversation first, const Options& options)
      : executor_(executor), options_(options) {
    talks_.push_back(std::move(first));
  }

  // Until the input ends.
  Status run() {
    if (!options_.system.empty()) KVASIR_TRY(read(options_.system + "\n"));
    Lines lines;
    while (true) {
      show("> ");
      KVASIR_ASSIGN(const std::optional<std::string> line, lines.next());
      if (!line || *line == "/quit") return {};
      if (line->empty()) continue;
      const Status done = line->front() == '/' ? command(*line) : turn(*line);
      if (done) continue;
      if (interrupted() || output_failed_) return done;
      say("kvasir: " + sentence_of(done.error()));
    }
  }

 private:
  Conversation& talk() { return talks_.back(); }

  // Computes a text as part of the conversation, or nothing of it.
  Status read(const std::string& text) {
    KVASIR_TRY(talk().prompt(text));
    Budget budget;
    budget.between_jobs = [](const JobView&) { return interrupted() ? Verdict::kCancel : Verdict::kGoOn; };
    KVASIR_ASSIGN(const StepReport report, executor_.run_until_idle(budget));
    if (report.outcome == Outcome::kIdle) return {};
    KVASIR_TRY(talk().cancel());
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    return fail(Outcome::kNoSpace, report.message);
  }

  Status turn(const std::string& line) {
    KVASIR_TRY(read(line + "\n"));
    const sample::SamplerSettings& settings = options_.sampler;
    KVASIR_ASSIGN(Generation answer, talk().generate({.max_tokens = options_.count,
                                                      .sampler = {.temperature = settings.temperature,
                                                                  .top_k = settings.top_k,
                                                                  .top_p = settings.top_p,
                                                                  .min_p = settings.min_p},
                                                      .stop = {"\n"}}));
    while (!interrupted()) {
      KVASIR_ASSIGN(const std::optional<GeneratedPiece> piece, answer.next());
      if (!piece) break;
      KVASIR_TRY(write(piece->text));
    }
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    return write("\n");
  }

  // Nobody hears what is said from then on; an archive or a tier that fails is another matter.
  Status write(std::string_view text) {
    Status written = print(text);
    output_failed_ = !written;
    return written;
  }

  Status command(std::string_view line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, space);
    const std::string argument(line.substr(std::min(line.find_first_not_of(' ', space), line.size())));
    const bool takes = name == "/save" || name == "/load" || name == "/rewind";
    if (takes == argument.empty())
      return fail(Outcome::kInvalidArgument, fmt::format("{}: /help lists what there is", line));
    if (name == "/help") {
      show(kHelp);
      return {};
    }
    if (name == "/save") {
      KVASIR_ASSIGN(const ArchiveReport report, talk().save(argument));
      say(fmt::format("kvasir: {} tokens saved in {} bytes", report.tokens, report.bytes));
      return {};
    }
    if (name == "/load") {
      KVASIR_TRY(talk().load(argument));
    } else if (name == "/fork") {
      KVASIR_ASSIGN(Conversation fork, talk().fork());
      talks_.push_back(std::move(fork));
    } else if (name == "/back") {
      if (talks_.size() == 1) return fail(Outcome::kWrongState, "this is no fork");
      talks_.pop_back();
    } else if (name == "/rewind") {
      KVASIR_TRY(rewind(argument));
    } else {
      return fail(Outcome::kInvalidArgument, fmt::format("there is no {}; /help lists what there is", name));
    }
    say(fmt::format("kvasir: {} tokens", talk().length()));
    return {};
  }

  Status rewind(const std::string& argument) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), length);
    if (error != std::errc() || end != argument.data() + argument.size())
      return fail(Outcome::kInvalidArgument, "/rewind takes a number of tokens, not '" + argument + "'");
    KVASIR_TRY(talk().cancel());  // the last token of an answer may still be queued
    return talk().rewind(length);
  }

  Executor& executor_;
  const Options& options_;
  std::vector<Conversation> talks_;  // forks behind what they were made of
  bool output_failed_ = false;
};

Status chat(const Options& options) {
  KVASIR_ASSIGN(const Model model, load_model(options.model));
  const std::uint64_t context = options.model.context.value_or(model.trained_context());
  KVASIR_ASSIGN(Executor executor, make_executor(model, options.model,
                                                 std::max<std::uint64_t>(1, std::min(context, kPoolTokens))));
  auto opened = executor.conversation({.seed = options.seed});
  if (!opened && opened.error().code() == Outcome::kUnsupported)
    return fail(Outcome::kUnsupported,
                "this model holds no conversations; `kvasir embed` makes vectors with it");
  KVASIR_ASSIGN(Conversation first, std::move(opened));
  if (model.start_token()) {
    return fail(Outcome::kUnsupported,
                "this model reads a source before it writes; `kvasir logits --encode` does that");
  }
  say("kvasir: /help lists what there is beside talking");
  Chat talk(executor, std::move(first), options);
  return talk.run();
}

// Ctrl-C is an ordinary way to end, whatever it breaks off.
Status run(const Options& options) {
  Status done = chat(options);
  if (done || done.error().code() != Outcome::kCancelled || !interrupted()) return done;
  say("kvasir: interrupted");
  return {};
}

}  // namespace

void add_chat(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("chat", "Talk by lines, with archives, forks and rewinds");
  add_model_flags(*verb, options->model);
  verb->add_option("--system", options->system, "A text before the first turn");
  verb->add_option("-n", options->count, "Most tokens of an answer")
      ->check(whole_number(1))
      ->capture_default_str();
  verb->add_option("--seed", options->seed, "Draw the same tokens again (default: a new seed)")
      ->check(whole_number());
  add_sampler_flags(*verb, options->sampler);
  verb->callback([options, &action] {
    check_sampler_flags(options->sampler);
    action = [options] { return run(*options); };
  });
}

}  // namespace kvasir::cli
