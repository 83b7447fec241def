#include "cli/output.h"

#include <unistd.h>

#include <span>

#include "cli/interrupt.h"
#include "cli/streams.h"

namespace kvasir::cli {
namespace {

// Standard output as a file that is only ever appended to.
class StandardOutput final : public base::ReplacingFile {
 public:
  [[nodiscard]] Status write(std::span<const std::byte> bytes) override {
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    return print({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  [[nodiscard]] Status write_at(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) override {
    return fail(Outcome::kUnsupported, "standard output cannot be written anew; give a file's name");
  }
  [[nodiscard]] Status commit() override { return {}; }
};

}  // namespace

Result<std::unique_ptr<base::ReplacingFile>> open_output(base::FileSystem& files, const std::string& path) {
  if (path != "-") {
    auto file = files.replace(path);
    if (!file) return fail(file.error().within("the output"));
    return file;
  }
  if (::isatty(STDOUT_FILENO) == 1) {
    return fail(Outcome::kInvalidArgument,
                "a model is not for a terminal; redirect standard output, or name a file");
  }
  return std::make_unique<StandardOutput>();
}

}  // namespace kvasir::cli
