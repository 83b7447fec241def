// kvasir bench: how fast a model runs here, and what the cache's own operations cost. Figures of one run;
// compare ratios within it, not numbers across machines or hours.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/try.h"
#include "cli/bench_archives.h"
#include "cli/bench_cache.h"
#include "cli/ceilings.h"
#include "cli/crowd.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/numbers.h"
#include "cli/session.h"
#include "cli/streams.h"
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
  std::string directory;  // for archives as files; "": there are none
};

struct Rate {
  std::uint64_t conversations = 0;
  double per_second = 0;
  double overhead = 0;  // planning and commit, of the steps' time
  double limit = 0;     // tokens per second that the ceilings would allow
};

struct Figures {
  std::vector<Token> ids;
  std::uint64_t digest = 0;
  double prompt_per_second = 0;
  double prompt_limit = 0;
  Ceilings ceilings;
  std::vector<Rate> rates;
  CacheCosts cache;
  std::optional<ArchiveFigures> archives;
};

double seconds_since(std::int64_t start) {
  return static_cast<double>(base::system_clock().now_ns() - start) * 1e-9;
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
    KVASIR_TRY(warm_up());
    KVASIR_TRY(measure_prompt());
    for (const std::uint64_t batch : options_.batches) KVASIR_TRY(measure_generation(batch));
    if (options_.depth >= kBenchDepthMin) {
      KVASIR_ASSIGN(figures_.cache, measure_cache(engine_, options_.depth));
    }
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

  // A pass that nobody looks at: it takes what memory the system gives when it is first written. Its salt is
  // another, so that the prompt finds no beginning of its own.
  Status warm_up() {
    const std::size_t count = std::min<std::size_t>(figures_.ids.size(), options_.model.pass_tokens);
    KVASIR_ASSIGN(const ConversationId id, engine_.open({.salt = 1}));
    KVASIR_TRY(engine_.prompt(id, std::span(figures_.ids).first(count), LogitsWanted::kLast));
    KVASIR_TRY(drain());
    return engine_.close(id);
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

  Engine& engine_;
  const Options& options_;
  Figures figures_;
};

void append_cache(std::string& text, const CacheCosts& cache, std::uint64_t depth) {
  const auto out = std::back_inserter(text);
  for (const Cost& cost : cache.operations) {
    fmt::format_to(out, "{} at depth {}: {:.1f} us, {} bytes of K and V moved\n", cost.name, depth,
                   cost.microseconds, cost.bytes);
  }
  for (const StepCost& cost : cache.steps) {
    fmt::format_to(
        out,
        "a step of {} at depth {}: {:.1f} us to plan, {:.1f} us to commit, {:.3f} % of {:.1f} ms of "
        "computing\n",
        cost.conversations, depth, cost.plan_microseconds, cost.commit_microseconds, cost.overhead * 100,
        (cost.step_microseconds - cost.plan_microseconds - cost.commit_microseconds) * 1e-3);
  }
  for (const ShiftCost& cost : cache.shifts) {
    fmt::format_to(
        out, "attention at depth {}, least of {} runs: {:.0f} us, after a shift {:.0f} us ({:+.1f} %)\n",
        depth, cost.runs, cost.before_microseconds, cost.after_microseconds,
        (cost.after_microseconds / cost.before_microseconds - 1) * 100);
  }
  for (const CompactionCost& cost : cache.compactions) {
    const double memcpy_rate = cost.memcpy_bytes_per_second;
    fmt::format_to(
        out,
        "compaction of spans of {}: {} bytes, copied at {:.2f} GB/s, {:.0f} % of memcpy's {:.2f} GB/s; with "
        "planning {:.2f} GB/s\n",
        cost.span_cells, cost.bytes, cost.copy_bytes_per_second * 1e-9,
        cost.copy_bytes_per_second / memcpy_rate * 100, memcpy_rate * 1e-9, cost.bytes_per_second * 1e-9);
  }
}

// "" where no limit is known.
std::string share_text(double rate, double limit) {
  return limit > 0 ? fmt::format(", {:.1f} % of the limit", rate / limit * 100) : std::string();
}

std::string text_of(const Figures& figures, const Options& options) {
  std::string text;
  const auto out = std::back_inserter(text);
  const Ceilings& ceilings = figures.ceilings;
  fmt::format_to(
      out,
      "ceilings of {} threads in this run: {:.0f} G operations/s on bytes, {:.0f} on bf16, {:.0f} on "
      "floats; {:.1f} GB/s read, {:.1f} of huge pages\n",
      options.model.threads, ceilings.bytes * 1e-9, ceilings.bfloats * 1e-9, ceilings.floats * 1e-9,
      ceilings.read * 1e-9, ceilings.read_huge * 1e-9);
  fmt::format_to(out, "prompt of {}: {:.1f} tokens/s{}, digest {:016x}\n", figures.ids.size(),
                 figures.prompt_per_second, share_text(figures.prompt_per_second, figures.prompt_limit),
                 figures.digest);
  for (const Rate& rate : figures.rates) {
    fmt::format_to(out, "generation, {} at depth {}: {:.1f} tokens/s{}, {:.3f} % for planning and commit\n",
                   rate.conversations, options.depth, rate.per_second,
                   share_text(rate.per_second, rate.limit), rate.overhead * 100);
  }
  append_cache(text, figures.cache, options.depth);
  if (figures.archives) append_archives(*figures.archives, options.depth, text);
  return text;
}

void write_cache(JsonWriter& json, const CacheCosts& cache) {
  json.key("step").begin_object();
  for (const StepCost& cost : cache.steps) {
    json.key(std::to_string(cost.conversations)).begin_object();
    json.member("plan_us", cost.plan_microseconds).member("commit_us", cost.commit_microseconds);
    json.member("step_us", cost.step_microseconds).member("overhead", cost.overhead).end_object();
  }
  json.end_object();
  for (const ShiftCost& cost : cache.shifts) {
    json.key("attention_us").begin_object();
    json.member("before_shift", cost.before_microseconds).member("after_shift", cost.after_microseconds);
    json.member("runs", cost.runs).end_object();
  }
  json.key("compaction").begin_array();
  for (const CompactionCost& cost : cache.compactions) {
    json.begin_object().member("span_cells", cost.span_cells).member("bytes", cost.bytes);
    json.member("bytes_per_second", cost.bytes_per_second);
    json.member("copy_bytes_per_second", cost.copy_bytes_per_second);
    json.member("memcpy_bytes_per_second", cost.memcpy_bytes_per_second).end_object();
  }
  json.end_array();
}

void write_limits(JsonWriter& json, const Figures& figures) {
  const Ceilings& ceilings = figures.ceilings;
  json.key("ceilings").begin_object().member("bytes", ceilings.bytes).member("bf16", ceilings.bfloats);
  json.member("f32", ceilings.floats).member("read", ceilings.read);
  json.member("read_huge", ceilings.read_huge).end_object();
  json.key("limit").begin_object().member("pp", figures.prompt_limit).key("tg").begin_object();
  for (const Rate& rate : figures.rates) json.member(std::to_string(rate.conversations), rate.limit);
  json.end_object().end_object();
}

std::string json_of(const Figures& figures, const Options& options) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("threads", options.model.threads).member("depth", options.depth);
  json.member("pp", figures.prompt_per_second).key("tg").begin_object();
  for (const Rate& rate : figures.rates) json.member(std::to_string(rate.conversations), rate.per_second);
  json.end_object();
  write_limits(json, figures);
  json.key("overhead").begin_object();
  for (const Rate& rate : figures.rates) json.member(std::to_string(rate.conversations), rate.overhead);
  json.end_object().key("cost_us").begin_object();
  for (const Cost& cost : figures.cache.operations) json.member(cost.name, cost.microseconds);
  json.end_object().key("bytes_moved").begin_object();
  for (const Cost& cost : figures.cache.operations) json.member(cost.name, cost.bytes);
  json.end_object();
  write_cache(json, figures.cache);
  if (figures.archives) write_archives(*figures.archives, json);
  json.key("ids").begin_array();
  for (const Token id : figures.ids) json.value(id);
  json.end_array().member("digest", fmt::format("{:016x}", figures.digest)).end_object();
  return line + "\n";
}

