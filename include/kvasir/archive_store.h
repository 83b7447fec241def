// Archives by name, in a directory or in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir {

namespace archive {
class Store;
}

namespace api {
struct Inside;
}

// A name is 1 to 200 bytes of UTF-8 without control characters, '/', '\\' and ':', and neither begins nor
// ends with a dot or a space; any other is kInvalidArgument. Move-only. Any thread.
class ArchiveStore {
 public:
  // The files NAME.kvar of a directory that is there. Nothing outside it is read or written: a name that is a
  // symbolic link is kInvalidArgument. kOutOfMemory.
  [[nodiscard]] static Result<ArchiveStore> in_directory(const std::string& path);

  // As long as the store lives. kOutOfMemory.
  [[nodiscard]] static Result<ArchiveStore> in_memory();

  ArchiveStore(ArchiveStore&&) noexcept;
  ArchiveStore& operator=(ArchiveStore&&) noexcept;
  ~ArchiveStore();

  // The bytes of an archive. kNotFound; kIo; kOutOfMemory.
  [[nodiscard]] Result<std::vector<std::byte>> read(const std::string& name) const;

  // In the place of what had this name; all or nothing. kIo; kOutOfMemory.
  [[nodiscard]] Status write(const std::string& name, std::span<const std::byte> bytes);

  // Sorted. kNotFound for a directory that is gone; kIo; kOutOfMemory.
  [[nodiscard]] Result<std::vector<std::string>> list() const;

  // kNotFound; kIo; kOutOfMemory.
  [[nodiscard]] Status remove(const std::string& name);

 private:
  friend struct api::Inside;
  explicit ArchiveStore(std::unique_ptr<archive::Store> store) noexcept;
  std::unique_ptr<archive::Store> store_;
};

}  // namespace kvasir
