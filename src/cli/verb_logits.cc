// kvasir logits: the logits of every token of a sequence of ids, in any pieces and beside any number of
// others.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/token_file.h"
#include "cli/verbs.h"
#include "sample/sampler.h"

namespace kvasir::cli {
namespace {

using engine::ConversationId;
using engine::Engine;

struct Options {
  ModelFlags model;
  std::string tokens;
  std::string output;
  std::vector<std::uint64_t> split;
  std::uint32_t beside = 0;
  bool json = false;
};

// What was done, for the line on standard error.
struct Done {
  std::uint64_t steps = 0;
  std::uint64_t passes = 0;
  std::uint64_t beside_in_same_pass = 0;  // most other conversations that shared a pass with ours
};

// The conversation whose logits are wanted, and those beside it.
class Run {
 public:
  Run(Engine& engine, const Options& options) : engine_(engine), options_(options) {}

  Status open() {
    KVASIR_ASSIGN(main_, engine_.open());
    for (std::uint32_t i = 0; i < options_.beside; ++i) {
      KVASIR_ASSIGN(const ConversationId other, engine_.open());
      others_.push_back(other);
    }
    return {};
  }

  // Takes one piece of our ids, beside as many random ids of each other conversation.
  Status piece(std::span<const Token> ids) {
    KVASIR_TRY(engine_.prompt(main_, ids, engine::LogitsWanted::kEvery));
    for (const ConversationId other : others_) {
      std::vector<Token> random(ids.size());
      for (Token& id : random) id = next_random();
      KVASIR_TRY(engine_.prompt(other, random, engine::LogitsWanted::kLast));
    }
    while (true) {
      KVASIR_ASSIGN(const std::uint64_t queued, engine_.queued(main_));
      if (queued == 0) return {};
      KVASIR_TRY(step());
    }
  }

  // The rows computed since the last call, as bytes of floats.
  Result<std::vector<float>> take_rows() { return engine_.take_logits(main_); }
  Result<std::span<const float>> last_row() { return engine_.last_logits(main_); }
  [[nodiscard]] const Done& done() const { return done_; }

 private:
  Status step() {
    const auto verdict = [](const engine::JobView&) {
      return interrupted() ? engine::Verdict::kCancel : engine::Verdict::kGoOn;
    };
    KVASIR_ASSIGN(const engine::StepReport report, engine_.step({.between_jobs = verdict}));
    if (report.outcome != Outcome::kDone)
      return fail(Outcome::kCancelled, "interrupted; no logits were written");
    ++done_.steps;
    done_.passes += report.passes;
    for (const std::vector<ConversationId>& pass : report.shared_passes) {
      if (std::ranges::find(pass, main_) == pass.end()) continue;
      done_.beside_in_same_pass = std::max<std::uint64_t>(done_.beside_in_same_pass, pass.size() - 1);
    }
    return {};
  }

  Token next_random() {
    const double draw = sample::keyed_uniform(options_.beside, drawn_++);
    return static_cast<Token>(draw * static_cast<double>(engine_.model().sizes().vocabulary));
  }

  Engine& engine_;
  const Options& options_;
  ConversationId main_{};
  std::vector<ConversationId> others_;
  std::uint64_t drawn_ = 0;
  Done done_;
};

// One line that says what was done.
void report(const Done& done, const Options& options) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  json.member("steps", done.steps).member("passes", done.passes);
  json.member("page", options.model.page_cells).member("threads", options.model.threads);
  json.member("beside_in_same_pass", done.beside_in_same_pass);
  json.end_object();
  fmt::print(stderr, "{}\n", line);
}

// The digest of the last row, as `bench` prints it.
Status print_digest(Run& run, std::span<const Token> ids) {
  KVASIR_ASSIGN(const std::span<const float> row, run.last_row());
  std::string line;
  JsonWriter json(line);
  json.begin_object().key("ids").begin_array();
  for (const Token id : ids) json.value(id);
  json.end_array()
      .member("digest", fmt::format("{:016x}", XXH3_64bits(row.data(), row.size_bytes())))
      .end_object();
  fmt::print("{}\n", line);
  return {};
}

Status logits(const Options& options) {
  KVASIR_ASSIGN(const std::vector<Token> ids, read_ids(options.tokens));
  if (ids.empty()) return fail(Outcome::kInvalidArgument, "'" + options.tokens + "' holds no token id");
  KVASIR_ASSIGN(const Session session, load_session(options.model));
  const std::uint64_t conversations = std::uint64_t{options.beside} + 1;
  const auto logit_rows = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options.model.pass_tokens, ids.size() + options.beside));
  KVASIR_ASSIGN(const std::unique_ptr<Engine> engine,
                make_engine(session, options.model, conversations * ids.size(), conversations, logit_rows));
  KVASIR_ASSIGN(const auto output, open_output(base::system_files(), options.output));
  Run run(*engine, options);
  KVASIR_TRY(run.open());
  std::size_t at = 0;
  for (std::size_t index = 0; at < ids.size(); ++index) {
    std::uint64_t size = ids.size();
    if (!options.split.empty()) size = options.split[std::min(index, options.split.size() - 1)];
    const std::size_t count = std::min<std::uint64_t>(size, ids.size() - at);
    KVASIR_TRY(run.piece(std::span(ids).subspan(at, count)));
    KVASIR_ASSIGN(const std::vector<float> rows, run.take_rows());
    KVASIR_TRY(output->write(std::as_bytes(std::span(rows))));
    at += count;
  }
  KVASIR_TRY(output->commit());
  report(run.done(), options);
  return options.json ? print_digest(run, ids) : Status();
}

}  // namespace

void add_logits(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("logits", "Write the logits of every token of a sequence of ids");
  add_model_flags(*verb, options->model);
  verb->add_option("--tokens", options->tokens, "A file of token ids, or - for standard input")->required();
  verb->add_option(
          "--out", options->output,
          "Raw little-endian float32, a row of vocabulary size for each token; - for standard output")
      ->required();
  verb->add_option("--split", options->split, "Take the ids in pieces of these sizes; the last repeats")
      ->delimiter(',')
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{UINT32_MAX}));
  verb->add_option("--beside", options->beside, "Other random conversations that run in the same passes")
      ->check(CLI::Range(0U, 1U << 16));
  verb->add_flag("--json", options->json, "Print the ids and a digest of the last row's logits");
  verb->callback([options, &action] { action = [options] { return logits(*options); }; });
}

}  // namespace kvasir::cli
