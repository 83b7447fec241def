// Stop strings are found wherever the pieces end, and nothing of them is ever delivered.

#include "engine/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace kvasir::engine {
namespace {

// All before the stop string that is complete first (the longest of those that end together), or all.
std::string naive(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    const std::string_view begun = std::string_view(text).substr(0, end);
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (begun.ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopStrings, DeliverWhatANaiveSearchFindsHoweverTheTextIsCut) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    const auto word = [&](std::size_t least, std::size_t most) {
      std::string made(least + random() % (most - least + 1), 'a');
      for (char& c : made) c = static_cast<char>('a' + random() % 2);
      return made;
    };
    std::vector<std::string> stops(random() % 3);
    for (std::string& stop : stops) stop = word(1, 4);
    const std::string text = word(0, 20);
    const std::string expected = naive(text, stops);
    StopStrings finder(stops);
    std::string got;
    for (std::size_t at = 0; at < text.size() && !finder.stopped();) {
      const std::size_t count = 1 + random() % 4;
      got += finder.feed(std::string_view(text).substr(at, count));
      ASSERT_TRUE(expected.starts_with(got)) << "delivers early what may be taken back";
      at += count;
    }
    if (!finder.stopped()) got += finder.finish();
    ASSERT_EQ(got, expected) << "in '" << text << "'";
  }
}

TEST(StopStrings, HoldBackNoMoreThanAStopStringCouldBeginWith) {
  StopStrings finder({"END"});
  EXPECT_EQ(finder.feed("so it ENDs not"), "so it ");
  EXPECT_TRUE(finder.stopped());
  StopStrings other({"END"});
  EXPECT_EQ(other.feed("the EN"), "the ");
  EXPECT_EQ(other.feed("Emy"), "ENEmy");
}

}  // namespace
}  // namespace kvasir::engine
