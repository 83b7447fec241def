// What the page store plans, done to the bytes: in every layer of a group, a run of cells at a time.

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/engine.h"
#include "kv/copy_plan.h"
#include "pages/compaction.h"

namespace kvasir::engine {

namespace {

// A state lies nowhere better, and has no place beside another.
Status check_has_cells(const pages::PageStore& store) {
  const bool any = std::ranges::any_of(store.spec().groups, [](const pages::GroupSpec& group) {
    return group.kind != pages::GroupKind::kRecurrent;
  });
  if (any) return {};
  return fail(Outcome::kUnsupported, "this model keeps a state of each conversation and no cells of tokens");
}

}  // namespace

kv::FrameCell Engine::place(std::uint32_t group, pages::CellAt at, std::uint32_t layer) const {
  return {store_->frame(group, at.page, layer), at.cell};
}

// All copies of a layer together: they share pages.
void Engine::copy(std::uint32_t group, std::span<const pages::CopyCells> jobs) {
  const std::int64_t start = base::system_clock().now_ns();
  const kv::CopyPlan plan(jobs, arena_.types().keys);
  std::vector<pages::FrameId> frames(plan.pages().size());
  std::vector<pages::FrameId> next(frames.size());
  const std::size_t layers = model_->network().groups[group].layers.size();
  const auto resolve = [&](std::vector<pages::FrameId>& all, std::uint32_t layer) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = store_->frame(group, plan.pages()[i], layer);
  };
  resolve(frames, 0);
  std::uint64_t cells = 0;
  for (const pages::CopyCells& job : jobs) cells += job.count;
  for_layers(group, [&](const kv::LayerGeometry& geometry, std::uint32_t layer) {
    if (layer + 1 < layers) {
      resolve(next, layer + 1);
    } else {
      next.clear();
    }
    arena_.copy_cells(geometry, plan, frames, next);
    std::swap(frames, next);
    bytes_moved_ += arena_.cell_bytes(geometry) * cells;
  });
  compaction_copy_ns_ += base::system_clock().now_ns() - start;
}

void Engine::rotate(const pages::RotateCells& job) {
  const pages::CopyCells& cells = job.cells;
  for_layers(cells.group, [&](const kv::LayerGeometry& geometry, std::uint32_t layer) {
    const simd::RotaryTable& rotary = model_->network().rotary_of(cells.group, layer);
    arena_.rotate_cells(geometry, rotary, place(cells.group, cells.from, layer),
                        place(cells.group, cells.to, layer), job.turns);
    bytes_moved_ += arena_.cell_bytes(geometry) * cells.count;
  });
}

Status Engine::swap_cells(ConversationId id, std::uint64_t a, std::uint64_t b) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(const Conversation* const conversation, find_idle(id));
    KVASIR_TRY(check_has_cells(*store_));
    if (step_open())
      return fail(Outcome::kBusy, "cells cannot change places while a step is open; finish it first");
    KVASIR_ASSIGN(const std::vector<pages::SwapCells> swaps, store_->swap(conversation->table, a, b));
    for (const pages::SwapCells& swap : swaps) {
      for_layers(swap.group, [&](const kv::LayerGeometry& geometry, std::uint32_t layer) {
        arena_.swap_cells(geometry, place(swap.group, swap.a, layer), place(swap.group, swap.b, layer));
        bytes_moved_ += 2 * arena_.cell_bytes(geometry);
      });
    }
    return {};
  });
}

Status Engine::mix_up_cells(ConversationId a, ConversationId b, std::uint64_t count) {
  return base::within_memory([&]() -> Status {
    if (step_open()) return fail(Outcome::kBusy, "cells are not mixed up while a step is open");
    KVASIR_ASSIGN(const Conversation* const one, find_idle(a));
    KVASIR_ASSIGN(const Conversation* const other, find_idle(b));
    std::vector<std::vector<pages::CellAt>> ones(store_->group_count());
    std::vector<std::vector<pages::CellAt>> others(store_->group_count());
    for (std::uint32_t group = 0; group < store_->group_count(); ++group) {
      KVASIR_ASSIGN(ones[group], first_cells(*one, group, count));
      KVASIR_ASSIGN(others[group], first_cells(*other, group, count));
    }
    for (std::uint32_t group = 0; group < store_->group_count(); ++group) {
      for_layers(group, [&](const kv::LayerGeometry& geometry, std::uint32_t layer) {
        for (std::size_t i = 0; i < count; ++i)
          arena_.swap_cells(geometry, place(group, ones[group][i], layer),
                            place(group, others[group][i], layer));
      });
    }
    return {};
  });
}

Result<std::vector<pages::CellAt>> Engine::first_cells(const Conversation& conversation, std::uint32_t group,
                                                       std::uint64_t count) const {
  std::vector<pages::CellAt> cells;
  for (const pages::Run& run : store_->runs(conversation.table, group)) {
    if (pages::in_tier(run.page)) break;
    for (std::uint32_t cell = 0; cell < run.count && cells.size() < count; ++cell)
      cells.push_back({run.page, run.cell + cell});
  }
  if (cells.size() == count) return cells;
  return fail(Outcome::kInvalidArgument,
              "the conversation has fewer cells in the pool than are to be mixed up",
              {.wanted = count, .available = cells.size()});
}

Result<std::uint64_t> Engine::compact(std::uint64_t budget) {
  std::uint64_t moved = 0;
  while (moved < budget) {
    KVASIR_ASSIGN(const std::uint64_t some, compact_once(budget - moved));
    if (some == 0) break;
    moved += some;
  }
  return moved;
}

Result<std::uint64_t> Engine::compact_once(std::uint64_t budget) {
  return base::within_memory([&]() -> Result<std::uint64_t> {
    KVASIR_TRY(check_has_cells(*store_));
    const auto room = static_cast<std::uint32_t>(std::min<std::uint64_t>(budget, options_.page_cells));
    if (room == 0) return 0;
    KVASIR_ASSIGN(const auto compaction, pages::Compaction::begin(*store_, room));
    if (compaction == nullptr) return 0;
    const std::span<const pages::CopyCells> jobs = compaction->copies();
    copy(jobs.front().group, jobs);  // one compaction is of one group
    return compaction->commit();
  });
}

}  // namespace kvasir::engine
