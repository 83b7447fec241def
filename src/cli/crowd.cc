#include "cli/crowd.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/try.h"
#include "cli/api_session.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "sample/sampler.h"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kSeed = 7;

struct Request {
  std::vector<Token> prompt;
  std::vector<Token> answer;
  bool complete = false;
};

struct CrowdFigures {
  double seconds = 0;
  std::uint64_t tokens = 0;      // generated
  std::uint64_t waits = 0;       // steps in which somebody waited for room
  std::uint64_t refusals = 0;    // of them, though there was room
  std::uint64_t incomplete = 0;  // requests
  std::uint64_t different = 0;   // from their runs alone
  std::uint64_t reused = 0;      // tokens of prompts that the cache already held
};

std::vector<Request> make_requests(const CrowdOptions& options, std::uint32_t vocabulary) {
  const auto draw = [&](std::uint64_t counter) {
    return static_cast<Token>(sample::keyed_uniform(kSeed, counter) * vocabulary);
  };
  std::vector<Request> requests(options.requests);
  for (std::uint64_t index = 0; index < requests.size(); ++index) {
    std::vector<Token>& prompt = requests[index].prompt;
    for (std::uint64_t i = 0; i < options.shared; ++i) prompt.push_back(draw(i));
    for (std::uint64_t i = 0; i < options.own; ++i) prompt.push_back(draw(((index + 1) << 32) + i));
  }
  return requests;
}

// Takes requests in order, `parallel` at a time, one step after another.
class Crowd {
 public:
  Crowd(Executor& executor, const CrowdOptions& options, std::vector<Request>& requests)
      : executor_(executor), options_(options), requests_(requests), progress_(requests.size()) {}

  Result<CrowdFigures> run() {
    const std::int64_t start = base::system_clock().now_ns();
    while (done_ < requests_.size()) {
      if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
      while (running_.size() < options_.parallel && next_ < requests_.size()) KVASIR_TRY(begin());
      KVASIR_ASSIGN(const StepReport report, executor_.step());
      count(report);
      KVASIR_TRY(read());
      if (report.outcome == Outcome::kStalled) break;
    }
    figures_.seconds = static_cast<double>(base::system_clock().now_ns() - start) * 1e-9;
    figures_.reused = executor_.metrics().reused;
    return figures_;
  }

 private:
  struct Running {
    std::size_t request;
    Conversation conversation;
    Generation generation;
  };

  Status begin() {
    const std::size_t index = next_++;
    KVASIR_ASSIGN(Conversation conversation, executor_.conversation());
    KVASIR_TRY(conversation.prompt(requests_[index].prompt));
    KVASIR_ASSIGN(Generation generation,
                  conversation.generate({.max_tokens = options_.generate,
                                         .sampler = Sampler::greedy(),
                                         .ignore_end = true,
                                         .outbox = static_cast<std::uint32_t>(options_.generate)}));
    running_.push_back({index, std::move(conversation), std::move(generation)});
    return {};
  }

  void count(const StepReport& report) {
    bool waits = false;
    for (const ConversationReport& about : report.conversations) {
      if (about.outcome != Outcome::kNoSpace || !about.error) continue;
      waits = true;
      if (about.error->numbers().wanted <= about.error->numbers().available) ++figures_.refusals;
    }
    figures_.waits += waits ? 1 : 0;
  }

  Status read() {
    for (Running& running : running_) {
      Request& request = requests_[running.request];
      while (true) {
        KVASIR_ASSIGN(const std::optional<GeneratedPiece> piece, running.generation.poll());
        if (!piece) break;
        request.answer.insert(request.answer.end(), piece->tokens.begin(), piece->tokens.end());
        figures_.tokens += piece->tokens.size();
      }
      request.complete = running.generation.finish() == Finish::kLength;
      if (request.complete) progress_.at(++done_, "requests");
    }
    std::erase_if(running_, [&](const Running& running) { return requests_[running.request].complete; });
    return {};
  }

  Executor& executor_;
  const CrowdOptions& options_;
  std::vector<Request>& requests_;
  Progress progress_;
  std::vector<Running> running_;
  std::size_t next_ = 0;
  std::size_t done_ = 0;
  CrowdFigures figures_;
};

// Each request in an executor with nobody else and nothing shared.
Result<std::uint64_t> count_different(const Model& model, const CrowdOptions& options,
                                      const std::vector<Request>& requests) {
  ModelFlags flags = options.model;
  flags.pool = options.shared + options.own + options.generate + options.model.page_cells;
  std::uint64_t different = 0;
  Progress progress(requests.size());
  CrowdOptions alone = options;
  alone.parallel = 1;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    std::vector<Request> one(1);
    one[0].prompt = requests[index].prompt;
    KVASIR_ASSIGN(Executor executor, make_executor(model, flags, *flags.pool));
    KVASIR_TRY(Crowd(executor, alone, one).run());
    if (one[0].answer != requests[index].answer) ++different;
    progress.at(index + 1, "alone");
  }
  return different;
}

std::string text_of(const CrowdFigures& figures, const CrowdOptions& options, const CacheInfo& cache) {
  const double per_second = figures.seconds > 0 ? static_cast<double>(figures.tokens) / figures.seconds : 0;
  if (!options.json) {
    std::string text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{} requests, {} at a time, pool {}: {:.1f} tokens/s, {} generated\n",
                   options.requests, options.parallel, cache.pool, per_second, figures.tokens);
    fmt::format_to(out, "{} steps with somebody waiting for room, {} refused while there was room\n",
                   figures.waits, figures.refusals);
    fmt::format_to(out, "{} incomplete, {} different from their runs alone, {} tokens reused\n",
                   figures.incomplete, figures.different, figures.reused);
    return text;
  }
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("requests", options.requests).member("parallel", options.parallel);
  json.member("pool", cache.pool).member("per_second", per_second).member("tokens", figures.tokens);
  json.member("waits", figures.waits).member("refusals", figures.refusals);
  json.member("incomplete", figures.incomplete).member("different", figures.different);
  json.member("reused", figures.reused).end_object();
  return line + "\n";
}

}  // namespace

Status run_crowd(const CrowdOptions& options) {
  KVASIR_ASSIGN(const Model model, load_model(options.model));
  const std::uint64_t each = options.shared + options.own + options.generate + options.model.page_cells;
  std::vector<Request> requests = make_requests(options, model.vocabulary());
  CrowdFigures figures;
  CacheInfo cache;
  {
    KVASIR_ASSIGN(Executor executor, make_executor(model, options.model, each * options.parallel));
    KVASIR_ASSIGN(figures, Crowd(executor, options, requests).run());
    cache = executor.cache();
  }
  figures.incomplete = static_cast<std::uint64_t>(std::ranges::count(requests, false, &Request::complete));
  KVASIR_ASSIGN(figures.different, count_different(model, options, requests));
  KVASIR_TRY(print(text_of(figures, options, cache)));
  if (figures.incomplete == 0 && figures.different == 0 && figures.refusals == 0) return {};
  return fail(Outcome::kInternal,
              fmt::format("{} of {} requests did not complete, {} differed from their runs alone, {} were "
                          "refused while there was room",
                          figures.incomplete, options.requests, figures.different, figures.refusals));
}

}  // namespace kvasir::cli
