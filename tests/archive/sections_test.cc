// Sections written and read back, damaged at every byte, and from sources that end early or tell nothing.

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "archive/reader.h"
#include "archive/writer.h"
#include "base/bytes.h"

namespace kvasir::archive {
namespace {

constexpr Kind kText = kind_of("TEXT");
constexpr Kind kData = kind_of("DATA");

using Bytes = std::vector<std::byte>;

// Numbers that zstd shortens a little, and not too much.
Bytes numbers(std::size_t count) {
  Bytes bytes;
  base::ByteWriter out(bytes);
  std::uint32_t value = 1;
  for (std::size_t i = 0; i < count; ++i) {
    value = value * 1664525U + 1013904223U;
    out.number(value >> 20);
  }
  return bytes;
}

Bytes sample(int level) {
  Bytes bytes;
  const auto sink = memory_sink(bytes);
  auto writer = Writer::begin(*sink, level);
  EXPECT_TRUE(writer.has_value());
  EXPECT_TRUE(writer->contents(kText, numbers(100)).has_value());
  EXPECT_TRUE(writer->section(kData, numbers(60)).has_value());
  EXPECT_TRUE(writer->section(kData, {}).has_value());
  EXPECT_TRUE(writer->end().has_value());
  EXPECT_EQ(writer->bytes(), bytes.size());
  return bytes;
}

// All of it read, or why not.
Status read(Source& source) {
  auto reader = Reader::begin(source);
  if (!reader) return fail(reader.error());
  const auto text = reader->contents(kText, 4096);
  if (!text) return fail(text.error());
  const auto data = reader->contents(kData, 4096);
  if (!data) return fail(data.error());
  if (Status end = reader->end(); !end) return end;
  if (*text != numbers(100) || *data != numbers(60)) return fail(Outcome::kInternal, "other contents");
  return {};
}

Status read(const Bytes& bytes) {
  const auto source = memory_source(bytes);
  return read(*source);
}

// Hands out a few bytes at a time.
ReadBytes in_drops(const Bytes& bytes, std::size_t& at, std::size_t most) {
  return [&bytes, &at, most](std::span<std::byte> into) -> Result<std::size_t> {
    const std::size_t some = std::min({most, into.size(), bytes.size() - at});
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), some, into.begin());
    at += some;
    return some;
  };
}

TEST(Sections, ComeBackAsTheyWereWritten) {
  for (const int level : {0, 1, 19}) {
    const Bytes bytes = sample(level);
    const Status whole = read(bytes);
    EXPECT_TRUE(whole.has_value()) << whole.error().message();
  }
  EXPECT_LT(sample(3).size(), sample(0).size());
}

TEST(Sections, ThatAreLongAreSplitAndJoined) {
  const Bytes content = numbers(kPieceBytes);  // four pieces
  Bytes bytes;
  const auto sink = memory_sink(bytes);
  auto writer = *Writer::begin(*sink, 0);
  ASSERT_TRUE(writer.contents(kData, content).has_value());
  ASSERT_TRUE(writer.end().has_value());
  const auto source = memory_source(bytes);
  auto reader = *Reader::begin(*source);
  EXPECT_EQ(*reader.contents(kData, content.size()), content);
  EXPECT_EQ(reader.sections(), 4U);
  ASSERT_TRUE(reader.end().has_value());
  const auto again = memory_source(bytes);
  auto bounded = *Reader::begin(*again);
  EXPECT_EQ(bounded.contents(kData, content.size() - 1).error().code(), Outcome::kCorrupt);
}

