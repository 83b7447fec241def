// gguf_damage [FLIPS [SEED [FILE...]]]: the long form of the damage tests, over the sample of both versions
// and over the files: every prefix, every number at every extreme, FLIPS (default 10,000) files with random
// bytes changed. Exit status 1 if the reader judged one wrongly.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "damage.h"

namespace kvasir::gguf::test {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{64} << 20;

bool report(const std::string& name, const char* damage, const Tally& tally) {
  std::printf("%s, %s: %llu files, %llu accepted, %llu refused, at most %lld bytes beyond the file's size\n",
              name.c_str(), damage, static_cast<unsigned long long>(tally.all()),
              static_cast<unsigned long long>(tally.accepted), static_cast<unsigned long long>(tally.refused),
              static_cast<long long>(tally.most_beyond_size));
  for (const std::string& complaint : tally.complaints) std::printf("  WRONG %s\n", complaint.c_str());
  std::fflush(stdout);
  return tally.complaints.empty();
}

bool campaign(const std::string& name, const Bytes& file, std::uint64_t flips, std::uint64_t seed) {
  Tally cut;
  cut_everywhere(file, judging(cut));
  bool right = report(name, "every prefix", cut);
  Tally extremes;
  set_extremes(file, judging(extremes));
  right = report(name, "every extreme", extremes) && right;
  Tally flipped;
  flip_bytes(file, flips, seed, judging(flipped));
  return report(name, "random flips", flipped) && right;
}

int run(int argc, char** argv) {
  const std::uint64_t flips = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  bool right = campaign("sample of version 2", sample(2), flips, seed);
  right = campaign("sample of version 3", sample(3), flips, seed) && right;
  for (int i = 3; i < argc; ++i) {
    const auto bytes = base::read_whole(base::system_files(), argv[i], kLargestFile);
    if (!bytes) {
      std::fprintf(stderr, "gguf_damage: %s\n", bytes.error().message().c_str());
      return 1;
    }
    right = campaign(argv[i], *bytes, flips, seed) && right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace kvasir::gguf::test

int main(int argc, char** argv) {
  return kvasir::gguf::test::run(argc, argv);
}
