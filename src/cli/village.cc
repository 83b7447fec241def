#include "cli/village.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/clock.h"
#include "base/try.h"
#include "cli/interrupt.h"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kMemoryTier = 3 << 20;  // bytes; the rest goes to the disk
constexpr std::uint64_t kDiskTier = 256 << 20;  // bytes
constexpr std::size_t kStepsShown = 40;
constexpr std::int64_t kSecondNs = 1'000'000'000;

bool word_at(std::string_view text, std::size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

// As whole words; a plural counts.
bool contains(std::string_view text, std::string_view fact) {
  for (std::size_t at = text.find(fact); at != std::string_view::npos; at = text.find(fact, at + 1)) {
    const std::size_t end = at + fact.size();
    const bool begins = at == 0 || !word_at(text, at) || !word_at(text, at - 1);
    const bool ends = !word_at(text, end) || (text[end] == 's' && !word_at(text, end + 1));
    if (begins && ends) return true;
  }
  return false;
}

Text special(std::string_view text) {
  return {text, {.parse_special = true}};
}

}  // namespace

Status prompt_question(Conversation& conversation, std::string_view question, std::string_view before) {
  const std::array<PromptPart, 4> parts = {special(before), special("<|end|><|visitor|>"),
                                           Text{question, {.add_begin = AddBegin::kNo}},
                                           special("<|end|><|reply|>")};
  const auto wanted = std::span(parts).subspan(before.empty() ? 1 : 0);
  const auto queued = conversation.prompt(wanted);
  if (!queued) return fail(queued.error());
  return {};
}

Result<Generation> start_answer(Conversation& conversation) {
  return conversation.generate({.max_tokens = kLongestAnswer, .sampler = Sampler::greedy()});
}

std::string opening(const Person& person) {
  return "<|persona|>" + std::string(person.block);
}

bool is_right(const Line& line, std::string_view answer) {
  std::string_view facts = line.facts;
  while (true) {
    const std::size_t bar = facts.find('|');
    if (!contains(answer, facts.substr(0, bar))) return false;
    if (bar == std::string_view::npos) return true;
    facts.remove_prefix(bar + 1);
  }
}

const Line& line_about(const Person& person, std::string_view kind) {
  const auto* const at = std::ranges::find(person.talk, kind, &Line::kind);
  return at == person.talk.end() ? person.talk.front() : *at;
}

Result<std::uint64_t> logits_digest(const Conversation& conversation) {
  KVASIR_ASSIGN(const auto row, conversation.logits());
  return XXH3_64bits(row->data(), row->size() * sizeof(float));
}

Result<Village> Village::create(const Model& model, ExecutorOptions options, const std::string& disk) {
  options.memory_tier_bytes = kMemoryTier;
  options.disk_tier_bytes = kDiskTier;
  options.spill_directory = disk;
  KVASIR_ASSIGN(Executor executor, Executor::create(model, options));
  Village village(std::move(executor));
  for (const Person& person : village_people()) {
    KVASIR_ASSIGN(Conversation conversation, village.executor_.conversation());
    const auto told = conversation.prompt(opening(person), {.parse_special = true});
    if (!told) return fail(told.error());
    village.villagers_.push_back({.person = &person,
                                  .conversation = std::move(conversation),
                                  .told = *told,
                                  .answer = std::nullopt,
                                  .line = {},
                                  .said = {}});
  }
  return village;
}

Status Village::ask(std::size_t who, const Line& line) {
  Villager& villager = villagers_[who];
  KVASIR_TRY(prompt_question(villager.conversation, line.question));
  KVASIR_ASSIGN(villager.answer, start_answer(villager.conversation));
  villager.line = line;
  villager.said.clear();
  return {};
}

Status Village::ask_next(std::size_t who) {
  Villager& villager = villagers_[who];
  if (villager.turn == villager.person->talk.size()) {
    KVASIR_TRY(villager.conversation.rewind(villager.told));
    villager.turn = 0;
  }
  return ask(who, villager.person->talk[villager.turn++]);
}

bool Village::idle(std::size_t who) const {
  const Villager& villager = villagers_[who];
  return !villager.answer && villager.conversation.info().queued == 0;
}

std::size_t Village::speaking() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      villagers_, [](const Villager& villager) { return !villager.said.empty() && villager.answer; }));
}

Result<std::vector<Heard>> Village::frame() {
  Budget budget;
  budget.time = kFrameBudget;
  budget.between_jobs = [](const JobView&) { return interrupted() ? Verdict::kCancel : Verdict::kGoOn; };
  KVASIR_ASSIGN(const StepReport report, executor_.step(budget));
  if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
  if (report.outcome == Outcome::kStalled) return fail(Outcome::kNoSpace, report.message);
  const std::int64_t now = base::system_clock().now_ns();
  note(report, now);
  std::vector<Heard> heard;
  for (std::size_t who = 0; who < villagers_.size(); ++who) {
    Villager& villager = villagers_[who];
    if (!villager.answer) continue;
    while (true) {
      KVASIR_ASSIGN(const auto piece, villager.answer->poll());
      if (!piece) break;
      villager.said += piece->text;
    }
    if (!villager.answer->finish()) continue;
    villager.answer.reset();
    villager.last_ns = now;
    heard.push_back({who, villager.line, villager.said, is_right(villager.line, villager.said)});
  }
  return heard;
}

Result<StepReport> Village::cancelled_step() {
  Budget budget;
  budget.between_jobs = [](const JobView& view) {
    return view.layer + 1 >= view.layers ? Verdict::kCancel : Verdict::kGoOn;
  };
  return executor_.step(budget);
}

void Village::note(const StepReport& report, std::int64_t now_ns) {
  const Metrics metrics = executor_.metrics();
  counted_.push_back({now_ns, metrics.prompted + metrics.generated});
  std::erase_if(counted_, [&](const Counted& one) { return one.at_ns < now_ns - kSecondNs; });
  const double seconds = static_cast<double>(now_ns - counted_.front().at_ns) * 1e-9;
  if (seconds > 0)
    pulse_.tokens_per_second =
        static_cast<double>(counted_.back().tokens - counted_.front().tokens) / seconds;
  if (report.outcome == Outcome::kIdle) return;
  ++pulse_.frames;
  pulse_.busy_ns += report.elapsed_ns;
  pulse_.step_ms = static_cast<double>(report.elapsed_ns) * 1e-6;
  pulse_.longest_ms = std::max(pulse_.longest_ms, pulse_.step_ms);
  if (report.elapsed_ns <= std::chrono::nanoseconds(kFrameBudget).count() + 2'000'000) ++pulse_.in_time;
  pulse_.latest_ms.push_back(pulse_.step_ms);
  if (pulse_.latest_ms.size() > kStepsShown) pulse_.latest_ms.erase(pulse_.latest_ms.begin());
}

}  // namespace kvasir::cli
