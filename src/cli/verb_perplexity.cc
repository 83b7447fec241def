// kvasir perplexity: how well a model foretells a text, the usual measure.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/streams.h"
#include "cli/verbs.h"
#include "text/tokenizer.h"

namespace kvasir::cli {
namespace {

using engine::ConversationId;
using engine::Engine;

constexpr std::uint64_t kDefaultWindow = 512;

struct Options {
  ModelFlags model;
  std::string file;
  std::uint64_t window = kDefaultWindow;
  bool special = false;
  bool json = false;
};

// Negative logarithms of the probabilities that were given to what came.
struct Score {
  std::uint64_t tokens = 0;
  double sum = 0;
  double squares = 0;

  void add(double value) {
    ++tokens;
    sum += value;
    squares += value * value;
  }
  [[nodiscard]] double mean() const { return sum / static_cast<double>(tokens); }
  [[nodiscard]] double perplexity() const { return std::exp(mean()); }
  // One standard error of the perplexity, the scores taken as independent.
  [[nodiscard]] double error() const {
    if (tokens < 2) return 0;
    const double count = static_cast<double>(tokens);
    const double variance = std::max(0.0, squares / count - mean() * mean());
    return perplexity() * std::sqrt(variance / (count - 1));
  }
};

// -log of the softmax of one logit, in double precision.
// An Error where it is not finite.
Result<double> surprise(std::span<const float> logits, Token came) {
  const double most = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const double value = std::log(sum) + most - static_cast<double>(logits[static_cast<std::size_t>(came)]);
  if (std::isfinite(value)) return value;
  return fail(Outcome::kCorrupt,
              "the model's logits are not finite numbers, so there is no perplexity; `kvasir inspect` tells "
              "whether its weights are");
}

Result<std::string> read_text(const std::string& path) {
  auto bytes = read_all(path, text::kMaxTextBytes);
  if (!bytes) return fail(bytes.error());
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

// Scores the second half of one window, each token from all before it in the window, in a conversation of its
// own.
Status score_window(Engine& engine, std::span<const Token> window, Score& score) {
  KVASIR_ASSIGN(const ConversationId id, engine.open());
  const std::size_t half = window.size() / 2;
  const auto verdict = [](const engine::JobView&) {
    return interrupted() ? engine::Verdict::kCancel : engine::Verdict::kGoOn;
  };
  const auto compute = [&](std::span<const Token> tokens, engine::LogitsWanted wanted) -> Status {
    KVASIR_TRY(engine.prompt(id, tokens, wanted));
    while (true) {
      KVASIR_ASSIGN(const engine::StepReport report, engine.step({.between_jobs = verdict}));
      if (report.outcome == Outcome::kIdle) return {};
      if (report.outcome == Outcome::kCancelled) return fail(Outcome::kCancelled, "interrupted");
    }
  };
  KVASIR_TRY(compute(window.first(half), engine::LogitsWanted::kLast));
  KVASIR_ASSIGN(const std::span<const float> first, engine.last_logits(id));
  KVASIR_ASSIGN(const double of_first, surprise(first, window[half]));
  score.add(of_first);
  KVASIR_TRY(compute(window.subspan(half, window.size() - half - 1), engine::LogitsWanted::kEvery));
  KVASIR_ASSIGN(const std::vector<float> rows, engine.take_logits(id));
  const std::size_t vocabulary = engine.model().sizes().vocabulary;
  for (std::size_t i = half + 1; i < window.size(); ++i) {
    const auto row = std::span(rows).subspan((i - half - 1) * vocabulary, vocabulary);
    KVASIR_ASSIGN(const double value, surprise(row, window[i]));
    score.add(value);
  }
  return engine.close(id);
}

Status print_result(const Score& score, std::uint64_t windows, const Options& options) {
  if (!options.json) {
    return print(fmt::format("perplexity {:.4f} +- {:.4f} over {} tokens in {} windows of {}\n",
                             score.perplexity(), score.error(), score.tokens, windows, options.window));
  }
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("perplexity", score.perplexity()).member("error", score.error());
  json.member("tokens", score.tokens)
      .member("windows", windows)
      .member("window", options.window)
      .end_object();
  return print(line + "\n");
}

Status perplexity(const Options& options) {
  KVASIR_ASSIGN(const std::string text, read_text(options.file));
  KVASIR_ASSIGN(Session session, load_session_with_text(options.model));
  KVASIR_TRY(check_completes(*session.model));
  session.go_back = false;
  if (options.window > session.options.context) {
    return fail(Outcome::kInvalidArgument,
                fmt::format("a window of {} tokens is longer than the context of {}; give --window or --ctx",
                            options.window, session.options.context),
                {.wanted = options.window, .limit = session.options.context, .setting = "--ctx"});
  }
  const text::Tokenizer& tokenizer = *session.tokenizer;
  KVASIR_ASSIGN(const std::vector<Token> tokens,
                tokenizer.tokenize(text, {.parse_special = options.special}));
  const std::optional<Token> begin = tokenizer.adds_begin() ? tokenizer.begin_token() : std::nullopt;
  const std::size_t taken = options.window - (begin ? 1 : 0);  // tokens of the text in a window
  const std::size_t windows = tokens.size() / taken;
  if (windows == 0) {
    return fail(
        Outcome::kInvalidArgument,
        fmt::format("the text has {} tokens, a window takes {}; give a longer text or a smaller --window",
                    tokens.size(), taken),
        {.wanted = taken, .available = tokens.size()});
  }
  KVASIR_ASSIGN(const auto engine,
                make_engine(session, options.model, options.window + options.model.page_cells,
                            std::min<std::uint32_t>(options.model.pass_tokens, 64)));
  Score score;
  Progress progress(windows);
  std::vector<Token> window;
  for (std::size_t index = 0; index < windows; ++index) {
    window.clear();
    if (begin) window.push_back(*begin);
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(index * taken);
    window.insert(window.end(), first, first + static_cast<std::ptrdiff_t>(taken));
    KVASIR_TRY(score_window(*engine, window, score));
    progress.at(index + 1, fmt::format("perplexity so far {:.4f}", score.perplexity()));
  }
  return print_result(score, windows, options);
}

}  // namespace

void add_perplexity(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("perplexity", "Measure how well a model foretells a text");
  verb->footer(
      "The perplexity is e to the mean of -log(probability) over the tokens that came; less is better. Each\n"
      "window is a conversation of its own. What is left at the end for no whole window is not scored.");
  add_model_flags(*verb, options->model);
  verb->add_option("-f,--file", options->file, "The text, or - for standard input")->required();
  verb->add_option("--window", options->window,
                   "Tokens in a window; the text is cut into windows, and each scores its second half")
      ->check(whole_number(4, std::uint64_t{1} << 24))
      ->capture_default_str();
  verb->add_flag("--special", options->special, "The text may name special tokens; else it is plain text");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback([options, &action] { action = [options] { return perplexity(*options); }; });
}

}  // namespace kvasir::cli
