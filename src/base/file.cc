#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/try.h"

namespace kvasir::base {
namespace {

std::string system_text(int code) {
  return std::error_code(code, std::generic_category()).message();
}

std::unexpected<Error> system_error(const std::string& what, const std::string& path, int code) {
  const bool absent = code == ENOENT || code == ENOTDIR;
  return fail(absent ? Outcome::kNotFound : Outcome::kIo, what + " '" + path + "': " + system_text(code));
}

std::unexpected<Error> cut_short(std::uint64_t wanted_end, std::uint64_t size) {
  return fail(Outcome::kCorrupt,
              "the file ends at byte " + std::to_string(size) + ", before byte " + std::to_string(wanted_end),
              {.wanted = wanted_end, .available = size, .limit = {}, .setting = {}});
}

// Whether [offset, offset + count) lies inside `size` bytes.
bool inside(std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
  return offset <= size && count <= size - offset;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    const int code = errno;  // of what went wrong before
    if (fd_ >= 0) ::close(fd_);
    errno = code;
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// ::open, but never with the number of a standard stream. On failure errno tells why.
Descriptor open_file(const std::string& path, int flags, mode_t mode = 0) {
  constexpr int kFirst = STDERR_FILENO + 1;
  Descriptor opened(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (opened.get() < 0 || opened.get() >= kFirst) return opened;
  return Descriptor(::fcntl(opened.get(), F_DUPFD_CLOEXEC, kFirst));
}

Status read_all(const Descriptor& file, const std::string& path, std::uint64_t offset,
                std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset));  // B2
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", path, errno);
    if (got == 0) return cut_short(offset + into.size(), offset);  // it shrank after it was opened
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Status write_all(const Descriptor& file, const std::string& path, std::uint64_t offset,
                 std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

class SystemReadFile final : public ReadFile {
 public:
  SystemReadFile(Descriptor fd, std::uint64_t size, std::string path)
      : fd_(std::move(fd)), size_(size), path_(std::move(path)) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }

  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    if (!inside(offset, into.size(), size_)) {
      return cut_short(checked_add<std::uint64_t>(offset, into.size()).value_or(UINT64_MAX), size_);
    }
    return read_all(fd_, path_, offset, into);
  }

 private:
  Descriptor fd_;
  std::uint64_t size_;
  std::string path_;
};

class MemoryReadFile final : public ReadFile {
 public:
  explicit MemoryReadFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    if (!inside(offset, into.size(), bytes_.size())) {
      return cut_short(checked_add<std::uint64_t>(offset, into.size()).value_or(UINT64_MAX), bytes_.size());
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }

 private:
  std::vector<std::byte> bytes_;
};

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

constexpr int kNamesTried = 100;
constexpr mode_t kPermissions = 07777;

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter = 0;
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
}

std::unexpected<Error> no_name(const std::string& path) {
  return fail(Outcome::kIo, "cannot create a temporary file beside '" + path + "'");
}

// Whether open() said that the file system knows no files without names.
bool knows_no_nameless_files(int error) {
  return error == EOPNOTSUPP || error == EISDIR || error == EINVAL;
}

class SystemReplacingFile final : public ReplacingFile {
 public:
  // An empty name beside the target is one that the file is yet to be given.
  SystemReplacingFile(Descriptor fd, std::string temporary, std::string target)
      : fd_(std::move(fd)), temporary_(std::move(temporary)), target_(std::move(target)) {}

  ~SystemReplacingFile() override {
    if (!committed_ && !temporary_.empty()) ::unlink(temporary_.c_str());
  }

  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

  [[nodiscard]] Status write(std::span<const std::byte> bytes) override {
    KVASIR_TRY(put(size_, bytes));
    size_ += bytes.size();
    return {};
  }

  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (!inside(offset, bytes.size(), size_)) {
      return fail(Outcome::kInvalidArgument, "write_at beyond what was written");
    }
    return put(offset, bytes);
  }

  [[nodiscard]] Status commit() override {
    // Whole on the disk before the name changes hands, at once, in one call (B1).
    if (::fsync(fd_.get()) != 0) return system_error("cannot write", target_, errno);
    KVASIR_TRY(take_name());
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
      return system_error("cannot replace", target_, errno);
    committed_ = true;
    const std::string directory = directory_of(target_);
    const Descriptor handle = open_file(directory, O_RDONLY | O_DIRECTORY);
    // Some file systems cannot sync a directory (EINVAL); the rename is in place all the same.
    if (handle.get() < 0 || (::fsync(handle.get()) != 0 && errno != EINVAL)) {
      return fail(Outcome::kIo,
                  "'" + target_ + "' is replaced, but its directory cannot be synced: " + system_text(errno));
    }
    return {};
  }

