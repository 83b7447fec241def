#include "base/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/checked.h"

namespace kvasir::base {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Result<Buffer> Buffer::allocate(std::size_t bytes) {
  auto buffer = allocate_unset(bytes);
  if (buffer && bytes > 0) std::memset(buffer->data(), 0, bytes);
  return buffer;
}

Result<Buffer> Buffer::allocate_unset(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const std::size_t rounded = checked_round_up(bytes, alignment).value_or(SIZE_MAX);
  void* memory = rounded <= PTRDIFF_MAX ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (memory == nullptr) {
    return fail(Outcome::kOutOfMemory, "no memory for " + std::to_string(bytes) + " bytes",
                {.wanted = bytes, .available = {}, .limit = {}, .setting = {}});
  }
  // Advice only: without huge pages the buffer is right and a little slower.
  if (alignment == kHugePage) (void)::madvise(memory, rounded, MADV_HUGEPAGE);
  return Buffer(static_cast<std::byte*>(memory), bytes);
}

Buffer::~Buffer() {
  std::free(data_);  // NOLINT(cppcoreguidelines-no-malloc): the one owner of aligned memory
}

}  // namespace kvasir::base
