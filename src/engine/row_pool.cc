#include "engine/row_pool.h"

#include <array>
#include <new>
#include <utility>

#include "base/mutex.h"

namespace kvasir::engine {

// A row with room for the counts of a shared_ptr beside it.
struct RowPool::Slot {
  static constexpr std::size_t kCountsBytes = 96;

  Row row;
  alignas(std::max_align_t) std::array<std::byte, kCountsBytes> counts{};
  Slot* next = nullptr;
};

struct RowPool::Shelf {
  explicit Shelf(std::size_t row_width) : width(row_width) {}
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;
  ~Shelf() {
    while (Slot* const slot = pop()) delete slot;
  }

  Slot* pop() noexcept {
    const base::Lock lock(mutex);
    Slot* const slot = free;
    if (slot != nullptr) free = slot->next;
    return slot;
  }
  void push(Slot* slot) noexcept {
    const base::Lock lock(mutex);
    slot->next = free;
    free = slot;
  }

  std::size_t width;
  base::Mutex mutex;
  Slot* free KVASIR_GUARDED_BY(mutex) = nullptr;
};

// Places a shared_ptr's counts in the slot and, when they go as the last thing, puts the slot on its shelf.
template <class T>
struct RowPool::SlotAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming): what the standard asks of an allocator

  SlotAllocator(std::shared_ptr<Shelf> its_shelf, Slot* its_slot)
      : shelf(std::move(its_shelf)), slot(its_slot) {}
  template <class U>
  explicit(false) SlotAllocator(const SlotAllocator<U>& other) : shelf(other.shelf), slot(other.slot) {}

  T* allocate(std::size_t count) {
    static_assert(sizeof(T) <= Slot::kCountsBytes && alignof(T) <= alignof(std::max_align_t));
    if (count != 1) throw std::bad_alloc();
    return reinterpret_cast<T*>(slot->counts.data());
  }
  // Nobody holds the row any more, so whoever takes it next may write it (R1).
  void deallocate(T* /*counts*/, std::size_t /*count*/) noexcept { shelf->push(slot); }

  template <class U>
  bool operator==(const SlotAllocator<U>& other) const noexcept {
    return slot == other.slot;
  }

  std::shared_ptr<Shelf> shelf;
  Slot* slot;
};

RowPool::RowPool(std::size_t width) : shelf_(std::make_shared<Shelf>(width)) {}

std::shared_ptr<Row> RowPool::take() {
  Slot* slot = shelf_->pop();
  if (slot == nullptr) {
    auto made = std::make_unique<Slot>();
    made->row.resize(shelf_->width);
    slot = made.release();
  }
  // The row stays in its slot; only the counts come and go.
  return {&slot->row, [](Row*) {}, SlotAllocator<Row>(shelf_, slot)};
}

}  // namespace kvasir::engine