TEST(Sections, ThatCouldBeMuchShorterAreStoredAsTheyAre) {
  Bytes bytes;
  const auto sink = memory_sink(bytes);
  auto writer = *Writer::begin(*sink, 3);
  const Bytes zeros(100'000);
  ASSERT_TRUE(writer.section(kData, zeros).has_value());
  EXPECT_GT(writer.bytes(), zeros.size());
  ASSERT_TRUE(writer.end().has_value());
  const auto source = memory_source(bytes);
  auto reader = *Reader::begin(*source);
  EXPECT_EQ(*reader.contents(kData, zeros.size()), zeros);
}

TEST(Sections, AreRefusedAtEveryCut) {
  for (const int level : {0, 3}) {
    const Bytes bytes = sample(level);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      const Status known = read(cut);
      ASSERT_FALSE(known.has_value()) << length;
      ASSERT_EQ(known.error().code(), Outcome::kCorrupt) << length;
      std::size_t at = 0;
      const ReadBytes drops = in_drops(cut, at, 7);
      const auto unknown = callback_source(drops);
      ASSERT_FALSE(read(*unknown).has_value()) << length;
    }
  }
}

TEST(Sections, AreRefusedWithEveryBitFlipped) {
  for (const int level : {0, 3}) {
    const Bytes bytes = sample(level);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        Bytes damaged = bytes;
        damaged[at] ^= static_cast<std::byte>(1U << bit);
        const Status status = read(damaged);
        ASSERT_FALSE(status.has_value()) << at << ":" << bit;
        const Outcome expected = at == kBeginningBytes - 1 ? Outcome::kUnsupported : Outcome::kCorrupt;
        ASSERT_EQ(status.error().code(), expected) << at << ":" << bit;
      }
    }
  }
}

TEST(Sections, AreRefusedInAnotherOrderAndWithBytesBehindTheEnd) {
  Bytes bytes = sample(0);
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(read(bytes).has_value());
  bytes.pop_back();
  // The two sections of data change places: each agrees with its own checksum but for its place.
  const std::size_t first = kBeginningBytes + kHeadBytes + 400;
  const std::size_t second = first + kHeadBytes + 240;
  std::rotate(bytes.begin() + static_cast<std::ptrdiff_t>(first),
              bytes.begin() + static_cast<std::ptrdiff_t>(second),
              bytes.begin() + static_cast<std::ptrdiff_t>(second + kHeadBytes));
  EXPECT_EQ(read(bytes).error().code(), Outcome::kCorrupt);
}

// A head whose checksum is right claims what cannot be.
TEST(Sections, WithHostileSizesAreRefusedBeforeMemoryIsTaken) {
  struct Claim {
    std::uint32_t flags;
    std::uint64_t stored;
    std::uint64_t size;
  };
  const std::uint64_t huge = std::uint64_t{1} << 62;
  for (const Claim& claim :
       {Claim{0, huge, huge}, Claim{0, UINT64_MAX, UINT64_MAX}, Claim{1, 16, huge}, Claim{1, 1, 17},
        Claim{1, 16, 8}, Claim{0, 16, 17}, Claim{2, 16, 16}, Claim{0, kSectionBytesMax, kSectionBytesMax}}) {
    Bytes bytes = sample(0);
    bytes.resize(kBeginningBytes);
    Bytes head;
    base::ByteWriter head_out(head);
    head_out.number(static_cast<std::uint32_t>(kText));
    head_out.number(claim.flags);
    head_out.number(claim.stored);
    head_out.number(claim.size);
    head_out.number(std::uint64_t{0});
    head_out.number(std::uint64_t{XXH3_64bits_withSeed(head.data(), head.size(), 0)});
    bytes.insert(bytes.end(), head.begin(), head.end());
    bytes.resize(bytes.size() + 16);
    const Status known = read(bytes);
    ASSERT_FALSE(known.has_value());
    EXPECT_TRUE(known.error().code() == Outcome::kCorrupt || claim.flags == 2) << known.error().message();
    std::size_t at = 0;
    const ReadBytes drops = in_drops(bytes, at, 64);
    const auto unknown = callback_source(drops);
    EXPECT_FALSE(read(*unknown).has_value());
  }
}

TEST(Sections, TellOfAFutureVersion) {
  Bytes bytes = sample(0);
  bytes[kBeginningBytes - 1] = std::byte{kVersion + 1};
  const Status status = read(bytes);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), Outcome::kUnsupported);
  EXPECT_EQ(status.error().numbers().wanted, kVersion + 1U);
}

