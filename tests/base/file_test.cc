#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/try.h"
#include "support/faults.h"
#include "support/paths.h"
#include "system_faults.h"

namespace kvasir::base {
namespace {

namespace fs = std::filesystem;
using test::ShortTransfers;
using test::SystemCall;
using test::SystemFault;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kEnough = std::uint64_t{1} << 20;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Status replace(FileSystem& files, const std::string& path, const Bytes& content) {
  KVASIR_ASSIGN(const std::unique_ptr<ReplacingFile> file, files.replace(path));
  KVASIR_TRY(file->write(content));
  return file->commit();
}

class FileTest : public testing::Test {
 protected:
  const std::string folder_ = test::scratch_directory();
  const std::string path_ = folder_ + "/file";
  FileSystem& files_ = system_files();

  [[nodiscard]] Bytes content() const { return read_whole(system_files(), path_, kEnough).value(); }
  [[nodiscard]] std::size_t files_in_folder() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  void expect_the_old_target_left(std::initializer_list<SystemCall> calls) const;
};

template <class T>
void expect_refused(const Result<T>& result, Outcome code, const std::string& part) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code) << result.error().message();
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
}

TEST_F(FileTest, ReadsAnyPartAndNothingBeyondTheEnd) {
  ASSERT_TRUE(replace(files_, path_, bytes_of("0123456789")));
  const auto system = files_.open_read(path_);
  ASSERT_TRUE(system);
  const std::unique_ptr<ReadFile> memory = memory_file(bytes_of("0123456789"));
  for (const ReadFile* file : {system->get(), memory.get()}) {
    EXPECT_EQ(file->size(), 10U);
    for (std::size_t from = 0; from <= 12; ++from) {
      for (std::size_t count = 0; count <= 12; ++count) {
        Bytes part(count);
        const Status read = file->read_at(from, part);
        if (from + count <= 10) {
          ASSERT_TRUE(read);
          EXPECT_EQ(part, bytes_of(std::string("0123456789").substr(from, count)));
        } else {
          ASSERT_FALSE(read);
          EXPECT_EQ(read.error().code(), Outcome::kCorrupt);
          EXPECT_EQ(read.error().numbers().wanted, from + count);
          EXPECT_EQ(read.error().numbers().available, 10U);
        }
      }
    }
    Bytes part(2);
    expect_refused(file->read_at(std::numeric_limits<std::uint64_t>::max(), part), Outcome::kCorrupt,
                   "ends at byte 10");
  }
}

TEST_F(FileTest, OpensRegularFilesOnly) {
  expect_refused(files_.open_read(path_), Outcome::kNotFound, path_);
  expect_refused(files_.open_read(folder_), Outcome::kInvalidArgument, "not a regular file");
  expect_refused(files_.open_read("/dev/zero"), Outcome::kInvalidArgument, "not a regular file");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_refused(files_.open_read(path_), Outcome::kInvalidArgument, "not a regular file");
  expect_refused(files_.open_read(path_ + "/below"), Outcome::kNotFound, "below");
}

TEST_F(FileTest, ShowsAFileThatShrankAsCorrupt) {
  ASSERT_TRUE(replace(files_, path_, bytes_of("0123456789")));
  const auto file = files_.open_read(path_);
  ASSERT_TRUE(file);
  ASSERT_EQ(::truncate(path_.c_str(), 4), 0);
  Bytes all(10);
  expect_refused((*file)->read_at(0, all), Outcome::kCorrupt, "ends at byte 4");
}

TEST_F(FileTest, ServesManyThreadsFromOneFile) {  // B2
  Bytes content(100000);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7 >> 3);
  ASSERT_TRUE(replace(files_, path_, content));
  const auto file = files_.open_read(path_);
  ASSERT_TRUE(file);
  std::array<bool, 4> right{};
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < right.size(); ++t) {
      threads.emplace_back([&, t] {
        Bytes part(1000);
        bool all = true;
        for (std::size_t from = t * 13; from + part.size() <= content.size(); from += 997) {
          all = all && (*file)->read_at(from, part).has_value() &&
                std::equal(part.begin(), part.end(), content.begin() + static_cast<std::ptrdiff_t>(from));
        }
        right[t] = all;
      });
    }
  }
  for (const bool thread_right : right) EXPECT_TRUE(thread_right);
}

