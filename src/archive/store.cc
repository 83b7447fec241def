#include "archive/store.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "base/try.h"
#include "base/utf8.h"
#include "base/within_memory.h"

namespace kvasir::archive {
namespace {

constexpr std::string_view kSuffix = ".kvar";

std::unexpected<Error> no_such(const std::string& name) {
  return fail(Outcome::kNotFound, "there is no archive '" + base::printable(name, kNameBytesMax) + "'");
}

class DirectoryStore final : public Store {
 public:
  DirectoryStore(base::FileSystem& files, std::string directory)
      : files_(&files), directory_(std::move(directory)) {}

  [[nodiscard]] Result<std::unique_ptr<Sink>> write(const std::string& name) override {
    return base::within_memory([&]() -> Result<std::unique_ptr<Sink>> {
      KVASIR_ASSIGN(const std::string path, path_of(name));
      return file_sink(*files_, path);
    });
  }

  [[nodiscard]] Result<std::unique_ptr<Source>> read(const std::string& name) override {
    return base::within_memory([&]() -> Result<std::unique_ptr<Source>> {
      KVASIR_ASSIGN(const std::string path, path_of(name));
      auto file = files_->open_here(path);
      if (!file && file.error().code() == Outcome::kNotFound) return no_such(name);
      if (!file) return fail(std::move(file).error());
      return file_source(*std::move(file));
    });
  }

  [[nodiscard]] Result<std::vector<std::string>> list() override {
    return base::within_memory([&]() -> Result<std::vector<std::string>> {
      KVASIR_ASSIGN(const std::vector<std::string> files, files_->list(directory_));
      std::vector<std::string> names;
      for (const std::string& file : files) {
        if (!file.ends_with(kSuffix) || files_->is_link(directory_ + "/" + file)) continue;
        const std::string name = file.substr(0, file.size() - kSuffix.size());
        if (check_name(name)) names.push_back(name);
      }
      std::ranges::sort(names);
      return names;
    });
  }

  [[nodiscard]] Status remove(const std::string& name) override {
    return base::within_memory([&]() -> Status {
      KVASIR_ASSIGN(const std::string path, path_of(name));
      Status removed = files_->remove(path);
      if (!removed && removed.error().code() == Outcome::kNotFound) return no_such(name);
      return removed;
    });
  }

 private:
  [[nodiscard]] Result<std::string> path_of(const std::string& name) const {
    KVASIR_TRY(check_name(name));
    std::string path = directory_ + "/" + name + std::string(kSuffix);
    if (files_->is_link(path))
      return fail(Outcome::kInvalidArgument, "the archive '" + name + "' is a symbolic link");
    return path;
  }

  base::FileSystem* files_;
  std::string directory_;
};

// What is read stays as it was, whatever takes its place: it is shared.
class MemoryStore final : public Store {
 public:
  [[nodiscard]] Result<std::unique_ptr<Sink>> write(const std::string& name) override {
    return base::within_memory([&]() -> Result<std::unique_ptr<Sink>> {
      KVASIR_TRY(check_name(name));
      return std::make_unique<Writing>(archives_, name);
    });
  }

  [[nodiscard]] Result<std::unique_ptr<Source>> read(const std::string& name) override {
    return base::within_memory([&]() -> Result<std::unique_ptr<Source>> {
      KVASIR_TRY(check_name(name));
      const base::Lock lock(archives_->mutex);
      const auto found = archives_->all.find(name);
      if (found == archives_->all.end()) return no_such(name);
      return std::make_unique<Reading>(found->second);
    });
  }

  [[nodiscard]] Result<std::vector<std::string>> list() override {
    return base::within_memory([&]() -> Result<std::vector<std::string>> {
      const base::Lock lock(archives_->mutex);
      std::vector<std::string> names;
      for (const auto& [name, bytes] : archives_->all) names.push_back(name);
      return names;
    });
  }

  [[nodiscard]] Status remove(const std::string& name) override {
    KVASIR_TRY(check_name(name));
    const base::Lock lock(archives_->mutex);
    if (archives_->all.erase(name) == 0) return no_such(name);
    return {};
  }

 private:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  struct Archives {
    base::Mutex mutex;
    std::map<std::string, Bytes> all KVASIR_GUARDED_BY(mutex);
  };

  class Writing final : public Sink {
   public:
    Writing(std::shared_ptr<Archives> archives, std::string name)
        : archives_(std::move(archives)), name_(std::move(name)), sink_(memory_sink(bytes_)) {}
    [[nodiscard]] Status expect(std::uint64_t bytes) override { return sink_->expect(bytes); }
    [[nodiscard]] Status write(std::span<const std::byte> bytes) override { return sink_->write(bytes); }
    [[nodiscard]] Status commit() override {
      return base::within_memory([&]() -> Status {
        KVASIR_TRY(sink_->commit());
        auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes_));
        const base::Lock lock(archives_->mutex);
        archives_->all[name_] = std::move(bytes);
        return {};
      });
    }

   private:
    std::shared_ptr<Archives> archives_;
    std::string name_;
    std::vector<std::byte> bytes_;
    std::unique_ptr<Sink> sink_;
  };

  class Reading final : public Source {
   public:
    explicit Reading(Bytes bytes) : bytes_(std::move(bytes)), source_(memory_source(*bytes_)) {}
    [[nodiscard]] std::optional<std::uint64_t> left() const noexcept override { return source_->left(); }
    [[nodiscard]] Status read(std::span<std::byte> into) override { return source_->read(into); }
    [[nodiscard]] std::optional<std::span<const std::byte>> take(std::size_t count) override {
      return source_->take(count);
    }

   private:
    Bytes bytes_;
    std::unique_ptr<Source> source_;
  };

  std::shared_ptr<Archives> archives_ = std::make_shared<Archives>();
};

std::unexpected<Error> bad_name(std::string_view name, const char* what) {
  return fail(Outcome::kInvalidArgument,
              "an archive cannot be called '" + base::printable(name, kNameBytesMax) + "': " + what,
              {.wanted = name.size(), .limit = kNameBytesMax});
}

}  // namespace

Status check_name(std::string_view name) {
  return base::within_memory([&]() -> Status {
    if (name.empty()) return bad_name(name, "the name is empty");
    if (name.size() > kNameBytesMax) return bad_name(name.substr(0, kNameBytesMax), "the name is too long");
    const auto edge = [](char letter) { return letter == '.' || letter == ' '; };
    if (edge(name.front()) || edge(name.back()))
      return bad_name(name, "it begins or ends with a dot or a space");
    for (const char letter : name) {
      const auto value = static_cast<unsigned char>(letter);
      if (value < 0x20 || value == 0x7F) return bad_name(name, "it has a control character");
      if (letter == '/' || letter == '\\' || letter == ':') return bad_name(name, "it looks like a path");
    }
    if (!base::is_utf8(name)) return bad_name(name, "it is no UTF-8");
    return {};
  });
}

std::unique_ptr<Store> directory_store(base::FileSystem& files, std::string directory) {
  return std::make_unique<DirectoryStore>(files, std::move(directory));
}

std::unique_ptr<Store> memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace kvasir::archive
