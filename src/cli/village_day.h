// A day in the village: what the demonstration does, act after act, and the check that everybody is still
// themselves at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/village.h"
#include "cli/village_view.h"
#include "kvasir/executor.h"
#include "kvasir/result.h"

namespace kvasir::cli {

inline constexpr double kLongestWait = 600;  // seconds; nothing of it takes as long

struct DayOptions {
  std::string model;         // its file, for the process that loads a saved character
  std::string types;         // of the cache, for that process too
  ExecutorOptions executor;  // what the village's is made with
  std::string scratch;       // a directory for the saved character
  double seconds = 30;       // that all of it takes, about
  bool mix_up = false;       // hand one character another's cells before the roll call
};

// One thread.
class VillageDay {
 public:
  VillageDay(const Model& model, Village& village, VillageView& view, DayOptions options)
      : model_(model), village_(village), view_(view), options_(std::move(options)) {}

  // All of it, and a summary. kCorrupt where somebody is not as alone, or anything else was not as promised:
  // the message says who or what. kCancelled where the user interrupts; errors of what it calls.
  [[nodiscard]] Status run();

 private:
  // What somebody is made of before the roll call, and what must come out of it.
  struct Called {
    std::vector<Token> before;
    std::vector<std::string> answers;
    std::vector<Token> after;
    std::uint64_t digest = 0;
  };
  struct Shown {
    bool good = false;
    std::string text;
  };
  using Done = std::function<Result<bool>()>;

  // Frames until it is done or so many seconds are over; whether it is done.
  [[nodiscard]] Result<bool> frames(const Done& done, double seconds);
  [[nodiscard]] Status frames_for(double seconds);
  [[nodiscard]] Status visit();
  [[nodiscard]] bool closing_time() const;
  // Asks conversations beside the village, all at once; what they answer.
  [[nodiscard]] Result<std::vector<std::string>> ask_beside(std::vector<Conversation*> talks,
                                                            const std::vector<std::string>& questions);

  [[nodiscard]] Status wake();
  [[nodiscard]] Status act_cancelled_step();
  [[nodiscard]] Status act_fork();
  [[nodiscard]] Status act_other_process();
  [[nodiscard]] Status recall_elsewhere(Villager& villager, const std::string& file);
  [[nodiscard]] Status roll_call();
  [[nodiscard]] Status check_alone();
  [[nodiscard]] Result<bool> same_alone(const Villager& villager, const Called& called) const;
  [[nodiscard]] Status summarize();

  [[nodiscard]] Result<std::uint64_t> state_digest() const;
  void show(bool good, std::string text) { shown_.push_back({good, std::move(text)}); }
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }

  const Model& model_;
  Village& village_;
  VillageView& view_;
  DayOptions options_;
  bool market_ = false;  // visitors come by themselves
  std::int64_t asked_ns_ = 0;
  std::uint64_t answers_ = 0;
  std::uint64_t right_ = 0;
  std::vector<Called> called_;
  std::size_t themselves_ = 0;
  std::vector<std::string> wrong_;
  std::vector<Shown> shown_;  // by the acts, for the summary
};

}  // namespace kvasir::cli
