// The demonstration's village: characters in one executor whose pool holds a part of them, asked one by one
// and advanced frame by frame as a game would. Speaks to Kvasir by its public API alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/village_people.h"
#include "kvasir/executor.h"
#include "kvasir/result.h"

namespace kvasir::cli {

inline constexpr std::uint32_t kVillagePage = 32;                 // cells in a page
inline constexpr std::uint64_t kVillagePool = 64 * kVillagePage;  // tokens
inline constexpr std::uint64_t kLongestTalk = 1024;               // tokens
inline constexpr std::uint64_t kLongestAnswer = 48;               // tokens
inline constexpr std::chrono::microseconds kFrame{16'667};        // sixty a second
inline constexpr std::chrono::milliseconds kFrameBudget{8};       // of a frame, for the village

// Queues a question of the visitor's; `before` is what comes before it, as the model knows it.
[[nodiscard]] Status prompt_question(Conversation& conversation, std::string_view question,
                                     std::string_view before = {});

// Starts the answer: what is most likely, to its end.
[[nodiscard]] Result<Generation> start_answer(Conversation& conversation);

// What begins a conversation: who the character is.
[[nodiscard]] std::string opening(const Person& person);

// The first line of a kind in a character's talk; the first of all where there is none of it.
[[nodiscard]] const Line& line_about(const Person& person, std::string_view kind);

// Whether an answer contains all that a right one does.
[[nodiscard]] bool is_right(const Line& line, std::string_view answer);

// XXH3-64 of the last row of logits. Errors as Conversation::logits().
[[nodiscard]] Result<std::uint64_t> logits_digest(const Conversation& conversation);

// One character.
struct Villager {
  const Person* person = nullptr;
  Conversation conversation;
  std::uint64_t told = 0;  // tokens of who it is
  std::optional<Generation> answer;
  Line line;                 // that is being answered, or was last
  std::string said;          // the answer so far
  std::size_t turn = 0;      // of its talk, the next
  std::int64_t last_ns = 0;  // when it last ended an answer
};

// An answer that has ended.
struct Heard {
  std::size_t who = 0;
  Line line;
  std::string answer;
  bool right = false;
};

// How the frames have gone.
struct Pulse {
  std::uint64_t frames = 0;       // with a step in them
  std::uint64_t in_time = 0;      // of those, within the budget and 2 ms
  double step_ms = 0;             // of the last one
  double longest_ms = 0;          //
  double tokens_per_second = 0;   // of late
  std::vector<double> latest_ms;  // of the last steps, the oldest first
  std::int64_t busy_ns = 0;       // of all steps together
};

// Move-only; one thread.
class Village {
 public:
  // Opens all characters and queues who they are, in an executor with these options and a small memory tier;
  // `disk` is the directory of the disk tier's file. Errors as Executor::create().
  [[nodiscard]] static Result<Village> create(const Model& model, ExecutorOptions options,
                                              const std::string& disk);

  // Asks somebody who is idle.
  [[nodiscard]] Status ask(std::size_t who, const Line& line);

  // Asks the next line of its talk; after the last one it forgets the talk, and begins again.
  [[nodiscard]] Status ask_next(std::size_t who);

  // One frame's step, and everything that was said. kCancelled where the user interrupts; kNoSpace where the
  // pool is too small for anyone.
  [[nodiscard]] Result<std::vector<Heard>> frame();

  // Steps as frame() does, without its budget and cancelled after the last layer of its pass; answers what
  // the step reported.
  [[nodiscard]] Result<StepReport> cancelled_step();

  // Whether it neither has something queued nor speaks.
  [[nodiscard]] bool idle(std::size_t who) const;
  [[nodiscard]] std::size_t speaking() const;

  [[nodiscard]] Executor& executor() noexcept { return executor_; }
  [[nodiscard]] const Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] std::vector<Villager>& all() noexcept { return villagers_; }
  [[nodiscard]] const std::vector<Villager>& all() const noexcept { return villagers_; }
  [[nodiscard]] const Pulse& pulse() const noexcept { return pulse_; }

 private:
  explicit Village(Executor executor) : executor_(std::move(executor)) {}
  void note(const StepReport& report, std::int64_t now_ns);

  Executor executor_;
  std::vector<Villager> villagers_;
  Pulse pulse_;
  struct Counted {
    std::int64_t at_ns = 0;
    std::uint64_t tokens = 0;
  };
  std::vector<Counted> counted_;  // of the last second
};

}  // namespace kvasir::cli
