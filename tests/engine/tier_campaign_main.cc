// tier_campaign MODEL DIRECTORY [TURNS [SEED]]: 200 conversations of 512 tokens over a pool for 20, a memory
// tier for 60 and a disk for the rest. The exit status is 1 where an answer differs.

#include <cstdlib>
#include <iostream>

#include "tier_storm.h"

int main(int count, char** arguments) {
  using namespace kvasir;  // NOLINT(google-build-using-namespace)
  if (count < 3) return 2;
  engine::test::Storm storm;
  if (count > 3) storm.turns = std::strtoull(arguments[3], nullptr, 10);
  if (count > 4) storm.seed = std::strtoull(arguments[4], nullptr, 10);
  const engine::test::StormReport report =
      engine::test::run_storm(test::load_file(arguments[1]), storm, arguments[2]);
  std::cout << report.text() << "\n" << report.wrong << (report.wrong.empty() ? "" : "\n");
  return report.wrong.empty() ? 0 : 1;
}
