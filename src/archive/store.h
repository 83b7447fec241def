// Archives by name, in a directory or in memory.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "archive/stream.h"
#include "base/file.h"
#include "kvasir/result.h"

namespace kvasir::archive {

// Longest name, in bytes.
inline constexpr std::size_t kNameBytesMax = 200;

// Whether a name may be given to an archive: 1 to kNameBytesMax bytes of UTF-8 without control characters,
// '/', '\' and ':', that neither begin with a dot or a space nor end with one. kInvalidArgument says what is
// wrong.
[[nodiscard]] Status check_name(std::string_view name);

// Any thread. Every call that takes a name answers kInvalidArgument for one that check_name() refuses.
class Store {
 public:
  virtual ~Store() = default;

  // Where a new archive goes, in the place of one of this name from its commit() on. kIo, kOutOfMemory.
  [[nodiscard]] virtual Result<std::unique_ptr<Sink>> write(const std::string& name) = 0;

  // An archive as it is now, whatever takes its place later. kNotFound, kIo.
  [[nodiscard]] virtual Result<std::unique_ptr<Source>> read(const std::string& name) = 0;

  // All names, sorted. kIo, kOutOfMemory.
  [[nodiscard]] virtual Result<std::vector<std::string>> list() = 0;

  // kNotFound, kIo.
  [[nodiscard]] virtual Status remove(const std::string& name) = 0;
};

// The files NAME.kvar of a directory that is there; nothing outside it is read or written, not even through a
// symbolic link, which is refused as a name is. `files` outlives the store.
[[nodiscard]] std::unique_ptr<Store> directory_store(base::FileSystem& files, std::string directory);

[[nodiscard]] std::unique_ptr<Store> memory_store();

}  // namespace kvasir::archive