TEST_F(FileTest, ReplacesAFileAtOnce) {  // B1
  ASSERT_TRUE(replace(files_, path_, bytes_of("old")));
  {
    auto file = files_.replace(path_);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(bytes_of("new c")));
    ASSERT_TRUE((*file)->write(bytes_of("ontent")));
    ASSERT_TRUE((*file)->write_at(0, bytes_of("NEW")));
    EXPECT_EQ(content(), bytes_of("old")) << "nothing shows before commit";
    ASSERT_TRUE((*file)->commit());
    EXPECT_EQ(content(), bytes_of("NEW content"));
  }
  EXPECT_EQ(content(), bytes_of("NEW content"));
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(FileTest, AReaderOfTheOldFileKeepsItsBytes) {
  ASSERT_TRUE(replace(files_, path_, bytes_of("old")));
  const auto reader = files_.open_read(path_);
  ASSERT_TRUE(reader);
  ASSERT_TRUE(replace(files_, path_, bytes_of("new")));
  Bytes bytes(3);
  ASSERT_TRUE((*reader)->read_at(0, bytes));
  EXPECT_EQ(bytes, bytes_of("old"));
}

TEST_F(FileTest, OverwritesOnlyWhatWasWritten) {
  auto file = files_.replace(path_);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(bytes_of("0123")));
  expect_refused((*file)->write_at(3, bytes_of("xy")), Outcome::kInvalidArgument, "beyond");
  expect_refused((*file)->write_at(5, {}), Outcome::kInvalidArgument, "beyond");
  ASSERT_TRUE((*file)->write_at(2, bytes_of("xy")));
  ASSERT_TRUE((*file)->write(bytes_of("4")));
  ASSERT_TRUE((*file)->commit());
  EXPECT_EQ(content(), bytes_of("01xy4"));
}

TEST_F(FileTest, RemovesWhatWasWrittenWhenItIsDropped) {
  {
    auto file = files_.replace(path_);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(bytes_of("lost")));
  }
  EXPECT_EQ(files_in_folder(), 0U);
  const test::NoNamelessFiles others;
  {
    auto file = files_.replace(path_);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(bytes_of("lost")));
    EXPECT_EQ(files_in_folder(), 1U);
  }
  EXPECT_EQ(files_in_folder(), 0U);
}

TEST_F(FileTest, KeepsTwoReplacementsOfOneTargetApart) {
  auto first = files_.replace(path_);
  auto second = files_.replace(path_);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE((*first)->write(bytes_of("first")));
  ASSERT_TRUE((*second)->write(bytes_of("second")));
  ASSERT_TRUE((*second)->commit());
  EXPECT_EQ(content(), bytes_of("second"));
  ASSERT_TRUE((*first)->commit());
  EXPECT_EQ(content(), bytes_of("first"));
}

TEST_F(FileTest, RefusesATargetThatCannotBe) {
  expect_refused(files_.replace(folder_ + "/no/such/folder"), Outcome::kNotFound, "no/such/folder");
  expect_refused(files_.replace(folder_), Outcome::kInvalidArgument, "not a regular file");
  EXPECT_TRUE(fs::is_directory(folder_));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(files_.replace(pipe), Outcome::kInvalidArgument, "not a regular file");
  EXPECT_TRUE(fs::is_fifo(pipe));
  const std::string nowhere = folder_ + "/nowhere";
  fs::create_symlink(folder_ + "/missing", nowhere);
  expect_refused(files_.replace(nowhere), Outcome::kNotFound, "cannot follow the link");
}

