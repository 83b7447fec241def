#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "cli/interrupt.h"
#include "cli/streams.h"

namespace kvasir::cli {
namespace {

// What can only be appended to.
class StreamOutput final : public base::ReplacingFile {
 public:
  StreamOutput(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  StreamOutput(const StreamOutput&) = delete;
  StreamOutput& operator=(const StreamOutput&) = delete;
  ~StreamOutput() override {
    if (descriptor_ != STDOUT_FILENO) ::close(descriptor_);
  }

  [[nodiscard]] Status write(std::span<const std::byte> bytes) override {
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    return print_to(descriptor_, name_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  [[nodiscard]] Status write_at(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) override {
    return fail(Outcome::kUnsupported, name_ + " cannot be written anew; give a file's name");
  }
  [[nodiscard]] Status commit() override { return {}; }

 private:
  int descriptor_;
  std::string name_;
};

Result<std::unique_ptr<base::ReplacingFile>> open_stream(const std::string& path) {
  const bool standard = path == "-";
  const std::string name = standard ? "standard output" : "'" + path + "'";
  const int descriptor = standard ? STDOUT_FILENO : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0 && interrupted()) return fail(Outcome::kCancelled, "interrupted");
  if (descriptor < 0) {
    return fail(Outcome::kIo,
                "cannot write to " + name + ": " + std::error_code(errno, std::generic_category()).message());
  }
  auto output = std::make_unique<StreamOutput>(descriptor, name);
  if (::isatty(descriptor) != 1) return output;
  return fail(Outcome::kInvalidArgument,
              "what is written is not for a terminal; redirect standard output, or name a file");
}

}  // namespace

Result<std::unique_ptr<base::ReplacingFile>> open_output(base::FileSystem& files, const std::string& path) {
  if (path == "-" || is_stream(path)) return open_stream(path);
  auto file = files.replace(path);
  if (!file) return fail(file.error().within("the output"));
  return file;
}

}  // namespace kvasir::cli
