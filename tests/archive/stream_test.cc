// Files that are written and read beside whoever makes and uses their bytes.

#include "archive/stream.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/try.h"
#include "support/faults.h"
#include "support/paths.h"

namespace kvasir::archive {
namespace {

using Bytes = std::vector<std::byte>;
using test::Fault;
using test::FaultyFileSystem;
using test::FileOperation;

constexpr std::size_t kPiece = std::size_t{1} << 20;  // what a file is written and read by

Bytes some_bytes(std::size_t count) {
  Bytes bytes(count);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

Bytes content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// In portions of 1, 2, 4, ... bytes.
Status write(base::FileSystem& files, const std::string& path, std::span<const std::byte> bytes) {
  KVASIR_ASSIGN(const auto sink, file_sink(files, path));
  for (std::size_t some = 1; !bytes.empty(); some *= 2) {
    some = std::min(some, bytes.size());
    KVASIR_TRY(sink->write(bytes.first(some)));
    bytes = bytes.subspan(some);
  }
  return sink->commit();
}

Result<Bytes> read(base::FileSystem& files, const std::string& path) {
  KVASIR_ASSIGN(auto file, files.open_read(path));
  const auto source = file_source(std::move(file));
  Bytes bytes(source->left().value_or(0));
  std::size_t at = 0;
  for (std::size_t some = 1; at < bytes.size(); some *= 2) {
    some = std::min(some, bytes.size() - at);
    KVASIR_TRY(source->read(std::span(bytes).subspan(at, some)));
    at += some;
    EXPECT_EQ(source->left(), bytes.size() - at);
  }
  std::byte none{};
  EXPECT_EQ(source->read({&none, 1}).error().code(), Outcome::kCorrupt);
  return bytes;
}

TEST(FileStreams, KeepEveryByteOfFilesOfAnySize) {
  const std::string path = test::scratch_directory() + "/file";
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece,
                                 3 * kPiece, 5 * kPiece + 17}) {
    const Bytes bytes = some_bytes(size);
    ASSERT_TRUE(write(base::system_files(), path, bytes).has_value()) << size;
    ASSERT_TRUE(content_of(path) == bytes) << size;
    const auto again = read(base::system_files(), path);
    ASSERT_TRUE(again.has_value()) << size;
    EXPECT_TRUE(*again == bytes) << size;
  }
}

TEST(FileStreams, LeaveTheOldFileWhicheverOperationFails) {
  const std::string path = test::scratch_directory() + "/file";
  const Bytes old = some_bytes(100);
  ASSERT_TRUE(write(base::system_files(), path, old).has_value());
  const Bytes bytes = some_bytes(4 * kPiece + 5);
  std::uint64_t failed = 0;
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<Fault>(FileOperation::kAny, n);
    FaultyFileSystem files(base::system_files(), fault);
    const Status written = write(files, path, bytes);
    EXPECT_EQ(written.has_value(), !fault->fired()) << n;
    if (!fault->fired()) break;
    ++failed;
    EXPECT_EQ(written.error().code(), Outcome::kIo) << n;
    ASSERT_TRUE(content_of(path) == old) << n;
  }
  EXPECT_EQ(failed, 1 + 5 + 1);  // its opening, a write for each piece, its commit
  EXPECT_TRUE(content_of(path) == bytes);
}

TEST(FileStreams, SayWhicheverReadFails) {
  const std::string path = test::scratch_directory() + "/file";
  ASSERT_TRUE(write(base::system_files(), path, some_bytes(4 * kPiece + 5)).has_value());
  std::uint64_t failed = 0;
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<Fault>(FileOperation::kAny, n);
    FaultyFileSystem files(base::system_files(), fault);
    const auto bytes = read(files, path);
    EXPECT_EQ(bytes.has_value(), !fault->fired()) << n;
    if (!fault->fired()) break;
    ++failed;
    EXPECT_EQ(bytes.error().code(), Outcome::kIo) << n;
  }
  EXPECT_EQ(failed, 1 + 5);
}

TEST(FileStreams, MayBeLeftInTheMiddle) {
  const std::string path = test::scratch_directory() + "/file";
  const Bytes bytes = some_bytes(3 * kPiece);
  {
    const auto sink = file_sink(base::system_files(), path);
    ASSERT_TRUE((*sink)->write(bytes).has_value());
  }
  EXPECT_FALSE(base::system_files().exists(path));
  ASSERT_TRUE(write(base::system_files(), path, bytes).has_value());
  auto file = base::system_files().open_read(path);
  ASSERT_TRUE(file.has_value());
  const auto source = file_source(*std::move(file));
  std::byte first{};
  ASSERT_TRUE(source->read({&first, 1}).has_value());
  EXPECT_EQ(first, bytes[0]);
}

}  // namespace
}  // namespace kvasir::archive