 private:
  Status put(std::uint64_t offset, std::span<const std::byte> bytes) {
    return write_all(fd_, target_, offset, bytes);
  }

  // A name can be renamed over another, a file without one only be linked where there is none.
  Status take_name() {
    const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
    for (int attempt = 0; temporary_.empty() && attempt < kNamesTried; ++attempt) {
      std::string name = temporary_name(target_);
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary_ = std::move(name);
      } else if (errno != EEXIST) {
        return system_error("cannot name what replaces", target_, errno);
      }
    }
    return temporary_.empty() ? Status(no_name(target_)) : Status();
  }

  Descriptor fd_;
  std::string temporary_;
  std::string target_;
  std::uint64_t size_ = 0;
  bool committed_ = false;
};

class SystemScratchFile final : public ScratchFile {
 public:
  SystemScratchFile(Descriptor fd, std::string directory)
      : fd_(std::move(fd)), directory_(std::move(directory)) {}

  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return write_all(fd_, directory_, offset, bytes);
  }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    return read_all(fd_, directory_, offset, into);
  }

 private:
  Descriptor fd_;
  std::string directory_;
};

// Where the file system knows no files without a name, one is made and loses it before a byte is written.
Result<std::unique_ptr<ScratchFile>> named_for_a_moment(const std::string& directory) {
  static std::atomic<unsigned> counter = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string name =
        directory + "/kvasir-scratch-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    Descriptor fd = open_file(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd.get() < 0 && errno == EEXIST) continue;
    if (fd.get() < 0) return system_error("cannot create a scratch file in", directory, errno);
    if (::unlink(name.c_str()) != 0) return system_error("cannot take the name from", name, errno);
    return std::make_unique<SystemScratchFile>(std::move(fd), directory);
  }
  return fail(Outcome::kIo, "cannot create a scratch file in '" + directory + "'");
}

class SystemFiles final : public FileSystem {
 public:
  [[nodiscard]] Result<std::unique_ptr<ReadFile>> open_read(const std::string& path) override {
    return open(path, 0);
  }

