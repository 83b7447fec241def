// Damaged and hostile archives: refused with their reason, and nothing has changed.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "api/api_run.h"
#include "api/forge.h"

namespace kvasir {
namespace {

using test::digest_of;
using test::forged;
using test::logits_of;
using test::must;
using test::options_of;
using test::outcome_of;
using test::Section;
using test::sections_of;
using test::some_tokens;

using Bytes = std::vector<std::byte>;

// An executor with two conversations, and an archive of something else: forks, rows, a queue, an edit.
struct Scene {
  Executor executor = test::make_executor(options_of(4096, 64));
  std::vector<Conversation> there;
  Bytes archive;
  std::uint64_t digest = 0;

  explicit Scene(std::size_t tokens = 24) {
    Executor source = test::make_executor(options_of(2048, 64));
    Conversation talk = must(source.conversation());
    must(talk.prompt(some_tokens(tokens, 1), {.every_logit = tokens < 100}));
    must(talk.wait());
    Conversation fork = must(talk.fork());
    must(talk.shift_left(2, 3));
    must(fork.prompt(some_tokens(3, 2)));
    const auto rows = test::embeddings_of(some_tokens(1, 3));
    must(fork.prompt(Embeddings{rows}));
    archive = must(source.save_bytes());
    for (std::uint64_t i = 0; i < 2; ++i) {
      there.push_back(must(executor.conversation()));
      must(there.back().prompt(some_tokens(20, 10 + i)));
      must(there.back().wait());
    }
    must(there[0].prompt(some_tokens(4, 20)));
    digest = digest_of(executor);
  }

  // What loading these bytes answers; nothing has changed where that is no success.
  Outcome load(std::span<const std::byte> bytes, const LoadOptions& options = {}) {
    const auto loaded = executor.load(bytes, options);
    if (loaded) return Outcome::kDone;
    EXPECT_FALSE(loaded.error().message().empty());
    EXPECT_EQ(digest_of(executor), digest) << loaded.error().message();
    return loaded.error().code();
  }
};

// K13
TEST(ArchiveDamage, IsRefusedAtEveryCut) {
  Scene scene;
  for (std::size_t length = 0; length < scene.archive.size(); ++length) {
    ASSERT_EQ(scene.load(std::span(scene.archive).first(length)), Outcome::kCorrupt) << length;
  }
  EXPECT_EQ(scene.load(scene.archive), Outcome::kDone);
}

// K13
TEST(ArchiveDamage, IsRefusedInEveryByte) {
  Scene scene;
  std::mt19937_64 random(3);
  const std::vector<float> expected = test::cold_logits(some_tokens(30, 40));
  for (std::size_t at = 0; at < scene.archive.size(); ++at) {
    Bytes damaged = scene.archive;
    damaged[at] ^= static_cast<std::byte>(1U << random() % 8);
    const Outcome outcome = scene.load(damaged);
    ASSERT_EQ(outcome, at == 7 ? Outcome::kUnsupported : Outcome::kCorrupt) << at;
    if (at % 1000 != 0) continue;
    Conversation fixed = must(scene.executor.conversation());
    must(fixed.prompt(some_tokens(30, 40)));
    must(fixed.wait());
    EXPECT_EQ(logits_of(fixed), expected);
    fixed.close();
    must(scene.there[0].wait());
    scene.digest = digest_of(scene.executor);
  }
}

// K13
TEST(ArchiveDamage, IsRefusedAtAThousandCutsAndFlipsOfALargeArchive) {
  Scene scene(1500);
  std::mt19937_64 random(5);
  for (int round = 0; round < 1000; ++round) {
    const std::size_t at = random() % scene.archive.size();
    if (round % 2 == 0) {
      ASSERT_EQ(scene.load(std::span(scene.archive).first(at)), Outcome::kCorrupt) << at;
    } else {
      const std::byte before = scene.archive[at];
      scene.archive[at] ^= static_cast<std::byte>(1U << random() % 8);
      ASSERT_NE(scene.load(scene.archive), Outcome::kDone) << at;
      scene.archive[at] = before;
    }
  }
}

TEST(ArchiveDamage, IsRefusedWhereSectionsChangePlacesAreTwiceOrAreMissing) {
  Scene scene;
  const std::vector<Section> sections = sections_of(scene.archive);
  ASSERT_GE(sections.size(), 5U);
  for (std::size_t a = 0; a < sections.size(); ++a) {
    std::vector<Section> missing = sections;
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(a));
    EXPECT_EQ(scene.load(forged(missing)), Outcome::kCorrupt) << a;
    std::vector<Section> twice = sections;
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(a), sections[a]);
    EXPECT_EQ(scene.load(forged(twice)), Outcome::kCorrupt) << a;
    for (std::size_t b = 0; b < a; ++b) {
      if (sections[a].kind == sections[b].kind) continue;
      std::vector<Section> swapped = sections;
      std::swap(swapped[a], swapped[b]);
      EXPECT_EQ(scene.load(forged(swapped)), Outcome::kCorrupt) << a << " and " << b;
    }
  }
  std::vector<Section> strange = sections;
  strange.push_back({archive::kind_of("WHAT"), Bytes(8)});
  EXPECT_EQ(scene.load(forged(strange)), Outcome::kCorrupt);
  EXPECT_EQ(scene.load(forged(sections)), Outcome::kDone) << "the forger does nothing else";
}