TEST_F(FileTest, ReplacesWhatALinkLeadsToAndKeepsWhoMayReadIt) {
  const std::string real = folder_ + "/real";
  const std::string link = folder_ + "/link";
  std::ofstream(real) << "old";
  fs::permissions(real, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(real, link);
  auto file = files_.replace(link);
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_TRUE((*file)->write(bytes_of("new")));
  ASSERT_TRUE((*file)->commit());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::file_size(real), 3U);
  std::ifstream in(real);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "new");
  EXPECT_EQ(fs::status(real).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

void FileTest::expect_the_old_target_left(std::initializer_list<SystemCall> calls) const {
  for (const SystemCall call : calls) {
    for (std::uint64_t n = 0;; ++n) {
      ASSERT_TRUE(replace(files_, path_, bytes_of("old")));
      Status replaced;
      bool fired = false;
      {
        const SystemFault fault(call, n, EIO);
        replaced = replace(files_, path_, bytes_of("new"));
        fired = fault.fired();
      }
      EXPECT_EQ(files_in_folder(), 1U) << "something was left beside the target";
      if (!fired) {
        EXPECT_TRUE(replaced);
        EXPECT_EQ(content(), bytes_of("new"));
        EXPECT_GT(n, 0U) << "the call is never made";
        break;
      }
      ASSERT_FALSE(replaced) << "call " << n;
      EXPECT_EQ(replaced.error().code(), Outcome::kIo);
      // After the rename only the folder is opened and synced: the new file is there, and the message says
      // so.
      const bool late = n == 1 && (call == SystemCall::kOpen || call == SystemCall::kSync);
      EXPECT_EQ(content(), bytes_of(late ? "new" : "old"));
      EXPECT_EQ(replaced.error().message().find("is replaced, but") != std::string::npos, late);
    }
  }
}

// Every system call of a replacement in turn, and what is left of it; on file systems of both kinds.
TEST_F(FileTest, LeavesTheOldTargetWhateverCallFails) {
  expect_the_old_target_left(
      {SystemCall::kOpen, SystemCall::kWrite, SystemCall::kSync, SystemCall::kLink, SystemCall::kRename});
  const test::NoNamelessFiles others;
  expect_the_old_target_left({SystemCall::kOpen, SystemCall::kWrite, SystemCall::kSync, SystemCall::kRename});
}

// A process that is killed in the middle of it leaves nothing beside the target.
TEST_F(FileTest, HasNoNameWhileItIsWritten) {
  const auto file = files_.replace(path_);
  ASSERT_TRUE(file && (*file)->write(bytes_of("half")));
  EXPECT_EQ(files_in_folder(), 0U);
}

TEST_F(FileTest, TakesAFolderThatCannotBeSyncedAsItIs) {
  const SystemFault fault(SystemCall::kSync, 1, EINVAL);
  EXPECT_TRUE(replace(files_, path_, bytes_of("new")));
  EXPECT_TRUE(fault.fired());
}

TEST_F(FileTest, ShowsARefusedReadAsIo) {
  ASSERT_TRUE(replace(files_, path_, bytes_of("0123456789")));
  const auto file = files_.open_read(path_);
  ASSERT_TRUE(file);
  Bytes all(10);
  {
    const SystemFault fault(SystemCall::kRead, 0, EIO);
    expect_refused((*file)->read_at(0, all), Outcome::kIo, path_);
  }
  EXPECT_TRUE((*file)->read_at(0, all));
  const SystemFault fault(SystemCall::kOpen, 0, EACCES);
  expect_refused(files_.open_read(path_), Outcome::kIo, path_);
}

TEST_F(FileTest, GoesOnAfterInterruptionsAndShortTransfers) {
  const Bytes content = bytes_of("a text that no single transfer of three bytes can move");
  const ShortTransfers short_transfers(3);
  ASSERT_TRUE(replace(files_, path_, content));
  const auto file = files_.open_read(path_);
  ASSERT_TRUE(file);
  Bytes read(content.size());
  ASSERT_TRUE((*file)->read_at(0, read));
  EXPECT_EQ(read, content);
}

TEST_F(FileTest, TellsWhatExistsAndRemovesIt) {
  EXPECT_FALSE(files_.exists(path_));
  expect_refused(files_.remove(path_), Outcome::kNotFound, path_);
  ASSERT_TRUE(replace(files_, path_, {}));
  EXPECT_TRUE(files_.exists(path_));
  EXPECT_TRUE(files_.exists(folder_));
  ASSERT_TRUE(files_.remove(path_));
  EXPECT_FALSE(files_.exists(path_));
  ASSERT_EQ(::symlink("nowhere", path_.c_str()), 0);
  EXPECT_TRUE(files_.exists(path_)) << "a link is a file of some kind";
  expect_refused(files_.remove(folder_), Outcome::kIo, folder_);
}

TEST_F(FileTest, ReadsAWholeFileWithinALimit) {
  ASSERT_TRUE(replace(files_, path_, bytes_of("0123456789")));
  EXPECT_EQ(read_whole(files_, path_, 10).value(), bytes_of("0123456789"));
  const auto refused = read_whole(files_, path_, 9);
  expect_refused(refused, Outcome::kNoSpace, "10 bytes, more than the 9");
  EXPECT_EQ(refused.error().numbers().wanted, 10U);
  EXPECT_EQ(refused.error().numbers().limit, 9U);
  ASSERT_TRUE(replace(files_, path_, {}));
  EXPECT_TRUE(read_whole(files_, path_, 0).value().empty());
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends_[0]);
    close_writer();
  }
  [[nodiscard]] int reader() const { return ends_[0]; }
  void write(const Bytes& bytes) const {
    EXPECT_EQ(::write(ends_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(ReadDescriptor, ReadsUntilTheEndWithinALimit) {
  const Bytes content(200000, std::byte{7});
  for (const bool fits : {true, false}) {
    Pipe pipe;
    std::jthread writer([&] {
      // In pieces that a pipe holds, so that a reader that stops early does not block the writer for ever.
      for (std::size_t i = 0; i < content.size() && fits; i += 1000) pipe.write(Bytes(1000, std::byte{7}));
      if (!fits) pipe.write(Bytes(1000, std::byte{7}));
      pipe.close_writer();
    });
    const auto read = read_descriptor(pipe.reader(), fits ? content.size() : 999);
    if (fits) {
      EXPECT_EQ(read.value(), content);
    } else {
      expect_refused(read, Outcome::kNoSpace, "longer than 999");
    }
  }
}

// What others print to a stream that the process lacks must not go into a file.
TEST_F(FileTest, NoFileTakesTheNumberOfAStandardStream) {
  ASSERT_TRUE(replace(files_, path_, bytes_of("old")));
  const int kept = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
  ASSERT_GE(kept, 0);
  ::close(STDIN_FILENO);
  const auto reader = files_.open_read(path_);
  const bool free_while_read = ::fcntl(STDIN_FILENO, F_GETFD) < 0;
  auto writer = files_.replace(path_);
  const bool free_while_written = ::fcntl(STDIN_FILENO, F_GETFD) < 0;
  Status replaced;
  if (writer) replaced = (*writer)->write(bytes_of("new"));
  if (writer && replaced) replaced = (*writer)->commit();
  ::dup2(kept, STDIN_FILENO);
  ::close(kept);
  EXPECT_TRUE(free_while_read);
  EXPECT_TRUE(free_while_written);
  ASSERT_TRUE(reader && writer && replaced);
  EXPECT_EQ(content(), bytes_of("new"));
}

extern "C" void interrupt_nothing(int /*signal*/) {}

TEST(ReadDescriptor, AsksWhetherToStopWhenASignalBreaksTheWaitingOff) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = interrupt_nothing;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  Pipe pipe;
  std::atomic<bool> done = false;
  const pthread_t reader = ::pthread_self();
  std::jthread sender([&] {  // again and again: the first may come before the waiting
    while (!done) {
      ::pthread_kill(reader, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  int asked = 0;
  const auto read = read_descriptor(pipe.reader(), 10, [&] { return ++asked == 3; });
  done = true;
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  expect_refused(read, Outcome::kCancelled, "interrupted");
  EXPECT_EQ(asked, 3);
}

TEST(ReadDescriptor, ShowsADescriptorThatIsNoneAsIo) {
  expect_refused(read_descriptor(-1, 10), Outcome::kIo, "cannot read");
}

// The wrappers that other rooms' tests inject faults with.
TEST(Faults, HitTheNthOperationOfTheirKind) {
  using test::Fault;
  using test::FileOperation;
  Fault once(FileOperation::kRead, 1);
  EXPECT_FALSE(once.hits(FileOperation::kRead));
  EXPECT_FALSE(once.hits(FileOperation::kWrite));
  EXPECT_FALSE(once.fired());
  EXPECT_TRUE(once.hits(FileOperation::kRead));
  EXPECT_FALSE(once.hits(FileOperation::kRead));
  EXPECT_TRUE(once.fired());
  EXPECT_EQ(once.seen(), 3U);
  Fault lasting(FileOperation::kAny, 1, Fault::Lasting::kFromThenOn);
  EXPECT_FALSE(lasting.hits(FileOperation::kOpen));
  EXPECT_FALSE(lasting.hits(FileOperation::kCommitLate));
  EXPECT_TRUE(lasting.hits(FileOperation::kRemove));
  EXPECT_TRUE(lasting.hits(FileOperation::kWrite));
}

TEST(Faults, ACommitThatFailsEarlyLeavesTheOldFileAndLateTheNew) {
  const std::string path = test::scratch_directory() + "/file";
  for (const auto operation : {test::FileOperation::kCommit, test::FileOperation::kCommitLate}) {
    ASSERT_TRUE(replace(system_files(), path, bytes_of("old")));
    test::FaultyFileSystem files(system_files(), std::make_shared<test::Fault>(operation, 0));
    expect_refused(replace(files, path, bytes_of("new")), Outcome::kIo, "injected");
    const bool late = operation == test::FileOperation::kCommitLate;
    EXPECT_EQ(read_whole(system_files(), path, kEnough).value(), bytes_of(late ? "new" : "old"));
  }
}

}  // namespace
}  // namespace kvasir::base
