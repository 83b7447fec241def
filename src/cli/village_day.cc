#include "cli/village_day.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/village_mix_up.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kVisitors = 8;                   // characters that are asked at a time
constexpr std::int64_t kBetweenVisitsNs = 50'000'000;  // at least
constexpr std::int64_t kRestNs = 700'000'000;          // of one character between two questions
constexpr double kActSeconds = 0.11;                   // that an act stays, of all of it
constexpr double kMarketEnds = 0.76;                   // of all of it, at the latest
constexpr double kRollCallTokens = 56;                 // of one character
constexpr std::uint64_t kMixedUp = 64;                 // cells

std::int64_t now_ns() {
  return base::system_clock().now_ns();
}

}  // namespace

Status VillageDay::run() {
  KVASIR_TRY(wake());
  market_ = true;
  KVASIR_TRY(view_.act("The market is open: eight visitors at a time ask whoever they meet"));
  KVASIR_TRY(view_.line("Who is not asked is put away, to memory and to disk, and comes back when asked."));
  KVASIR_TRY(frames_for(0.12 * options_.seconds));
  KVASIR_TRY(act_cancelled_step());
  KVASIR_TRY(act_fork());
  KVASIR_TRY(act_other_process());
  KVASIR_TRY(view_.act("The market goes on"));
  KVASIR_TRY(view_.line("Each talk is one conversation of the same model, in the same cache."));
  const auto closing = [this]() -> Result<bool> { return closing_time(); };
  const auto closed = frames(closing, options_.seconds);
  if (!closed) return fail(closed.error());
  KVASIR_TRY(roll_call());
  KVASIR_TRY(check_alone());
  return summarize();
}

Result<bool> VillageDay::frames(const Done& done, double seconds) {
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (true) {
    const std::int64_t begun = now_ns();
    KVASIR_ASSIGN(const bool is_done, done());
    if (is_done || begun >= end) return is_done;
    KVASIR_TRY(visit());
    const std::uint64_t stepped = village_.pulse().frames;
    KVASIR_ASSIGN(const std::vector<Heard> heard, village_.frame());
    for (const Heard& one : heard) {
      ++answers_;
      if (one.right) ++right_;
      if (!one.right) {
        wrong(fmt::format("{} answered '{}' with '{}'", village_.all()[one.who].person->name,
                          one.line.question, one.answer));
      }
      KVASIR_TRY(view_.heard(village_, one));
    }
    KVASIR_TRY(view_.draw(village_));
    // The rest of the frame is the game's; the roll call is in a hurry.
    const std::int64_t left = begun + std::chrono::nanoseconds(kFrame).count() - now_ns();
    if (left > 0 && (market_ || stepped == village_.pulse().frames))
      std::this_thread::sleep_for(std::chrono::nanoseconds(left));
  }
}

Status VillageDay::frames_for(double seconds) {
  const auto never = []() -> Result<bool> { return false; };
  const auto ran = frames(never, seconds);
  if (!ran) return fail(ran.error());
  return {};
}

// Visitors come one after another and go to whoever was left alone the longest.
Status VillageDay::visit() {
  const std::int64_t now = now_ns();
  if (!market_ || now - asked_ns_ < kBetweenVisitsNs) return {};
  std::optional<std::size_t> next;
  std::size_t asked = 0;
  for (std::size_t who = 0; who < village_.all().size(); ++who) {
    const Villager& villager = village_.all()[who];
    if (villager.answer) ++asked;
    if (!village_.idle(who) || now - villager.last_ns < kRestNs) continue;
    if (!next || villager.last_ns < village_.all()[*next].last_ns) next = who;
  }
  if (!next || asked >= kVisitors) return {};
  asked_ns_ = now;
  return village_.ask_next(*next);
}

