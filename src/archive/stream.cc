#include "archive/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "parallel/beside.h"
#include "simd/cell_moves.h"

namespace kvasir::archive {
namespace {

std::unexpected<Error> ends_early(std::uint64_t wanted, std::uint64_t left) {
  return fail(Outcome::kCorrupt,
              "the archive ends where " + std::to_string(wanted) + " more bytes are wanted and " +
                  std::to_string(left) + " are left",
              {.wanted = wanted, .available = left});
}

// Of files so much is written or read at once.
constexpr std::size_t kFilePieceBytes = std::size_t{1} << 20;

// The disk writes some while more is made; what is smaller needs no thread.
class FileSink final : public Sink {
 public:
  explicit FileSink(std::unique_ptr<base::ReplacingFile> file) : file_(std::move(file)) {}

  [[nodiscard]] Status write(std::span<const std::byte> bytes) override {
    return base::within_memory([&]() -> Status {
      while (!bytes.empty()) {
        if (made_.size() == kFilePieceBytes) KVASIR_TRY(hand_over());
        const std::size_t some = std::min(bytes.size(), kFilePieceBytes - made_.size());
        made_.insert(made_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(some));
        bytes = bytes.subspan(some);
      }
      return {};
    });
  }
  [[nodiscard]] Status commit() override {
    KVASIR_TRY(disk_.wait());
    KVASIR_TRY(file_->write(made_));
    return file_->commit();
  }

 private:
  Status hand_over() {
    KVASIR_TRY(disk_.wait());
    made_.swap(written_);
    made_.clear();
    return disk_.begin([this] { return file_->write(written_); });
  }

  std::unique_ptr<base::ReplacingFile> file_;
  std::vector<std::byte> made_;
  std::vector<std::byte> written_;
  parallel::Beside disk_;  // ends before what it writes
};

// Memory that is there is written past the caches, since nobody reads it soon; memory that is new is not
// cleared before.
class MemorySink final : public Sink {
 public:
  explicit MemorySink(std::vector<std::byte>& bytes) : bytes_(&bytes) {}
  ~MemorySink() override {
    if (!committed_ && at_ > 0) bytes_->clear();
  }
  MemorySink(const MemorySink&) = delete;
  MemorySink& operator=(const MemorySink&) = delete;

  [[nodiscard]] Status expect(std::uint64_t bytes) override {
    return base::within_memory([&]() -> Status {
      if (bytes > bytes_->max_size()) return fail(Outcome::kOutOfMemory, "out of memory", {.wanted = bytes});
      bytes_->reserve(bytes);
      return {};
    });
  }
  [[nodiscard]] Status write(std::span<const std::byte> bytes) override {
    return base::within_memory([&]() -> Status {
      const std::size_t there = std::min(bytes.size(), bytes_->size() - at_);
      if (there > 0) {
        const simd::BytesMove move{.from = bytes.data(), .to = bytes_->data() + at_, .bytes = there};
        simd::move_bytes({&move, 1}, {});
      }
      bytes_->insert(bytes_->end(), bytes.begin() + static_cast<std::ptrdiff_t>(there), bytes.end());
      at_ += bytes.size();
      return {};
    });
  }
  [[nodiscard]] Status commit() override {
    simd::end_moves();
    bytes_->resize(at_);
    committed_ = true;
    return {};
  }

 private:
  std::vector<std::byte>* bytes_;
  std::size_t at_ = 0;
  bool committed_ = false;
};

class CallbackSink final : public Sink {
 public:
  explicit CallbackSink(const WriteBytes& write) : write_(&write) {}
  [[nodiscard]] Status write(std::span<const std::byte> bytes) override {
    try {
      return (*write_)(bytes);
    } catch (...) {
      return fail(Outcome::kIo, "the function that takes the archive has thrown");
    }
  }
  [[nodiscard]] Status commit() override { return {}; }

 private:
  const WriteBytes* write_;
};

// The disk reads some while what it read before is used.
class FileSource final : public Source {
 public:
  explicit FileSource(std::unique_ptr<base::ReadFile> file) : file_(std::move(file)) {}