// Every number of every section made huge, with checksums that agree: refused, or harmless.
TEST(ArchiveDamage, OfHostileNumbersDoesNoHarm) {
  Scene scene;
  const std::vector<Section> sections = sections_of(scene.archive);
  std::size_t refused = 0;
  std::size_t taken = 0;
  for (std::size_t which = 0; which < sections.size(); ++which) {
    const bool cells = sections[which].kind == archive::kind_of("CELL");
    const bool rows = sections[which].kind == archive::kind_of("ROWS");
    const std::size_t bytes = cells ? 16 : rows ? 0 : sections[which].content.size();
    for (std::size_t at = 0; at < bytes; ++at) {
      for (const unsigned value : {0xFFU, 0x7FU, 0x01U}) {
        std::vector<Section> hostile = sections;
        hostile[which].content[at] ^= std::byte{static_cast<unsigned char>(value)};
        auto loaded = scene.executor.load(forged(hostile));
        if (!loaded) {
          ++refused;
          ASSERT_EQ(digest_of(scene.executor), scene.digest) << which << ":" << at;
          continue;
        }
        ++taken;
        for (LoadedConversation& one : loaded->conversations) {
          static_cast<void>(one.conversation.prompt(some_tokens(2, 1)));
          static_cast<void>(one.conversation.rewind(one.conversation.length() / 2));
        }
        loaded->conversations.clear();
        must(scene.executor.cache().free > 0 ? Status() : Status(fail(Outcome::kInternal, "space is lost")));
      }
    }
  }
  EXPECT_GT(refused, taken);
  EXPECT_GT(taken, 0U) << "an id, a seed or a priority may be anything";
  EXPECT_EQ(digest_of(scene.executor), scene.digest);
}

// Bits of cells that are no numbers stay within their conversation.
TEST(ArchiveDamage, OfCellsThatAreNoNumbersStaysInItsConversation) {
  Scene scene;
  std::vector<Section> sections = sections_of(scene.archive);
  for (Section& section : sections) {
    if (section.kind != archive::kind_of("CELL")) continue;
    std::fill(section.content.begin() + 16, section.content.end(), std::byte{0xFF});
  }
  Loaded loaded = must(scene.executor.load(forged(sections)));
  for (LoadedConversation& one : loaded.conversations) must(one.conversation.prompt(some_tokens(3, 1)));
  must(scene.executor.run_until_idle());
  Conversation other = must(scene.executor.conversation());
  must(other.prompt(some_tokens(30, 40)));
  must(other.wait());
  EXPECT_EQ(logits_of(other), test::cold_logits(some_tokens(30, 40)));
}

TEST(ArchiveDamage, OfNothingAtAllIsNoArchive) {
  Scene scene;
  EXPECT_EQ(scene.load({}), Outcome::kCorrupt);
  const Bytes text(1000, std::byte{'a'});
  EXPECT_EQ(scene.load(text), Outcome::kCorrupt);
  EXPECT_EQ(outcome_of(scene.executor.load(ReadBytes())), Outcome::kInvalidArgument);
  EXPECT_EQ(outcome_of(scene.there[0].save(WriteBytes())), Outcome::kInvalidArgument);
}

}  // namespace
}  // namespace kvasir