// A slow machine closes earlier: the roll call takes time in company, and about as much alone.
bool VillageDay::closing_time() const {
  const double elapsed = view_.elapsed();
  const Metrics metrics = village_.executor().metrics();
  const double busy = static_cast<double>(village_.pulse().busy_ns) * 1e-9;
  const double of_a_token =
      busy / static_cast<double>(std::max<std::uint64_t>(1, metrics.prompted + metrics.generated));
  const double check = 2 * of_a_token * kRollCallTokens * static_cast<double>(village_.all().size());
  return elapsed >= kMarketEnds * options_.seconds || elapsed + check >= 0.95 * options_.seconds;
}

Result<std::vector<std::string>> VillageDay::ask_beside(std::vector<Conversation*> talks,
                                                        const std::vector<std::string>& questions) {
  std::vector<Generation> answers;
  for (std::size_t i = 0; i < talks.size(); ++i) {
    KVASIR_TRY(prompt_question(*talks[i], questions[i]));
    KVASIR_ASSIGN(Generation answer, start_answer(*talks[i]));
    answers.push_back(std::move(answer));
  }
  std::vector<std::string> said(talks.size());
  const auto all_said = [&]() -> Result<bool> {
    bool all = true;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      while (true) {
        KVASIR_ASSIGN(const auto piece, answers[i].poll());
        if (!piece) break;
        said[i] += piece->text;
      }
      all = all && answers[i].finish().has_value();
    }
    return all;
  };
  KVASIR_ASSIGN(const bool done, frames(all_said, kLongestWait));
  if (!done) return fail(Outcome::kInternal, "an answer does not end");
  return said;
}

Status VillageDay::wake() {
  KVASIR_TRY(view_.act("Everybody wakes and is told who they are"));
  std::uint64_t told = 0;
  for (const Villager& villager : village_.all()) told += villager.told;
  KVASIR_TRY(view_.line(fmt::format("{} characters: {} tokens, for a pool of {}.", village_.all().size(),
                                    told, village_.executor().cache().pool)));
  const auto awake = [this]() -> Result<bool> {
    for (std::size_t who = 0; who < village_.all().size(); ++who) {
      if (!village_.idle(who)) return false;
    }
    return true;
  };
  KVASIR_ASSIGN(const bool done, frames(awake, kLongestWait));
  if (!done) return fail(Outcome::kInternal, "somebody does not wake");
  return {};
}

// A hash of everything that is saved of everybody: tokens, keys and values, queues, draws, logits.
Result<std::uint64_t> VillageDay::state_digest() const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  if (state == nullptr) return fail(Outcome::kOutOfMemory, "no memory for a hash");
  XXH3_64bits_reset(state.get());
  const WriteBytes add = [&](std::span<const std::byte> bytes) -> Status {
    XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
    return {};
  };
  const auto saved = village_.executor().save(add, {.background = 1});
  if (!saved) return fail(saved.error());
  return XXH3_64bits_digest(state.get());
}

Status VillageDay::act_cancelled_step() {
  KVASIR_TRY(view_.act("A step is cancelled in its last layer"));
  const auto some_speak = [this]() -> Result<bool> { return village_.speaking() >= 3; };
  const auto waited = frames(some_speak, 2);
  if (!waited) return fail(waited.error());
  std::size_t in_step = 0;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  const auto cancelled = [&]() -> Result<bool> {
    const auto digest = state_digest();
    // What is promised may count on cells that a save keeps: then a frame later.
    if (!digest && digest.error().code() == Outcome::kNoSpace) return false;
    KVASIR_ASSIGN(before, digest);
    const auto asked = static_cast<std::size_t>(
        std::ranges::count_if(village_.all(), [](const Villager& one) { return one.answer.has_value(); }));
    KVASIR_ASSIGN(const StepReport report, village_.cancelled_step());
    if (report.outcome != Outcome::kCancelled) return false;
    KVASIR_ASSIGN(after, state_digest());
    in_step = asked;
    return true;
  };
  KVASIR_ASSIGN(const bool done, frames(cancelled, 0.3 * options_.seconds));
  if (!done) {
    wrong("no step could be cancelled");
    return {};
  }
  if (before != after) wrong("a cancelled step has changed something");
  show(before == after, fmt::format("undone     a step of {} talks, cancelled in its last layer: {}", in_step,
                                    before == after ? "nothing had moved" : "DIFFERENT"));
  KVASIR_TRY(view_.line(
      fmt::format("{} characters were spoken with; all but the last layer was behind them.", in_step)));
  KVASIR_TRY(
      view_.line(fmt::format("before: {:016x}   of all tokens, keys, values, queues and draws", before)));
  KVASIR_TRY(view_.line(
      fmt::format("after:  {:016x}   {}", after, before == after ? "nothing has moved" : "DIFFERENT")));
  return frames_for(kActSeconds * options_.seconds);
}

