// Blocks of different tokens whose hashes are equal: a hash only finds a block, the tokens decide.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pages/prefix_index.h"

namespace kvasir::pages::test {
namespace {

// The hash of the index, token by token. With another one these blocks would no longer collide; the mutant "a
// block is found without looking at its tokens" tells.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}
constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ULL;

std::uint64_t hash_after(std::uint64_t hash, Token token) {
  return mix(hash + static_cast<std::uint32_t>(token) + kStep);
}

using Block = std::vector<Token>;

// Two blocks of two tokens with one hash: first tokens whose hashes lie so near that second tokens make up
// for the difference. Among 2^18 hashes of 64 bits many pairs lie within 2^30.
std::pair<Block, Block> colliding_blocks() {
  const std::uint64_t root = mix(kStep);
  std::vector<std::pair<std::uint64_t, Token>> hashes;
  for (Token token = 0; token < 1 << 18; ++token) hashes.emplace_back(hash_after(root, token), token);
  std::ranges::sort(hashes);
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    const std::uint64_t apart = hashes[i].first - hashes[i - 1].first;
    if (apart < std::uint64_t{1} << 30) {
      return {{hashes[i - 1].second, static_cast<Token>(apart)}, {hashes[i].second, 0}};
    }
  }
  return {};
}

TEST(PrefixIndex, TellsBlocksOfOneHashApartByTheirTokens) {
  const auto [a, b] = colliding_blocks();
  ASSERT_EQ(a.size(), 2U);
  ASSERT_NE(a, b);
  const auto hash_of = [](const Block& block) {
    return hash_after(hash_after(mix(kStep), block[0]), block[1]);
  };
  ASSERT_EQ(hash_of(a), hash_of(b));

  PrefixIndex index;
  const PrefixIndex::BlockId of_a = index.insert(PrefixIndex::kRoot, {}, a, std::vector<PageTable>(1));
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {}, a), of_a);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {}, b), std::nullopt);
  const PrefixIndex::BlockId of_b = index.insert(PrefixIndex::kRoot, {}, b, std::vector<PageTable>(1));
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {}, a), of_a);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {}, b), of_b);
  index.erase(of_a);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {}, a), std::nullopt);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {}, b), of_b);
  index.erase(of_b);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, {}, b), std::nullopt);
}

}  // namespace
}  // namespace kvasir::pages::test
