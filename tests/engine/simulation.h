// A whole executor under a clock of its own, with everything that several threads could do at the same time
// done at the moments between two jobs: the same course of events for the same seed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/executor.h"
#include "support/tiny_model.h"
#include "text/tokenizer.h"

namespace kvasir::engine::test {

// Each look at it takes `tick` nanoseconds.
class TickingClock final : public base::Clock {
 public:
  explicit TickingClock(std::int64_t tick) : tick_(tick) {}
  [[nodiscard]] std::int64_t now_ns() const noexcept override { return now_ += tick_; }
  void jump(std::int64_t ns) noexcept { now_ += ns; }

 private:
  std::int64_t tick_;
  mutable std::atomic<std::int64_t> now_{0};
};

// How often what is rare has happened, over all simulations.
struct SimulationCounts {
  std::uint64_t steps = 0;
  std::uint64_t suspended = 0;
  std::uint64_t stalled = 0;
  std::uint64_t waited_for_room = 0;
  std::uint64_t cancelled_in_step = 0;
  std::uint64_t closed_in_step = 0;
  std::uint64_t forked_in_step = 0;
  std::uint64_t prompted_in_step = 0;
  std::uint64_t generated = 0;
  std::uint64_t units = 0;
  std::uint64_t reused = 0;
  std::uint64_t behind = 0;         // rewinds that left tokens to be computed again
  std::uint64_t undone = 0;         // steps that were cancelled or refused, and left what was before
  std::uint64_t lacked_memory = 0;  // steps that failed for it, and left what was before
};

class Simulation {
 public:
  Simulation(const kvasir::test::LoadedModel& model, const text::Tokenizer& tokenizer, std::uint64_t seed,
             SimulationCounts& counts);

  // Runs it to its end. Nothing where all held, or what did not.
  [[nodiscard]] std::string run();

 private:
  // What a conversation should hold.
  struct Twin {
    ConversationId id{};
    std::vector<Token> prompted;  // and drawn: all that was ever queued and not taken back
    std::shared_ptr<TextGeneration> generation;
    std::uint64_t read = 0;  // tokens of its generation
  };

  void require(bool holds, const std::string& what);
  [[nodiscard]] std::uint64_t below(std::uint64_t count) { return random_() % count; }
  [[nodiscard]] std::vector<Token> random_prompt();
  [[nodiscard]] Twin* any();
  void act(bool in_step);
  void open();
  void prompt(Twin& twin, bool in_step);
  void fork(const Twin& twin, bool in_step);
  void cancel(Twin& twin, bool in_step);
  void close(Twin& twin, bool in_step);
  void rewind(Twin& twin);
  void generate(Twin& twin);
  void read(Twin& twin);
  void follow(Twin& twin);
  void step();
  [[nodiscard]] kvasir::engine::StepBudget random_budget(bool quiet);
  [[nodiscard]] Result<kvasir::StepReport> take_step(const StepBudget& budget, bool quiet);
  void check_undone(const Result<kvasir::StepReport>& report);
  void check_time(const StepBudget& budget, const kvasir::StepReport& report, std::int64_t elapsed);
  [[nodiscard]] std::uint64_t digest() const;
  void check_fairness();
  void make_room(const kvasir::StepReport& report);
  void finish();
  void check_cold(const Twin& twin);

  const kvasir::test::LoadedModel* model_;
  const text::Tokenizer* tokenizer_;
  std::mt19937_64 random_;
  SimulationCounts* counts_;
  TickingClock clock_;
  std::shared_ptr<parallel::ThreadPool> pool_;
  std::shared_ptr<Executor> executor_;
  std::vector<Twin> twins_;
  std::size_t most_ = 1;
  std::optional<std::uint64_t>
      before_;  // the digest from before the step, while nobody has done anything since
  std::string wrong_;
};

}  // namespace kvasir::engine::test
