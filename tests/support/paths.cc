#include "support/paths.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

namespace kvasir::test {
namespace {

namespace fs = std::filesystem;

// Directories to remove when the process ends.
class Scratch {
 public:
  ~Scratch() {
    std::error_code ignored;
    for (const std::string& path : paths_) fs::remove_all(path, ignored);
  }
  std::string make() {
    std::string name = (fs::temp_directory_path() / "kvasir-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    const std::lock_guard lock(mutex_);
    paths_.push_back(name);
    return name;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> paths_;
};

}  // namespace

std::string data_path(const std::string& name) {
  return std::string(KVASIR_SOURCE_DIR "/tests/data/") + name;
}

std::optional<std::string> reference_path(const std::string& name) {
  const fs::path path = fs::path(KVASIR_SOURCE_DIR) / "../shared/reference" / name;
  if (!fs::exists(path)) return std::nullopt;
  return path.string();
}

std::string scratch_directory() {
  static Scratch scratch;
  return scratch.make();
}

}  // namespace kvasir::test
