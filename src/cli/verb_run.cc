// kvasir run: completes a prompt, streaming.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/clock.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/numbers.h"
#include "cli/sampler_flags.h"
#include "cli/session.h"
#include "cli/streams.h"
#include "cli/verbs.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace kvasir::cli {
namespace {

using engine::ConversationId;
using engine::Engine;

struct Options {
  ModelFlags model;
  std::string prompt;
  std::uint64_t count = 256;
  std::optional<std::uint64_t> seed;
  sample::SamplerSettings sampler;
  bool no_begin = false;
  bool special = false;
  bool json = false;
};

// How a completion ended.
enum class Finish { kLength, kStop, kContext, kPool, kInterrupted };

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::kLength:
      return "length";
    case Finish::kStop:
      return "stop";
    case Finish::kContext:
      return "context";
    case Finish::kPool:
      return "pool";
    case Finish::kInterrupted:
      return "interrupted";
  }
  return "";
}

struct Completion {
  std::vector<Token> prompt;
  std::vector<Token> tokens;
  std::string text;
  Finish finish = Finish::kLength;
  std::int64_t prompt_ns = 0;
  std::int64_t total_ns = 0;
};

Result<std::uint64_t> seed_of(const Options& options) {
  if (options.seed) return *options.seed;
  std::uint64_t seed = 0;
  KVASIR_TRY(base::system_entropy().fill(std::as_writable_bytes(std::span(&seed, 1))));
  // Within what every reader of JSON keeps exactly.
  return seed >> 11;
}

Result<std::vector<Token>> prompt_tokens(const text::Tokenizer& tokenizer, const Options& options) {
  KVASIR_ASSIGN(std::vector<Token> tokens,
                tokenizer.tokenize(options.prompt, {.parse_special = options.special}));
  const std::optional<Token> begin = tokenizer.begin_token();
  if (begin && tokenizer.adds_begin() && !options.no_begin) tokens.insert(tokens.begin(), *begin);
  if (tokens.empty()) {
    return fail(Outcome::kInvalidArgument,
                options.no_begin
                    ? "the prompt is empty, and --no-bos leaves nothing to begin with; give -p a text"
                    : "the prompt is empty and the vocabulary has no begin token; give -p a text");
  }
  return tokens;
}

// Prompts and steps until a token can be drawn, and so on until the end.
class Generation {
 public:
  Generation(Engine& engine, const text::Tokenizer& tokenizer, const Options& options, std::uint64_t seed)
      : engine_(engine),
        tokenizer_(tokenizer),
        options_(options),
        sampler_(options.sampler, seed),
        stream_(tokenizer) {}

  Result<Completion> run(std::vector<Token> prompt) {
    const std::int64_t start = base::system_clock().now_ns();
    completion_.prompt = std::move(prompt);
    KVASIR_ASSIGN(conversation_, engine_.open());
    KVASIR_TRY(engine_.prompt(conversation_, completion_.prompt, engine::LogitsWanted::kLast));
    KVASIR_TRY(step_until_computed());
    completion_.prompt_ns = base::system_clock().now_ns() - start;
    while (!ended_ && completion_.tokens.size() < options_.count) KVASIR_TRY(next_token());
    KVASIR_TRY(stream(stream_.finish()));
    completion_.total_ns = base::system_clock().now_ns() - start;
    return std::move(completion_);
  }

 private:
  void end(Finish finish) {
    completion_.finish = finish;
    ended_ = true;
  }

  Status step_until_computed() {
    while (!ended_) {
      const auto verdict = [](const engine::JobView&) {
        return interrupted() ? engine::Verdict::kCancel : engine::Verdict::kGoOn;
      };
      KVASIR_ASSIGN(const engine::StepReport report, engine_.step({.between_jobs = verdict}));
      if (report.outcome == Outcome::kIdle) return {};
      if (report.outcome == Outcome::kCancelled) end(Finish::kInterrupted);
    }
    return {};
  }

