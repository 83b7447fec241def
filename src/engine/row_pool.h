// Rows of logits, used again and again: a step in steady state takes no memory for them.
//
// Invariants
//   R1  A row that somebody holds is written by nobody but the step that took it, before it shares it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::engine {

using Row = std::vector<float>;

// Any thread may let go of a row. Rows may outlive their pool.
class RowPool {
 public:
  // Rows of `width` floats.
  explicit RowPool(std::size_t width);

  // A row whose contents mean nothing; it comes back by itself when its last holder lets go. Throws
  // std::bad_alloc.
  [[nodiscard]] std::shared_ptr<Row> take();

 private:
  struct Slot;
  struct Shelf;
  template <class T>
  struct SlotAllocator;

  std::shared_ptr<Shelf> shelf_;
};

}  // namespace kvasir::engine