// What comes at the depth must be as long as one conversation may get.
Status check_depth(const Options& options, std::uint64_t context) {
  const bool of_step = options.depth >= kBenchDepthMin && options.generate < kBenchStepTokens;
  const std::uint64_t more = of_step ? kBenchStepTokens : options.generate;
  if (options.depth + more <= context) return {};
  return fail(
      Outcome::kNoSpace,
      fmt::format("{} at depth {} are beyond the context of {}; a larger --ctx or a smaller --depth helps",
                  of_step ? fmt::format("the {} tokens of the step whose planning is measured", more)
                          : fmt::format("the {} tokens to generate", more),
                  options.depth, context),
      {.wanted = options.depth + more, .limit = context, .setting = "--ctx"});
}

void add_limits(const ModelWork& work, const Ceilings& ceilings, std::uint64_t depth, Figures& figures) {
  figures.ceilings = ceilings;
  figures.prompt_limit = prompt_limit(work, ceilings, figures.ids.size());
  for (Rate& rate : figures.rates) rate.limit = generation_limit(work, ceilings, rate.conversations, depth);
}

Status bench(const Options& options) {
  if (options.parallel > 0) {
    return run_crowd({.model = options.model,
                      .parallel = options.parallel,
                      .requests = options.requests,
                      .json = options.json});
  }
  // Before loading: standard input may be waited for, and what it lacks is told at once.
  std::vector<Token> ids;
  if (!options.tokens.empty()) {
    KVASIR_ASSIGN(ids, read_ids(options.tokens));
    if (ids.empty()) return fail(Outcome::kInvalidArgument, "'" + options.tokens + "' holds no token id");
  }
  KVASIR_ASSIGN(Session session, load_session(options.model));
  KVASIR_TRY(check_completes(*session.model));
  session.spill = SpillTo::kMemory;
  if (ids.empty()) ids = random_ids(options.prompt, session.model->sizes().vocabulary);
  KVASIR_TRY(check_depth(options, session.options.context));
  const std::uint64_t most = std::max<std::uint64_t>(1, *std::ranges::max_element(options.batches));
  session.conversations = most;
  const std::uint64_t each =
      options.depth + std::max<std::uint64_t>(options.generate, kBenchStepTokens) + options.model.page_cells;
  KVASIR_ASSIGN(auto engine,
                make_engine(session, options.model,
                            std::max<std::uint64_t>(most * each, ids.size() + options.model.page_cells),
                            static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                std::max(most, kBenchStepConversations), options.model.pass_tokens))));
  // Before and after: the machine may be busier at one time than at another.
  const ModelWork work = work_of(*session.file, *session.model, session.options.types);
  const double weights = work.layers.weight_bytes + work.output.weight_bytes;
  KVASIR_ASSIGN(Ceilings ceilings, measure_ceilings(*session.pool, weights));
  KVASIR_ASSIGN(Figures figures, Bench(*engine, options).run(std::move(ids)));
  engine.reset();  // its memory serves what follows
  if (options.depth >= kBenchDepthMin) {
    KVASIR_ASSIGN(figures.archives,
                  measure_archives(session, options.model, options.depth, options.directory));
  }
  KVASIR_ASSIGN(const Ceilings after, measure_ceilings(*session.pool, weights));
  ceilings.take(after);
  add_limits(work, ceilings, options.depth, figures);
  return print(options.json ? json_of(figures, options) : text_of(figures, options));
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      program.add_subcommand("bench", "Measure prompts, generation and the cache's own operations");
  add_model_flags(*verb, options->model);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 24;
  CLI::Option* prompt =
      verb->add_option("--pp", options->prompt, "Tokens of the prompt; a file of --tokens has its own number")
          ->check(whole_number(1, kMost))
          ->capture_default_str();
  CLI::Option* generate =
      verb->add_option("--tg", options->generate, "Tokens to generate in each conversation")
          ->check(whole_number(1, kMost))
          ->capture_default_str();
  CLI::Option* batch =
      verb->add_option("--batch", options->batches, "Numbers of conversations that generate at once")
          ->delimiter(',')
          ->check(whole_number(1, std::uint64_t{1} << 12))
          ->capture_default_str();
  CLI::Option* depth = verb->add_option("--depth", options->depth,
                                        "Tokens already in each conversation, filled in without computing")
                           ->check(whole_number(0, kMost))
                           ->capture_default_str();
  CLI::Option* tokens = verb->add_option("--tokens", options->tokens,
                                         "A file of token ids to prompt with in place of random ones, or - "
                                         "for standard input");
  CLI::Option* parallel =
      verb->add_option("--parallel", options->parallel,
                       "The crowded cache: so many requests at a time, with one shared beginning")
          ->check(whole_number(1, std::uint64_t{1} << 12));
  for (CLI::Option* other : {prompt, generate, batch, depth, tokens}) parallel->excludes(other);
  verb->add_option("--requests", options->requests, "Requests of the crowded cache in all")
      ->check(whole_number(1, std::uint64_t{1} << 20))
      ->needs(parallel)
      ->capture_default_str();
  verb->add_option("--files", options->directory,
                   "A directory whose disk archives are written to, for as long as they are measured")
      ->check(CLI::ExistingDirectory)
      ->excludes(parallel);
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback([options, &action] { action = [options] { return bench(*options); }; });
}

}  // namespace kvasir::cli