TEST(Sections, AreWrittenAtKnownLevelsAlone) {
  Bytes bytes;
  const auto sink = memory_sink(bytes);
  EXPECT_EQ(Writer::begin(*sink, -1).error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(Writer::begin(*sink, 20).error().code(), Outcome::kInvalidArgument);
}

TEST(Sinks, EndWithTheFirstWriteThatFailsAndUndoWhatTheyCan) {
  Bytes kept = {std::byte{7}};
  {
    const auto sink = memory_sink(kept);
    ASSERT_TRUE(sink->write(numbers(10)).has_value());
  }
  EXPECT_TRUE(kept.empty()) << "without commit nothing is there";
  const std::size_t writes = 8;  // of a sample
  for (std::size_t n = 0; n < writes; ++n) {
    std::size_t seen = 0;
    const WriteBytes write = [&](std::span<const std::byte>) -> Status {
      if (seen++ == n) return fail(Outcome::kIo, "full");
      return {};
    };
    const auto sink = callback_sink(write);
    auto writer = Writer::begin(*sink, 0);
    Status status = writer ? writer->contents(kText, numbers(100)) : Status(fail(writer.error()));
    if (status) status = writer->section(kData, numbers(60));
    if (status) status = writer->end();
    ASSERT_EQ(status.has_value(), seen <= n) << n;
    EXPECT_TRUE(status.has_value() || status.error().code() == Outcome::kIo);
  }
}

// Memory that is there is written over, whether it is too much or too little.
TEST(Sinks, ToMemoryHoldWhatWasWrittenAndNothingOfBefore) {
  const Bytes fresh = sample(0);
  for (const std::size_t before :
       {std::size_t{0}, std::size_t{1}, fresh.size() / 2, fresh.size(), fresh.size() + 99}) {
    Bytes bytes(before, std::byte{0x5A});
    const auto sink = memory_sink(bytes);
    ASSERT_TRUE(sink->expect(before / 2).has_value());
    for (std::size_t at = 0; at < fresh.size(); at += 100)
      ASSERT_TRUE(sink->write(std::span(fresh).subspan(at, std::min<std::size_t>(100, fresh.size() - at))));
    ASSERT_TRUE(sink->commit().has_value());
    EXPECT_EQ(bytes, fresh) << before;
  }
  Bytes bytes;
  EXPECT_EQ(memory_sink(bytes)->expect(UINT64_MAX).error().code(), Outcome::kOutOfMemory);
}

// What lies in memory already is read where it lies.
TEST(Sources, InMemoryGiveTheirBytesWithoutACopy) {
  const Bytes bytes = sample(0);
  const auto source = memory_source(bytes);
  const auto taken = source->take(10);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->data(), bytes.data());
  EXPECT_EQ(source->left(), bytes.size() - 10);
  EXPECT_FALSE(source->take(bytes.size()).has_value());
  EXPECT_EQ(source->left(), bytes.size() - 10) << "what cannot be taken is left";
  std::size_t at = 0;
  const ReadBytes drops = in_drops(bytes, at, 7);
  EXPECT_FALSE(callback_source(drops)->take(1).has_value());
}

TEST(Sinks, SurviveFunctionsThatThrowOrLie) {
  const WriteBytes throws = [](std::span<const std::byte>) -> Status { throw 1; };
  EXPECT_EQ(callback_sink(throws)->write({}).error().code(), Outcome::kIo);
  const ReadBytes also = [](std::span<std::byte>) -> Result<std::size_t> { throw 1; };
  std::array<std::byte, 4> four{};
  EXPECT_EQ(callback_source(also)->read(four).error().code(), Outcome::kIo);
  const ReadBytes lies = [](std::span<std::byte> into) -> Result<std::size_t> { return into.size() + 1; };
  EXPECT_EQ(callback_source(lies)->read(four).error().code(), Outcome::kIo);
}

}  // namespace
}  // namespace kvasir::archive