Status VillageDay::act_fork() {
  Villager& villager = village_.all().front();
  const std::string_view name = villager.person->name;
  const auto free_to_talk = [this]() -> Result<bool> { return village_.idle(0); };
  const auto waited = frames(free_to_talk, kLongestWait);
  if (!waited) return fail(waited.error());
  KVASIR_TRY(view_.act(fmt::format("A visitor knows what opens {}'s secret. What if she had lied?", name)));
  KVASIR_ASSIGN(Conversation truth, villager.conversation.fork());
  KVASIR_ASSIGN(Conversation lie, villager.conversation.fork());
  KVASIR_TRY(
      view_.line(fmt::format("Two forks: all {} tokens are shared, none is copied.", lie.info().length)));
  const Line& right = line_about(*villager.person, "secret");
  const Line& wrong_words = line_about(*villager.person, "wrong words");
  KVASIR_ASSIGN(const auto said,
                ask_beside({&truth, &lie}, {std::string(right.question), std::string(wrong_words.question)}));
  KVASIR_TRY(view_.line(fmt::format("  {} {}", right.question, said[0])));
  KVASIR_TRY(view_.line(fmt::format("  {} {}", wrong_words.question, said[1])));
  const bool kept = is_right(right, said[0]) && is_right(wrong_words, said[1]);
  if (!kept) wrong(fmt::format("the forks of {} answered '{}' and '{}'", name, said[0], said[1]));
  show(kept, fmt::format("forked     {} told one visitor the secret, the liar nothing{}", name,
                         kept ? "" : ": DIFFERENT"));
  truth.close();
  lie.close();
  KVASIR_TRY(view_.line(fmt::format("  {} goes on, and has heard of neither.", name)));
  return frames_for(kActSeconds * options_.seconds);
}

Status VillageDay::roll_call() {
  market_ = false;
  KVASIR_TRY(view_.act("The market closes. Roll call: who are you, and what do you know?"));
  const auto all_idle = [this]() -> Result<bool> {
    for (std::size_t who = 0; who < village_.all().size(); ++who) {
      if (!village_.idle(who)) return false;
    }
    return true;
  };
  KVASIR_ASSIGN(bool done, frames(all_idle, kLongestWait));
  std::vector<Villager>& all = village_.all();
  called_.resize(all.size());
  for (std::size_t who = 0; who < all.size(); ++who) {
    KVASIR_ASSIGN(called_[who].before, all[who].conversation.tokens());
  }
  if (options_.mix_up) {
    KVASIR_TRY(view_.line(fmt::format("On purpose, {} and {} get each other's first {} cells.",
                                      all[0].person->name, all[1].person->name, kMixedUp)));
    KVASIR_TRY(mix_up(village_.executor(), all[0].conversation, all[1].conversation, kMixedUp));
  }
  const std::size_t rounds = all.front().person->roll_call.size();
  for (std::size_t round = 0; round < rounds && done; ++round) {
    for (std::size_t who = 0; who < all.size(); ++who)
      KVASIR_TRY(village_.ask(who, all[who].person->roll_call[round]));
    KVASIR_ASSIGN(done, frames(all_idle, kLongestWait));
    for (std::size_t who = 0; who < all.size(); ++who) called_[who].answers.push_back(all[who].said);
  }
  if (!done) return fail(Outcome::kInternal, "an answer does not end");
  for (std::size_t who = 0; who < all.size(); ++who) {
    KVASIR_ASSIGN(called_[who].after, all[who].conversation.tokens());
    KVASIR_ASSIGN(called_[who].digest, logits_digest(all[who].conversation));
  }
  return {};
}