  [[nodiscard]] std::optional<std::uint64_t> left() const noexcept override { return file_->size() - at_; }
  [[nodiscard]] Status read(std::span<std::byte> into) override {
    return base::within_memory([&]() -> Status {
      if (into.size() > file_->size() - at_) return ends_early(into.size(), file_->size() - at_);
      while (!into.empty()) {
        if (at_ == end_) KVASIR_TRY(go_on());
        const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end_ - at_));
        std::copy_n(here_.end() - static_cast<std::ptrdiff_t>(end_ - at_), some, into.begin());
        into = into.subspan(some);
        at_ += some;
      }
      return {};
    });
  }

 private:
  // What comes next is here, and what follows is asked for.
  Status go_on() {
    if (coming_.empty()) {
      here_.resize(piece_at(at_));
      KVASIR_TRY(file_->read_at(at_, here_));
    } else {
      KVASIR_TRY(disk_.wait());
      here_.swap(coming_);
    }
    end_ = at_ + here_.size();
    coming_.resize(piece_at(end_));
    if (coming_.empty()) return {};
    return disk_.begin([this, from = end_] { return file_->read_at(from, coming_); });
  }
  [[nodiscard]] std::size_t piece_at(std::uint64_t offset) const noexcept {
    return static_cast<std::size_t>(std::min<std::uint64_t>(kFilePieceBytes, file_->size() - offset));
  }

  std::unique_ptr<base::ReadFile> file_;
  std::uint64_t at_ = 0;           // the file's bytes before are delivered
  std::uint64_t end_ = 0;          // those from here on are not in here_
  std::vector<std::byte> here_;    // ends there
  std::vector<std::byte> coming_;  // follows
  parallel::Beside disk_;          // ends before what it reads into
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] std::optional<std::uint64_t> left() const noexcept override { return bytes_.size(); }
  [[nodiscard]] Status read(std::span<std::byte> into) override {
    if (into.size() > bytes_.size()) return ends_early(into.size(), bytes_.size());
    if (!into.empty()) std::memcpy(into.data(), bytes_.data(), into.size());
    bytes_ = bytes_.subspan(into.size());
    return {};
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> take(std::size_t count) override {
    if (count > bytes_.size()) return std::nullopt;  // read() says how many there are
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
};

class CallbackSource final : public Source {
 public:
  explicit CallbackSource(const ReadBytes& read) : read_(&read) {}
  [[nodiscard]] std::optional<std::uint64_t> left() const noexcept override { return std::nullopt; }
  [[nodiscard]] Status read(std::span<std::byte> into) override {
    while (!into.empty()) {
      KVASIR_ASSIGN(const std::size_t some, ask(into));
      if (some > into.size()) {
        return fail(Outcome::kIo,
                    "the function that reads the archive answers " + std::to_string(some) + " bytes where " +
                        std::to_string(into.size()) + " were asked for",
                    {.wanted = some, .limit = into.size()});
      }
      if (some == 0) return ends_early(into.size(), 0);
      into = into.subspan(some);
    }
    return {};
  }

 private:
  [[nodiscard]] Result<std::size_t> ask(std::span<std::byte> into) {
    try {
      return (*read_)(into);
    } catch (...) {
      return fail(Outcome::kIo, "the function that reads the archive has thrown");
    }
  }

  const ReadBytes* read_;
};

}  // namespace

Result<std::unique_ptr<Sink>> file_sink(base::FileSystem& files, const std::string& path) {
  KVASIR_ASSIGN(auto file, files.replace(path));
  return std::make_unique<FileSink>(std::move(file));
}

std::unique_ptr<Sink> memory_sink(std::vector<std::byte>& bytes) {
  return std::make_unique<MemorySink>(bytes);
}

std::unique_ptr<Sink> callback_sink(const WriteBytes& write) {
  return std::make_unique<CallbackSink>(write);
}

std::unique_ptr<Source> file_source(std::unique_ptr<base::ReadFile> file) {
  return std::make_unique<FileSource>(std::move(file));
}

std::unique_ptr<Source> memory_source(std::span<const std::byte> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

std::unique_ptr<Source> callback_source(const ReadBytes& read) {
  return std::make_unique<CallbackSource>(read);
}

}  // namespace kvasir::archive
