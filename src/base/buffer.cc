#include "base/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/checked.h"
#include "base/try.h"

namespace kvasir::base {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;
constexpr std::size_t kSmallestPage = 4096;

// What a Slab asks for at first, and at most where it is not asked for more at once.
constexpr std::size_t kFirstSlab = kHugePage;
constexpr std::size_t kLargestSlab = std::size_t{64} << 20;

std::unexpected<Error> no_memory(std::size_t bytes) {
  return fail(Outcome::kOutOfMemory, "no memory for " + std::to_string(bytes) + " bytes",
              {.wanted = bytes, .available = {}, .limit = {}, .setting = {}});
}

// NOLINTBEGIN(cppcoreguidelines-no-malloc): calloc knows which memory is zeros already, and alone knows it
struct Give {
  void* base;
  void operator()(std::byte* /*start*/) const noexcept { std::free(base); }
};

// Null where there is none.
std::shared_ptr<std::byte> memory_of(std::size_t bytes, bool zeros) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kLine;
  const std::size_t rounded = checked_round_up(bytes, alignment).value_or(SIZE_MAX);
  if (rounded > PTRDIFF_MAX - alignment) return nullptr;
  std::size_t room = rounded + alignment;
  void* const base = zeros ? std::calloc(1, room) : std::malloc(room);
  if (base == nullptr) return nullptr;
  void* start = base;
  std::align(alignment, rounded, start, room);
  // Advice only: without huge pages the memory is right and a little slower.
  if (alignment == kHugePage) (void)::madvise(start, rounded, MADV_HUGEPAGE);
  try {
    return {static_cast<std::byte*>(start), Give{base}};
  } catch (const std::bad_alloc&) {
    return nullptr;  // and the memory is given back
  }
}
// NOLINTEND(cppcoreguidelines-no-malloc)

}  // namespace

Result<Buffer> Buffer::allocate(std::size_t bytes) {
  KVASIR_ASSIGN(Buffer buffer, allocate_on_touch(bytes));
  buffer.touch(0, bytes);
  return buffer;
}

Result<Buffer> Buffer::allocate_on_touch(std::size_t bytes) {
  return of(bytes, true);
}

Result<Buffer> Buffer::allocate_unset(std::size_t bytes) {
  return of(bytes, false);
}

Result<Buffer> Buffer::of(std::size_t bytes, bool zeros) {
  if (bytes == 0) return Buffer();
  std::shared_ptr<std::byte> memory = memory_of(bytes, zeros);
  if (memory == nullptr) return no_memory(bytes);
  return Buffer(std::move(memory), bytes);
}

void Buffer::touch(std::size_t first, std::size_t last) noexcept {
  for (std::size_t at = first; at < last; at = at / kSmallestPage * kSmallestPage + kSmallestPage) {
    volatile std::byte& byte = data()[at];
    byte = std::byte{0};
  }
}

Result<Buffer> Slab::take(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  const std::size_t rounded = checked_round_up(bytes, kLine).value_or(SIZE_MAX);
  if (rounded > size_ - used_) {
    const std::size_t size = std::max(rounded, std::clamp(2 * size_, kFirstSlab, kLargestSlab));
    std::shared_ptr<std::byte> memory = memory_of(size, false);
    if (memory == nullptr) return no_memory(bytes);
    memory_ = std::move(memory);
    size_ = size;
    used_ = 0;
  }
  Buffer part({memory_, memory_.get() + used_}, bytes);
  used_ += rounded;
  return part;
}

}  // namespace kvasir::base
