// Files whose n-th operation fails, for tests that try every failure a call can meet:
//
//   for (std::uint64_t n = 0;; ++n) {
//     const auto fault = std::make_shared<Fault>(FileOperation::kRead, n);
//     FaultyFileSystem files(base::system_files(), fault);
//     const auto result = call(files);
//     if (!fault->fired()) { EXPECT_TRUE(result); break; }
//     EXPECT_EQ(result.error().code(), Outcome::kIo);
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "kvasir/result.h"

namespace kvasir::test {

enum class FileOperation : std::uint8_t {
  kOpen,
  kRead,
  kReplace,     // the start of a replacement
  kWrite,       // write and write_at
  kCommit,      // sync or rename refused: the target is as before
  kCommitLate,  // only the sync of the directory refused: the new file is in place, and kIo
  kRemove,
  kScratch,  // the opening of a scratch file, and each use of one
  kScratchWrite,
  kScratchRead,
  kAny,  // each of these but kCommitLate
};

// Which operation fails: the n-th of its kind, from 0, counted over all files that share the Fault; once, or
// that and each one after it. Any thread.
class Fault {
 public:
  enum class Lasting : std::uint8_t { kOnce, kFromThenOn };

  Fault(FileOperation operation, std::uint64_t n, Lasting lasting = Lasting::kOnce)
      : n_(n), operation_(operation), lasting_(lasting) {}

  // Whether the fault was met.
  [[nodiscard]] bool fired() const { return fired_; }

  // How many operations of its kind were asked for.
  [[nodiscard]] std::uint64_t seen() const { return seen_; }

  // Counts an operation and says whether it fails.
  [[nodiscard]] bool hits(FileOperation operation);

 private:
  std::uint64_t n_;
  FileOperation operation_;
  Lasting lasting_;
  std::atomic<std::uint64_t> seen_ = 0;
  std::atomic<bool> fired_ = false;
};

// Passes everything on to `inner` but what the fault hits, which answers kIo. How many instances of each
// exist is counted, so that tests can see that none is left.
class FaultyReadFile final : public base::ReadFile {
 public:
  FaultyReadFile(std::unique_ptr<base::ReadFile> inner, std::shared_ptr<Fault> fault);
  FaultyReadFile(const FaultyReadFile&) = delete;
  FaultyReadFile& operator=(const FaultyReadFile&) = delete;
  ~FaultyReadFile() override;

  [[nodiscard]] std::uint64_t size() const noexcept override { return inner_->size(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override;

  [[nodiscard]] static int alive() { return alive_; }

 private:
  static inline std::atomic<int> alive_ = 0;
  std::unique_ptr<base::ReadFile> inner_;
  std::shared_ptr<Fault> fault_;
};

class FaultyReplacingFile final : public base::ReplacingFile {
 public:
  FaultyReplacingFile(std::unique_ptr<base::ReplacingFile> inner, std::shared_ptr<Fault> fault);
  FaultyReplacingFile(const FaultyReplacingFile&) = delete;
  FaultyReplacingFile& operator=(const FaultyReplacingFile&) = delete;
  ~FaultyReplacingFile() override;

  [[nodiscard]] Status write(std::span<const std::byte> bytes) override;
  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override;
  [[nodiscard]] Status commit() override;

  [[nodiscard]] static int alive() { return alive_; }

 private:
  static inline std::atomic<int> alive_ = 0;
  std::unique_ptr<base::ReplacingFile> inner_;
  std::shared_ptr<Fault> fault_;
};

class FaultyScratchFile final : public base::ScratchFile {
 public:
  FaultyScratchFile(std::unique_ptr<base::ScratchFile> inner, std::shared_ptr<Fault> fault)
      : inner_(std::move(inner)), fault_(std::move(fault)) {}

  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override;
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override;

 private:
  std::unique_ptr<base::ScratchFile> inner_;
  std::shared_ptr<Fault> fault_;
};

// `inner` outlives it; the files it opens live on without it.
class FaultyFileSystem : public base::FileSystem {
 public:
  FaultyFileSystem(base::FileSystem& inner, std::shared_ptr<Fault> fault)
      : inner_(inner), fault_(std::move(fault)) {}

  [[nodiscard]] Result<std::unique_ptr<base::ReadFile>> open_read(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<base::ReadFile>> open_here(const std::string& path) override;
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory) override;
  [[nodiscard]] Result<std::unique_ptr<base::ReplacingFile>> replace(const std::string& path) override;
  [[nodiscard]] Result<std::unique_ptr<base::ScratchFile>> scratch(const std::string& directory) override;
  [[nodiscard]] bool exists(const std::string& path) override { return inner_.exists(path); }
  [[nodiscard]] bool is_link(const std::string& path) override { return inner_.is_link(path); }
  [[nodiscard]] Status remove(const std::string& path) override;

 private:
  base::FileSystem& inner_;
  std::shared_ptr<Fault> fault_;
};

}  // namespace kvasir::test