  [[nodiscard]] Result<std::unique_ptr<ReadFile>> open_here(const std::string& path) override {
    return open(path, O_NOFOLLOW);
  }

  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory) override {
    const std::unique_ptr<DIR, CloseDirectory> entries(::opendir(directory.c_str()));
    if (entries == nullptr && errno == ENOTDIR)
      return fail(Outcome::kInvalidArgument, "'" + directory + "' is not a directory");
    if (entries == nullptr) return system_error("cannot list", directory, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* const entry = ::readdir(entries.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) return system_error("cannot list", directory, errno);
    return names;
  }
  [[nodiscard]] Result<std::unique_ptr<ReplacingFile>> replace(const std::string& path) override {
    KVASIR_ASSIGN(const std::string target, behind_links(path));
    struct stat old{};
    const bool there = ::stat(target.c_str(), &old) == 0;
    if (there && !S_ISREG(old.st_mode))
      return fail(Outcome::kInvalidArgument, "'" + path + "' is not a regular file");
    KVASIR_ASSIGN(auto file, create_beside(target));
    if (there && ::fchmod(file->descriptor(), old.st_mode & kPermissions) != 0)
      return system_error("cannot create", path, errno);
    return file;
  }

  [[nodiscard]] Result<std::unique_ptr<ScratchFile>> scratch(const std::string& directory) override {
    Descriptor fd = open_file(directory, O_RDWR | O_TMPFILE, 0600);  // B3
    if (fd.get() >= 0) return std::make_unique<SystemScratchFile>(std::move(fd), directory);
    if (knows_no_nameless_files(errno)) return named_for_a_moment(directory);
    return system_error("cannot create a scratch file in", directory, errno);
  }

  [[nodiscard]] bool exists(const std::string& path) override {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0;
  }

  [[nodiscard]] bool is_link(const std::string& path) override {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
  }

  [[nodiscard]] Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return system_error("cannot remove", path, errno);
    return {};
  }

 private:
  // Where a link leads: the file itself takes the new bytes, and the link stays.
  [[nodiscard]] static Result<std::string> behind_links(const std::string& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    if (real == nullptr) return system_error("cannot follow the link", path, errno);
    return std::string(real.get());
  }

  // Without a name while it is written: whatever ends the process, nothing is left beside the target.
  [[nodiscard]] static Result<std::unique_ptr<SystemReplacingFile>> create_beside(const std::string& path) {
    Descriptor nameless = open_file(directory_of(path), O_RDWR | O_TMPFILE, 0666);
    if (nameless.get() >= 0) {
      return std::make_unique<SystemReplacingFile>(std::move(nameless), std::string(), path);
    }
    if (!knows_no_nameless_files(errno)) return system_error("cannot create", path, errno);
    for (int attempt = 0; attempt < kNamesTried; ++attempt) {
      std::string temporary = temporary_name(path);
      Descriptor fd = open_file(temporary, O_RDWR | O_CREAT | O_EXCL, 0666);
      if (fd.get() >= 0) {
        return std::make_unique<SystemReplacingFile>(std::move(fd), std::move(temporary), path);
      }
      if (errno != EEXIST) return system_error("cannot create", path, errno);
    }
    return no_name(path);
  }

  struct CloseDirectory {
    void operator()(DIR* entries) const noexcept { ::closedir(entries); }
  };

  [[nodiscard]] static Result<std::unique_ptr<ReadFile>> open(const std::string& path, int flags) {
    // Without O_NONBLOCK a named pipe would wait for a writer before its kind could be seen.
    Descriptor fd = open_file(path, O_RDONLY | O_NONBLOCK | flags);
    if (fd.get() < 0 && errno == ELOOP && flags != 0)
      return fail(Outcome::kInvalidArgument, "'" + path + "' is a symbolic link");
    if (fd.get() < 0) return system_error("cannot open", path, errno);
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return system_error("cannot open", path, errno);
    if (!S_ISREG(info.st_mode))
      return fail(Outcome::kInvalidArgument, "'" + path + "' is not a regular file");
    return std::make_unique<SystemReadFile>(std::move(fd), static_cast<std::uint64_t>(info.st_size), path);
  }
};

}  // namespace

RemoveAtEnd::~RemoveAtEnd() {
  try {
    static_cast<void>(files_->remove(path_));
  } catch (const std::bad_alloc&) {
    return;  // it stays
  }
}

FileSystem& system_files() {
  static SystemFiles files;
  return files;
}

void forget_cached(const std::string& path) noexcept {
  const Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  if (file.get() >= 0) static_cast<void>(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED));
}

std::unique_ptr<ReadFile> memory_file(std::vector<std::byte> bytes) {
  return std::make_unique<MemoryReadFile>(std::move(bytes));
}

Result<std::vector<std::byte>> read_descriptor(int descriptor, std::uint64_t limit,
                                               const std::function<bool()>& stop) {
  std::vector<std::byte> bytes;
  std::vector<std::byte> chunk(1 << 16);
  while (true) {
    const ssize_t got = ::read(descriptor, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) {
      if (stop && stop()) return fail(Outcome::kCancelled, "interrupted");
      continue;
    }
    if (got < 0) return fail(Outcome::kIo, "cannot read standard input: " + system_text(errno));
    if (got == 0) return bytes;
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
    if (bytes.size() > limit) {
      return fail(Outcome::kNoSpace, "the input is longer than " + std::to_string(limit) + " bytes",
                  {.wanted = {}, .available = {}, .limit = limit, .setting = {}});
    }
  }
}

Result<std::vector<std::byte>> read_whole(FileSystem& files, const std::string& path, std::uint64_t limit) {
  KVASIR_ASSIGN(const std::unique_ptr<ReadFile> file, files.open_read(path));
  if (file->size() > limit) {
    return fail(Outcome::kNoSpace,
                "'" + path + "' has " + std::to_string(file->size()) + " bytes, more than the " +
                    std::to_string(limit) + " taken",
                {.wanted = file->size(), .available = {}, .limit = limit, .setting = {}});
  }
  std::vector<std::byte> bytes(file->size());
  KVASIR_TRY(file->read_at(0, bytes));
  return bytes;
}

}  // namespace kvasir::base
