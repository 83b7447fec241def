#include "support/faults.h"

#include <utility>

#include "base/try.h"

namespace kvasir::test {
namespace {

std::unexpected<Error> injected(const char* what) {
  return fail(Outcome::kIo, std::string("injected fault: ") + what);
}

}  // namespace

bool Fault::hits(FileOperation operation) {
  const bool counts = operation == operation_ ||
                      (operation_ == FileOperation::kAny && operation != FileOperation::kCommitLate);
  if (!counts) return false;
  const std::uint64_t number = seen_++;
  const bool hit = lasting_ == Lasting::kOnce ? number == n_ : number >= n_;
  if (hit) fired_ = true;
  return hit;
}

FaultyReadFile::FaultyReadFile(std::unique_ptr<base::ReadFile> inner, std::shared_ptr<Fault> fault)
    : inner_(std::move(inner)), fault_(std::move(fault)) {
  ++alive_;
}

FaultyReadFile::~FaultyReadFile() {
  --alive_;
}

Status FaultyReadFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  if (fault_->hits(FileOperation::kRead)) return injected("read");
  return inner_->read_at(offset, into);
}

FaultyReplacingFile::FaultyReplacingFile(std::unique_ptr<base::ReplacingFile> inner,
                                         std::shared_ptr<Fault> fault)
    : inner_(std::move(inner)), fault_(std::move(fault)) {
  ++alive_;
}

FaultyReplacingFile::~FaultyReplacingFile() {
  --alive_;
}

Status FaultyReplacingFile::write(std::span<const std::byte> bytes) {
  if (fault_->hits(FileOperation::kWrite)) return injected("write");
  return inner_->write(bytes);
}

Status FaultyReplacingFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (fault_->hits(FileOperation::kWrite)) return injected("write");
  return inner_->write_at(offset, bytes);
}

Status FaultyReplacingFile::commit() {
  if (fault_->hits(FileOperation::kCommit)) return injected("commit");
  KVASIR_TRY(inner_->commit());
  if (fault_->hits(FileOperation::kCommitLate)) return injected("sync of the directory");
  return {};
}

Result<std::unique_ptr<base::ReadFile>> FaultyFileSystem::open_read(const std::string& path) {
  if (fault_->hits(FileOperation::kOpen)) return injected("open");
  KVASIR_ASSIGN(std::unique_ptr<base::ReadFile> file, inner_.open_read(path));
  return std::make_unique<FaultyReadFile>(std::move(file), fault_);
}

Result<std::unique_ptr<base::ReadFile>> FaultyFileSystem::open_here(const std::string& path) {
  if (fault_->hits(FileOperation::kOpen)) return injected("open");
  KVASIR_ASSIGN(std::unique_ptr<base::ReadFile> file, inner_.open_here(path));
  return std::make_unique<FaultyReadFile>(std::move(file), fault_);
}

Result<std::vector<std::string>> FaultyFileSystem::list(const std::string& directory) {
  if (fault_->hits(FileOperation::kOpen)) return injected("list");
  return inner_.list(directory);
}

Result<std::unique_ptr<base::ReplacingFile>> FaultyFileSystem::replace(const std::string& path) {
  if (fault_->hits(FileOperation::kReplace)) return injected("replace");
  KVASIR_ASSIGN(std::unique_ptr<base::ReplacingFile> file, inner_.replace(path));
  return std::make_unique<FaultyReplacingFile>(std::move(file), fault_);
}

Status FaultyFileSystem::remove(const std::string& path) {
  if (fault_->hits(FileOperation::kRemove)) return injected("remove");
  return inner_.remove(path);
}

Result<std::unique_ptr<base::ScratchFile>> FaultyFileSystem::scratch(const std::string& directory) {
  if (fault_->hits(FileOperation::kScratch)) return injected("scratch");
  KVASIR_ASSIGN(std::unique_ptr<base::ScratchFile> file, inner_.scratch(directory));
  return std::make_unique<FaultyScratchFile>(std::move(file), fault_);
}

Status FaultyScratchFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (fault_->hits(FileOperation::kScratchWrite)) return injected("write");
  return inner_->write_at(offset, bytes);
}

Status FaultyScratchFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  if (fault_->hits(FileOperation::kScratchRead)) return injected("read");
  return inner_->read_at(offset, into);
}

}  // namespace kvasir::test
