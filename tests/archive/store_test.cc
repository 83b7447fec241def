// Archives by name: in a directory, in memory, and never outside.

#include "archive/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/faults.h"
#include "support/paths.h"

namespace kvasir::archive {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Status put(Store& store, const std::string& name, std::string_view text) {
  const auto sink = store.write(name);
  if (!sink) return fail(sink.error());
  if (Status written = (*sink)->write(bytes_of(text)); !written) return written;
  return (*sink)->commit();
}

Result<std::string> get(Store& store, const std::string& name) {
  const auto source = store.read(name);
  if (!source) return fail(source.error());
  std::string text((*source)->left().value_or(0), '\0');
  if (Status read = (*source)->read(std::as_writable_bytes(std::span(text))); !read)
    return fail(read.error());
  return text;
}

// Every store, by what it is called.
std::vector<std::unique_ptr<Store>> stores() {
  std::vector<std::unique_ptr<Store>> all;
  all.push_back(directory_store(base::system_files(), test::scratch_directory()));
  all.push_back(memory_store());
  return all;
}

TEST(Stores, KeepArchivesByName) {
  for (const auto& store : stores()) {
    EXPECT_TRUE(store->list()->empty());
    EXPECT_EQ(get(*store, "one").error().code(), Outcome::kNotFound);
    ASSERT_TRUE(put(*store, "one", "first").has_value());
    ASSERT_TRUE(put(*store, "Ärger & Ruhe", "second").has_value());
    EXPECT_EQ(*get(*store, "one"), "first");
    ASSERT_TRUE(put(*store, "one", "third").has_value());
    EXPECT_EQ(*get(*store, "one"), "third");
    EXPECT_EQ(*store->list(), (std::vector<std::string>{"one", "Ärger & Ruhe"}));
    ASSERT_TRUE(store->remove("one").has_value());
    EXPECT_EQ(store->remove("one").error().code(), Outcome::kNotFound);
    EXPECT_EQ(*store->list(), std::vector<std::string>{"Ärger & Ruhe"});
  }
}

TEST(Stores, LetAReaderFinishWhatIsReplacedMeanwhile) {
  for (const auto& store : stores()) {
    ASSERT_TRUE(put(*store, "one", "first").has_value());
    const auto source = *store->read("one");
    ASSERT_TRUE(put(*store, "one", "other").has_value());
    ASSERT_TRUE(store->remove("one").has_value());
    std::string text(5, '\0');
    ASSERT_TRUE(source->read(std::as_writable_bytes(std::span(text))).has_value());
    EXPECT_EQ(text, "first");
  }
}

TEST(Stores, DropWhatIsNotCommitted) {
  for (const auto& store : stores()) {
    ASSERT_TRUE(put(*store, "one", "first").has_value());
    {
      const auto sink = *store->write("one");
      ASSERT_TRUE(sink->write(bytes_of("half")).has_value());
    }
    EXPECT_EQ(*get(*store, "one"), "first");
    EXPECT_EQ(store->list()->size(), 1U);
  }
}

// K15
TEST(Stores, RefuseEveryNameThatCouldLeadElsewhere) {
  const std::vector<std::string> names = {"",
                                          ".",
                                          "..",
                                          "...",
                                          "a/b",
                                          "a\\b",
                                          "/etc/passwd",
                                          std::string("a\0b", 3),
                                          std::string(10'000, 'a'),
                                          " a",
                                          "a ",
                                          "a.",
                                          ".a",
                                          "a\nb",
                                          "C:a",
                                          "\xFF",
                                          "../a",
                                          "\x7F"};
  for (const auto& store : stores()) {
    for (const std::string& name : names) {
      EXPECT_EQ(put(*store, name, "x").error().code(), Outcome::kInvalidArgument) << name;
      EXPECT_EQ(get(*store, name).error().code(), Outcome::kInvalidArgument) << name;
      EXPECT_EQ(store->remove(name).error().code(), Outcome::kInvalidArgument) << name;
    }
    EXPECT_TRUE(store->list()->empty());
    EXPECT_TRUE(put(*store, std::string(kNameBytesMax, 'a'), "x").has_value());
  }
}

// K15
TEST(Stores, FollowNoSymbolicLinkOutOfTheirDirectory) {
  const std::string outside = test::scratch_directory() + "/secret.kvar";
  std::ofstream(outside) << "secret";
  const std::string inside = test::scratch_directory();
  ASSERT_EQ(::symlink(outside.c_str(), (inside + "/link.kvar").c_str()), 0);
  const auto store = directory_store(base::system_files(), inside);
  EXPECT_EQ(get(*store, "link").error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(put(*store, "link", "x").error().code(), Outcome::kInvalidArgument);
  EXPECT_EQ(store->remove("link").error().code(), Outcome::kInvalidArgument);
  EXPECT_TRUE(store->list()->empty());
  std::string content;
  std::ifstream(outside) >> content;
  EXPECT_EQ(content, "secret");
  EXPECT_EQ(base::system_files().open_here(inside + "/link.kvar").error().code(), Outcome::kInvalidArgument);
  EXPECT_TRUE(base::system_files().open_read(inside + "/link.kvar").has_value()) << "where that is meant";
}

TEST(Stores, SayThatTheirDirectoryIsGone) {
  const std::string folder = test::scratch_directory();
  const auto store = directory_store(base::system_files(), folder + "/none");
  EXPECT_EQ(store->list().error().code(), Outcome::kNotFound);
  EXPECT_EQ(put(*store, "one", "x").error().code(), Outcome::kNotFound);
  EXPECT_EQ(get(*store, "one").error().code(), Outcome::kNotFound);
  std::ofstream(folder + "/file") << "x";
  EXPECT_EQ(base::system_files().list(folder + "/file").error().code(), Outcome::kInvalidArgument);
}

TEST(Stores, KeepTheOldArchiveWhateverFails) {
  const std::string folder = test::scratch_directory();
  ASSERT_TRUE(put(*directory_store(base::system_files(), folder), "one", "first").has_value());
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<test::Fault>(test::FileOperation::kAny, n);
    test::FaultyFileSystem files(base::system_files(), fault);
    const auto store = directory_store(files, folder);
    const Status status = put(*store, "one", "other");
    EXPECT_EQ(status.has_value(), !fault->fired());
    const auto now = get(*directory_store(base::system_files(), folder), "one");
    ASSERT_TRUE(now.has_value());
    EXPECT_EQ(*now, fault->fired() ? "first" : "other");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
        << "nothing is left beside it";
    if (!fault->fired()) break;
  }
  for (const auto operation : {test::FileOperation::kOpen, test::FileOperation::kRead}) {
    const auto fault = std::make_shared<test::Fault>(operation, 0);
    test::FaultyFileSystem files(base::system_files(), fault);
    EXPECT_EQ(get(*directory_store(files, folder), "one").error().code(), Outcome::kIo);
  }
}

}  // namespace
}  // namespace kvasir::archive