Status VillageDay::check_alone() {
  KVASIR_TRY(view_.act("Is everybody still themselves? Each once more, alone in a cache of its own"));
  const std::vector<Villager>& all = village_.all();
  for (std::size_t who = 0; who < all.size(); ++who) {
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    KVASIR_ASSIGN(const bool same, same_alone(all[who], called_[who]));
    if (same) {
      ++themselves_;
    } else {
      wrong(fmt::format("{} is not as alone", all[who].person->name));
    }
    KVASIR_TRY(view_.draw(village_));
  }
  return view_.line(fmt::format("{} of {}: the same words, and the same bits.", themselves_, all.size()));
}

// Tells it all that was said, and holds the roll call again.
Result<bool> VillageDay::same_alone(const Villager& villager, const Called& called) const {
  ExecutorOptions options;
  options.keys = options_.executor.keys;
  options.values = options_.executor.values;
  options.context = called.after.size() + 2 * kLongestAnswer;
  options.pool = options.context;
  options.share_prefixes = false;
  KVASIR_ASSIGN(Executor executor, Executor::create(model_, options));
  KVASIR_ASSIGN(Conversation alone, executor.conversation());
  const auto told = alone.prompt(called.before);
  if (!told) return fail(told.error());
  std::vector<std::string> answers;
  for (const Line& line : villager.person->roll_call) {
    KVASIR_TRY(prompt_question(alone, line.question));
    KVASIR_ASSIGN(Generation answer, start_answer(alone));
    KVASIR_ASSIGN(const GeneratedPiece said, answer.rest());
    answers.push_back(said.text);
  }
  KVASIR_ASSIGN(const std::vector<Token> after, alone.tokens());
  KVASIR_ASSIGN(const std::uint64_t digest, logits_digest(alone));
  return answers == called.answers && after == called.after && digest == called.digest;
}

Status VillageDay::summarize() {
  KVASIR_TRY(view_.close(village_));
  const CacheInfo cache = village_.executor().cache();
  const Metrics metrics = village_.executor().metrics();
  const Pulse& pulse = village_.pulse();
  std::uint64_t tokens = 0;
  for (const Villager& villager : village_.all()) tokens += villager.conversation.length();
  const bool all = themselves_ == village_.all().size();
  KVASIR_TRY(view_.verdict(right_ == answers_, fmt::format("answers    {} of {} right", right_, answers_)));
  KVASIR_TRY(view_.verdict(
      all, fmt::format("alone      {} of {}: the same words and the same bits, each in its own cache",
                       themselves_, village_.all().size())));
  for (const Shown& act : shown_) KVASIR_TRY(view_.verdict(act.good, act.text));
  KVASIR_TRY(view_.verdict(
      true, fmt::format("cache      {} tokens of talk in a pool of {}; {} returns, {:.0f} MB moved", tokens,
                        cache.pool, metrics.returns,
                        static_cast<double>(metrics.bytes_spilled + metrics.bytes_returned) * 1e-6)));
  KVASIR_TRY(
      view_.verdict(true, fmt::format("time       {} of {} steps within {} + 2 ms; {} tokens in {:.0f} s",
                                      pulse.in_time, pulse.frames, kFrameBudget.count(),
                                      metrics.prompted + metrics.generated, view_.elapsed())));
  if (wrong_.empty())
    return view_.verdict(true, fmt::format("verified   all {} stayed themselves", village_.all().size()));
  return fail(Outcome::kCorrupt,
              fmt::format("not as promised: {}{}", wrong_.front(),
                          wrong_.size() == 1 ? "" : fmt::format(", and {} more", wrong_.size() - 1)));
}

}  // namespace kvasir::cli