  Status next_token() {
    KVASIR_ASSIGN(const std::span<const float> logits, engine_.last_logits(conversation_));
    KVASIR_ASSIGN(const Token token,
                  sampler_.sample(logits, completion_.prompt.size() + completion_.tokens.size()));
    if (tokenizer_.ends_generation(token)) {
      end(Finish::kStop);
      return {};
    }
    completion_.tokens.push_back(token);
    KVASIR_ASSIGN(const std::string text, stream_.feed(token));
    KVASIR_TRY(stream(text));
    if (completion_.tokens.size() == options_.count) return {};
    if (completion_.prompt.size() + completion_.tokens.size() > engine_.options().context) {
      end(Finish::kContext);
      return {};
    }
    const auto queued = engine_.prompt(conversation_, {&token, 1}, engine::LogitsWanted::kLast);
    if (queued) return step_until_computed();
    // A pool smaller than the context ends a completion just as the context does.
    if (queued.error().code() != Outcome::kNoSpace) return fail(queued.error());
    end(Finish::kPool);
    return {};
  }

  Status stream(std::string_view text) {
    completion_.text += text;
    if (options_.json || text.empty()) return {};
    return print(text);
  }

  Engine& engine_;
  const text::Tokenizer& tokenizer_;
  const Options& options_;
  sample::Sampler sampler_;
  text::StreamingDetokenizer stream_;
  ConversationId conversation_{};
  Completion completion_;
  bool ended_ = false;
};

double per_second(std::size_t count, std::int64_t ns) {
  return ns > 0 ? static_cast<double>(count) * 1e9 / static_cast<double>(ns) : 0;
}

Status print_summary(const Completion& done, std::uint64_t seed, const Options& options) {
  const double prompt_rate = per_second(done.prompt.size(), done.prompt_ns);
  const double rate = per_second(done.tokens.size(), done.total_ns - done.prompt_ns);
  if (!options.json) {
    KVASIR_TRY(print("\n"));
    say(fmt::format("kvasir: {} prompt tokens ({:.1f}/s), {} generated ({:.1f}/s), ended by {}, seed {}",
                    done.prompt.size(), prompt_rate, done.tokens.size(), rate, finish_name(done.finish),
                    seed));
    return {};
  }
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("text", done.text).key("tokens").begin_array();
  for (const Token token : done.tokens) json.value(token);
  json.end_array().member("prompt_tokens", done.prompt.size()).member("finish", finish_name(done.finish));
  json.member("seed", seed).member("prompt_per_second", prompt_rate).member("per_second", rate).end_object();
  return print(line + "\n");
}

Status complete(const Options& options) {
  KVASIR_ASSIGN(const std::uint64_t seed, seed_of(options));
  KVASIR_ASSIGN(Session session, load_session_with_text(options.model));
  KVASIR_TRY(check_completes(*session.model));
  session.go_back = false;
  KVASIR_ASSIGN(std::vector<Token> prompt, prompt_tokens(*session.tokenizer, options));
  const auto wanted = base::checked_add<std::uint64_t>(prompt.size(), options.count);
  const std::uint64_t longest = std::min(session.options.context, wanted.value_or(UINT64_MAX));
  KVASIR_ASSIGN(const auto engine, make_engine(session, options.model, longest, 1));
  Generation generation(*engine, *session.tokenizer, options, seed);
  KVASIR_ASSIGN(const Completion completion, generation.run(std::move(prompt)));
  return print_summary(completion, seed, options);
}

// Ctrl-C is an ordinary way to end, whatever it breaks off.
Status run(const Options& options) {
  Status done = complete(options);
  if (done || done.error().code() != Outcome::kCancelled || !interrupted()) return done;
  say("kvasir: interrupted");
  return {};
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("run", "Complete a prompt, streaming");
  add_model_flags(*verb, options->model);
  verb->add_option("-p,--prompt", options->prompt, "The text to complete")->required();
  verb->add_option("-n", options->count, "Most tokens to generate")
      ->check(whole_number())
      ->capture_default_str();
  verb->add_option("--seed", options->seed,
                   "Draw the same tokens again (default: a new seed, printed at the end)")
      ->check(whole_number());
  add_sampler_flags(*verb, options->sampler);
  verb->add_flag("--no-bos", options->no_begin, "Do not begin with the begin token");
  verb->add_flag("--special", options->special, "The prompt may name special tokens; else it is plain text");
  verb->add_flag("--json", options->json, "Print one JSON object at the end instead of streaming");
  verb->callback([options, &action] {
    check_sampler_flags(options->sampler);
    action = [options] { return run(*options); };
  });
}

}  // namespace kvasir::cli
