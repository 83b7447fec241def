// Saves and loads to which everything is refused, one thing after the other, and saves that are killed.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/api_run.h"
#include "api/parts.h"
#include "archive/stream.h"
#include "support/allocations.h"
#include "support/faults.h"
#include "support/paths.h"

namespace kvasir {
namespace {

using test::digest_of;
using test::Fault;
using test::FaultyFileSystem;
using test::FileOperation;
using test::must;
using test::options_of;
using test::outcome_of;
using test::some_tokens;

struct Scene {
  Executor executor = test::make_executor(options_of(512, 64));
  Conversation talk = must(executor.conversation());

  Scene() {
    must(talk.prompt(some_tokens(40, 1)));
    must(talk.wait());
    must(talk.prompt(some_tokens(3, 2)));
  }
  [[nodiscard]] engine::Executor& behind() const { return *api::Inside::core(executor)->executor; }
};

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(ArchiveFaults, LeaveTheOldFileWhicheverOperationFails) {
  const Scene scene;
  const std::string folder = test::scratch_directory();
  const std::string path = folder + "/a.kvar";
  must(scene.talk.save(path));
  const auto old = bytes_of(path);
  const std::uint64_t before = digest_of(scene.executor);
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<Fault>(FileOperation::kAny, n);
    FaultyFileSystem files(base::system_files(), fault);
    Result<ArchiveReport> saved = [&]() -> Result<ArchiveReport> {
      const auto sink = archive::file_sink(files, path);
      if (!sink) return fail(sink.error());
      return scene.behind().save({}, **sink, {.compression = 1});
    }();
    EXPECT_EQ(saved.has_value(), !fault->fired());
    EXPECT_EQ(digest_of(scene.executor), before);
    if (!fault->fired()) break;
    EXPECT_EQ(saved.error().code(), Outcome::kIo);
    ASSERT_EQ(bytes_of(path), old) << "operation " << n;
    ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  }
  EXPECT_NE(bytes_of(path), old);
}

TEST(ArchiveFaults, LeaveEverythingAloneWhicheverReadFails) {
  Scene scene;
  const std::string path = test::scratch_directory() + "/a.kvar";
  must(scene.talk.save(path));
  const std::uint64_t before = digest_of(scene.executor);
  for (std::uint64_t n = 0;; ++n) {
    const auto fault = std::make_shared<Fault>(FileOperation::kAny, n);
    FaultyFileSystem files(base::system_files(), fault);
    const Result<ArchiveReport> loaded = [&]() -> Result<ArchiveReport> {
      auto file = files.open_read(path);
      if (!file) return fail(file.error());
      const auto source = archive::file_source(*std::move(file));
      return scene.behind().load(*source, {.into = scene.talk.id()}, {});
    }();
    if (!fault->fired()) {
      EXPECT_TRUE(loaded.has_value());
      break;
    }
    ASSERT_FALSE(loaded.has_value()) << n;
    EXPECT_EQ(loaded.error().code(), Outcome::kIo);
    ASSERT_EQ(digest_of(scene.executor), before) << n;
  }
}

// Refuses the n-th allocation of a call, for every n until it succeeds.
template <class Call>
void expect_unharmed(const Executor& executor, const Call& call) {
  const std::uint64_t before = digest_of(executor);
  for (std::uint64_t n = 0;; ++n) {
    bool fired = false;
    Outcome outcome = Outcome::kDone;
    {
      const test::AllocationFault fault(n);
      outcome = call();
      fired = fault.fired();
    }
    if (!fired) {
      EXPECT_EQ(outcome, Outcome::kDone);
      EXPECT_GT(n, 20U);
      return;
    }
    // What a library takes from malloc is not refused; what is, is not always needed.
    if (outcome == Outcome::kDone) continue;
    ASSERT_EQ(outcome, Outcome::kOutOfMemory) << "allocation " << n;
    ASSERT_EQ(digest_of(executor), before) << "allocation " << n;
  }
}

TEST(ArchiveFaults, OfMemoryLeaveASaveUndone) {
  const Scene scene;
  expect_unharmed(scene.executor, [&] { return outcome_of(scene.talk.save_bytes()); });
  expect_unharmed(scene.executor, [&] { return outcome_of(scene.executor.save_bytes({.compression = 1})); });
}

TEST(ArchiveFaults, OfMemoryLeaveALoadUndone) {
  Scene scene;
  const auto archive = must(scene.executor.save_bytes());
  // Each load that succeeds is closed again.
  expect_unharmed(scene.executor, [&] {
    const auto loaded = scene.executor.load(archive);
    return outcome_of(loaded);
  });
  Conversation target = must(scene.executor.conversation());
  const auto one = must(scene.talk.save_bytes());
  for (std::uint64_t n = 0;; ++n) {
    const std::uint64_t before = digest_of(scene.executor);
    bool fired = false;
    Outcome outcome = Outcome::kDone;
    {
      const test::AllocationFault fault(n);
      outcome = outcome_of(target.load(one));
      fired = fault.fired();
    }
    if (!fired) break;
    if (outcome == Outcome::kDone) {
      must(target.clear());
      continue;
    }
    ASSERT_EQ(outcome, Outcome::kOutOfMemory) << n;
    ASSERT_EQ(digest_of(scene.executor), before) << n;
  }
  EXPECT_EQ(target.length(), 40U);
}

// In a process of its own: saves the one and the other to one path, over and over.
[[noreturn]] void save_until_killed(const Conversation& one, const Conversation& other,
                                    const std::string& path) {
  while (true) {
    static_cast<void>(one.save(path, {.compression = 1}));
    static_cast<void>(other.save(path));
  }
}

TEST(ArchiveFaults, OfAKilledProcessLeaveTheOldArchiveOrTheNewOneWhole) {
  Executor executor = test::make_executor(options_of(1024, 64));
  Conversation one = must(executor.conversation());
  Conversation other = must(executor.conversation());
  must(one.prompt(some_tokens(100, 1)));
  must(other.prompt(some_tokens(150, 2)));
  must(executor.run_until_idle());
  const std::string path = test::scratch_directory() + "/a.kvar";
  // Long enough for several saves, however busy the machine is.
  const auto begin = std::chrono::steady_clock::now();
  must(one.save(path, {.compression = 1}));
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  const auto longest = std::max<std::uint64_t>(6000, 10 * static_cast<std::uint64_t>(took.count()));
  Conversation back = must(executor.conversation());
  std::mt19937_64 random(17);
  int ones = 0;
  int others = 0;
  for (int round = 0; round < 500; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0 && round % 2 == 0) save_until_killed(one, other, path);
    if (child == 0) save_until_killed(other, one, path);
    std::this_thread::sleep_for(std::chrono::microseconds(200 + random() % longest));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto loaded = back.load(path);
    ASSERT_TRUE(loaded.has_value()) << round << ": " << loaded.error().message();
    ASSERT_TRUE(back.length() == 100 || back.length() == 150) << back.length();
    ++(back.length() == 100 ? ones : others);
  }
  EXPECT_GT(ones, 0);
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace kvasir
