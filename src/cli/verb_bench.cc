// kvasir bench: how fast a model runs here, and what the cache's own operations cost. Figures of one run;
// compare ratios within it, not numbers across machines or hours.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/try.h"
#include "cli/crowd.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/token_file.h"
#include "cli/verbs.h"
#include "sample/sampler.h"

namespace kvasir::cli {
namespace {

using engine::ConversationId;
using engine::Engine;
using engine::LogitsWanted;
using engine::StepReport;
using engine::Verdict;

constexpr int kRepeats = 21;                // of a cheap operation; the median counts
constexpr std::uint64_t kStepTokens = 512;  // of the step whose plan, commit and rollback are measured
constexpr std::uint64_t kSeed = 1;

struct Options {
  ModelFlags model;
  std::string tokens;
  std::uint64_t prompt = 256;
  std::uint64_t generate = 32;
  std::vector<std::uint64_t> batches = {1};
  std::uint64_t depth = 0;
  bool json = false;
  std::uint64_t parallel = 0;  // not 0: the crowded cache
  std::uint64_t requests = 50;
};

struct Rate {
  std::uint64_t conversations = 0;
  double per_second = 0;
  double overhead = 0;  // planning and commit, of the steps' time
};

struct Cost {
  std::string name;
  double microseconds = 0;
  std::uint64_t bytes = 0;  // of K and V that were moved
};

struct Figures {
  std::vector<Token> ids;
  std::uint64_t digest = 0;
  double prompt_per_second = 0;
  std::vector<Rate> rates;
  std::vector<Cost> costs;
};

double seconds_since(std::int64_t start) {
  return static_cast<double>(base::system_clock().now_ns() - start) * 1e-9;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::vector<Token> random_ids(std::uint64_t count, std::uint32_t vocabulary) {
  std::vector<Token> ids(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    ids[i] = static_cast<Token>(sample::keyed_uniform(kSeed, i) * vocabulary);
  }
  return ids;
}

class Bench {
 public:
  Bench(Engine& engine, const Options& options) : engine_(engine), options_(options) {}

  Result<Figures> run(std::vector<Token> ids) {
    figures_.ids = std::move(ids);
    KVASIR_TRY(measure_prompt());
    for (const std::uint64_t batch : options_.batches) KVASIR_TRY(measure_generation(batch));
    KVASIR_TRY(measure_costs());
    return std::move(figures_);
  }

 private:
  // Steps until nothing is queued; the sum of what they cost beside computing.
  Result<std::int64_t> drain() {
    std::int64_t overhead_ns = 0;
    const auto verdict = [](const engine::JobView&) {
      return interrupted() ? Verdict::kCancel : Verdict::kGoOn;
    };
    while (true) {
      KVASIR_ASSIGN(const StepReport report, engine_.step({.between_jobs = verdict}));
      if (report.outcome == Outcome::kCancelled) return fail(Outcome::kCancelled, "interrupted");
      if (report.outcome == Outcome::kIdle) return overhead_ns;
      overhead_ns += report.plan_ns + report.commit_ns;
    }
  }

  Result<ConversationId> open_at_depth() {
    KVASIR_ASSIGN(const ConversationId id, engine_.open());
    KVASIR_TRY(engine_.fill(id, std::vector<Token>(options_.depth)));
    return id;
  }

  Status measure_prompt() {
    KVASIR_ASSIGN(const ConversationId id, engine_.open());
    const std::int64_t start = base::system_clock().now_ns();
    KVASIR_TRY(engine_.prompt(id, figures_.ids, LogitsWanted::kLast));
    KVASIR_TRY(drain());
    figures_.prompt_per_second = static_cast<double>(figures_.ids.size()) / seconds_since(start);
    KVASIR_ASSIGN(const std::span<const float> row, engine_.last_logits(id));
    figures_.digest = XXH3_64bits(row.data(), row.size_bytes());
    return engine_.close(id);
  }

  Status measure_generation(std::uint64_t batch) {
    std::vector<ConversationId> conversations;
    for (std::uint64_t i = 0; i < batch; ++i) {
      KVASIR_ASSIGN(const ConversationId id, open_at_depth());
      conversations.push_back(id);
    }
    const std::int64_t start = base::system_clock().now_ns();
    std::int64_t overhead_ns = 0;
    for (std::uint64_t token = 0; token < options_.generate; ++token) {
      for (const ConversationId id : conversations) {
        KVASIR_TRY(engine_.prompt(id, std::span(figures_.ids).subspan(token % figures_.ids.size(), 1),
                                  LogitsWanted::kLast));
      }
      KVASIR_ASSIGN(const std::int64_t of_step, drain());
      overhead_ns += of_step;
    }
    const double seconds = seconds_since(start);
    figures_.rates.push_back({batch, static_cast<double>(batch * options_.generate) / seconds,
                              static_cast<double>(overhead_ns) * 1e-9 / seconds});
    for (const ConversationId id : conversations) KVASIR_TRY(engine_.close(id));
    return {};
  }

  // Times `operation`, with `undo` after each repeat.
  template <class Operation, class Undo>
  Status measure(const char* name, const Operation& operation, const Undo& undo) {
    std::vector<double> times;
    const std::uint64_t moved = engine_.bytes_moved();
    for (int i = 0; i < kRepeats; ++i) {
      const std::int64_t start = base::system_clock().now_ns();
      KVASIR_TRY(operation());
      times.push_back(seconds_since(start) * 1e6);
      KVASIR_TRY(undo());
    }
    figures_.costs.push_back({name, median(times), (engine_.bytes_moved() - moved) / kRepeats});
    return {};
  }

  Status measure_costs() {
    if (options_.depth < 64) return {};
    KVASIR_ASSIGN(const ConversationId id, open_at_depth());
    ConversationId child{};
    const auto fork = [&]() -> Status {
      KVASIR_ASSIGN(child, engine_.fork(id));
      return {};
    };
    const auto close = [&] { return engine_.close(child); };
    const auto nothing = []() -> Status { return {}; };
    KVASIR_TRY(measure("fork", fork, close));
    const std::uint64_t back = options_.depth - 32;
    KVASIR_TRY(measure(
        "rewind", [&] { return engine_.rewind(id, back); },
        [&] { return engine_.fill(id, std::vector<Token>(32)); }));
    KVASIR_TRY(measure(
        "shift", [&] { return engine_.shift_left(id, 5, 8); },
        [&] { return engine_.fill(id, std::vector<Token>(8)); }));
    KVASIR_TRY(measure_step(id));
    return measure(
        "close", [&] { return engine_.close(id); },
        [&]() -> Status {
          KVASIR_ASSIGN(const ConversationId again, open_at_depth());
          return again == id ? nothing()
                             : fail(Outcome::kInternal, "a closed conversation's id was not used again");
        });
  }

  // Plan, commit and rollback of a step of kStepTokens tokens.
  Status measure_step(ConversationId id) {
    const std::vector<Token> ids = random_ids(kStepTokens, engine_.model().sizes().vocabulary);
    KVASIR_TRY(engine_.prompt(id, ids, LogitsWanted::kLast));
    const auto cancel = [](const engine::JobView&) { return Verdict::kCancel; };
    KVASIR_ASSIGN(const StepReport undone, engine_.step({.whole_queue = true, .between_jobs = cancel}));
    KVASIR_ASSIGN(const StepReport done, engine_.step({.whole_queue = true}));
    const auto microseconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
    figures_.costs.push_back({"plan", microseconds(done.plan_ns), 0});
    figures_.costs.push_back({"commit", microseconds(done.commit_ns), 0});
    figures_.costs.push_back({"rollback", microseconds(undone.rollback_ns), 0});
    return engine_.rewind(id, options_.depth);
  }

  Engine& engine_;
  const Options& options_;
  Figures figures_;
};

void print_text(const Figures& figures, const Options& options) {
  fmt::print("prompt of {}: {:.1f} tokens/s, digest {:016x}\n", figures.ids.size(), figures.prompt_per_second,
             figures.digest);
  for (const Rate& rate : figures.rates) {
    fmt::print("generation, {} at depth {}: {:.1f} tokens/s, {:.3f} % for planning and commit\n",
               rate.conversations, options.depth, rate.per_second, rate.overhead * 100);
  }
  for (const Cost& cost : figures.costs) {
    fmt::print("{} at depth {}: {:.1f} us, {} bytes of K and V moved\n", cost.name, options.depth,
               cost.microseconds, cost.bytes);
  }
}

void print_json(const Figures& figures, const Options& options) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("threads", options.model.threads).member("depth", options.depth);
  json.member("pp", figures.prompt_per_second).key("tg").begin_object();
  for (const Rate& rate : figures.rates) json.member(std::to_string(rate.conversations), rate.per_second);
  json.end_object().key("overhead").begin_object();
  for (const Rate& rate : figures.rates) json.member(std::to_string(rate.conversations), rate.overhead);
  json.end_object().key("cost_us").begin_object();
  for (const Cost& cost : figures.costs) json.member(cost.name, cost.microseconds);
  json.end_object().key("bytes_moved").begin_object();
  for (const Cost& cost : figures.costs) json.member(cost.name, cost.bytes);
  json.end_object().key("ids").begin_array();
  for (const Token id : figures.ids) json.value(id);
  json.end_array().member("digest", fmt::format("{:016x}", figures.digest)).end_object();
  fmt::print("{}\n", line);
}

Status bench(const Options& options) {
  if (options.parallel > 0) {
    return run_crowd({.model = options.model,
                      .parallel = options.parallel,
                      .requests = options.requests,
                      .json = options.json});
  }
  KVASIR_ASSIGN(const Session session, load_session(options.model));
  std::vector<Token> ids = random_ids(options.prompt, session.model->sizes().vocabulary);
  if (!options.tokens.empty()) {
    KVASIR_ASSIGN(ids, read_ids(options.tokens));
  }
  if (ids.empty()) return fail(Outcome::kInvalidArgument, "there is no token to prompt with");
  const std::uint64_t most = std::max<std::uint64_t>(1, *std::ranges::max_element(options.batches));
  const std::uint64_t each =
      options.depth + std::max<std::uint64_t>(options.generate, kStepTokens) + options.model.page_cells;
  KVASIR_ASSIGN(
      const auto engine,
      make_engine(session, options.model,
                  std::max<std::uint64_t>(most * each, ids.size() + options.model.page_cells),
                  static_cast<std::uint32_t>(std::min<std::uint64_t>(most, options.model.pass_tokens))));
  KVASIR_ASSIGN(const Figures figures, Bench(*engine, options).run(std::move(ids)));
  options.json ? print_json(figures, options) : print_text(figures, options);
  return {};
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      program.add_subcommand("bench", "Measure prompts, generation and the cache's own operations");
  add_model_flags(*verb, options->model);
  const auto count = CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 24);
  verb->add_option("--pp", options->prompt, "Tokens of the prompt")->check(count)->capture_default_str();
  verb->add_option("--tg", options->generate, "Tokens to generate in each conversation")
      ->check(count)
      ->capture_default_str();
  verb->add_option("--batch", options->batches, "Numbers of conversations that generate at once")
      ->delimiter(',')
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 12))
      ->capture_default_str();
  verb->add_option("--depth", options->depth,
                   "Tokens already in each conversation, filled in without computing")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 24))
      ->capture_default_str();
  verb->add_option("--tokens", options->tokens, "A file of token ids to prompt with in place of random ones");
  verb->add_option("--parallel", options->parallel,
                   "The crowded cache: so many requests at a time, with one shared beginning")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 12));
  verb->add_option("--requests", options->requests, "Requests of the crowded cache in all")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback([options, &action] { action = [options] { return bench(*options); }; });
}

}  // namespace kvasir::cli
