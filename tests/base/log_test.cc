#include "base/log.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kvasir {
namespace {

using Lines = std::vector<std::pair<LogLevel, std::string>>;

class Log : public testing::Test {
 protected:
  ~Log() override { set_log(LogLevel::kDebug, {}); }

  void take(LogLevel least) {
    set_log(least, [this](LogLevel level, std::string_view line) { lines_.emplace_back(level, line); });
  }

  static void say_all() {
    for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError})
      base::log(level, [&] { return "level " + std::to_string(static_cast<int>(level)); });
  }

  Lines lines_;
};

TEST_F(Log, TakesLinesFromItsLevelOn) {
  take(LogLevel::kWarn);
  say_all();
  EXPECT_EQ(lines_, (Lines{{LogLevel::kWarn, "level 2"}, {LogLevel::kError, "level 3"}}));
  take(LogLevel::kDebug);
  lines_.clear();
  say_all();
  EXPECT_EQ(lines_.size(), 4U);
}

TEST_F(Log, MakesNoLineThatNobodyTakes) {
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::string("line");
  };
  base::log(LogLevel::kError, make);
  EXPECT_EQ(made, 0) << "nobody has asked for any";
  take(LogLevel::kInfo);
  base::log(LogLevel::kDebug, make);
  EXPECT_EQ(made, 0);
  base::log(LogLevel::kInfo, make);
  EXPECT_EQ(made, 1);
  set_log(LogLevel::kDebug, {});
  base::log(LogLevel::kError, make);
  EXPECT_EQ(made, 1) << "nobody takes any more";
}

TEST_F(Log, SwallowsWhatASinkOrALineThrows) {
  set_log(LogLevel::kDebug, [](LogLevel, std::string_view) { throw std::runtime_error("full"); });
  say_all();
  take(LogLevel::kDebug);
  base::log(LogLevel::kInfo, []() -> std::string { throw std::bad_alloc(); });
  EXPECT_TRUE(lines_.empty());
  say_all();
  EXPECT_EQ(lines_.size(), 4U) << "and goes on";
}

TEST_F(Log, HandsOnOneLineAtATime) {
  take(LogLevel::kDebug);
  {
    const std::jthread other([] {
      for (int i = 0; i < 500; ++i) say_all();
    });
    for (int i = 0; i < 500; ++i) say_all();
  }
  EXPECT_EQ(lines_.size(), 4000U);
}

}  // namespace
}  // namespace kvasir
