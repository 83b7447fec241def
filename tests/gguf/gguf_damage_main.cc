// gguf_damage [FLIPS [SEED [PROGRAM [FILE...]]]]: the long form of the damage tests, over the sample of both
// versions and over the files: every prefix, every number at every extreme, FLIPS (default 10,000) files with
// random bytes changed. With a PROGRAM other than -, `PROGRAM inspect` is judged over all of these instead of
// the library. Exit status 1 if anything was judged wrong.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/file.h"
#include "damage.h"
#include "judge.h"
#include "judge_program.h"

namespace kvasir::gguf::test {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{64} << 20;

struct Options {
  std::uint64_t flips = 10000;
  std::uint64_t seed = 1;
  std::string program = "-";
};

// Gives damaged files to the library or to the program, and prints what became of them.
class Campaign {
 public:
  explicit Campaign(Options options) : options_(std::move(options)) {}

  void over(const std::string& name, const Bytes& file) {
    damage(name + ", every prefix", [&](const Examine& examine) { cut_everywhere(file, examine); });
    damage(name + ", every extreme", [&](const Examine& examine) { set_extremes(file, examine); });
    damage(name + ", random flips",
           [&](const Examine& examine) { flip_bytes(file, options_.flips, options_.seed, examine); });
  }

  [[nodiscard]] bool right() const { return right_; }

 private:
  template <class Damage>
  void damage(const std::string& what, const Damage& apply) {
    Tally tally;
    std::uint64_t files = 0;
    if (options_.program == "-") {
      apply(judging(tally));
      files = tally.all();
    } else {
      apply([&](const Bytes& bytes, const std::string& change) {
        const auto complaint = judge_program(options_.program, bytes, files++ % 2 == 0);
        if (complaint) tally.complaints.push_back(change + ": " + *complaint);
      });
    }
    std::string result =
        fmt::format("{}: {} files, {} of them judged wrong", what, files, tally.complaints.size());
    if (options_.program == "-") {
      result += fmt::format(", {} accepted, {} refused, at most {} bytes beyond the file's size",
                            tally.accepted, tally.refused, tally.most_beyond_size);
    }
    std::printf("%s\n", result.c_str());
    for (const std::string& complaint : tally.complaints) std::printf("  WRONG %s\n", complaint.c_str());
    std::fflush(stdout);
    right_ = right_ && tally.complaints.empty();
  }

  Options options_;
  bool right_ = true;
};

int run(int argc, char** argv) {
  Options options;
  if (argc > 1) options.flips = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) options.seed = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) options.program = argv[3];
  Campaign campaign(std::move(options));
  campaign.over("sample of version 2", sample(2));
  campaign.over("sample of version 3", sample(3));
  for (int i = 4; i < argc; ++i) {
    const auto bytes = base::read_whole(base::system_files(), argv[i], kLargestFile);
    if (!bytes) {
      std::fprintf(stderr, "gguf_damage: %s\n", bytes.error().message().c_str());
      return 1;
    }
    campaign.over(argv[i], *bytes);
  }
  return campaign.right() ? 0 : 1;
}

}  // namespace
}  // namespace kvasir::gguf::test

int main(int argc, char** argv) {
  return kvasir::gguf::test::run(argc, argv);
}
