// A save on its way: conversations as they were when it began, whose cells are read piece by piece while the
// engine goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/blocks_read.h"
#include "engine/cell_sections.h"
#include "engine/engine.h"
#include "engine/saved.h"
#include "kvasir/result.h"
#include "pages/snapshot.h"

namespace kvasir::engine {

// Made, advanced and ended under the lock of its engine, which it must not outlive; saved() may be read
// without.
class SaveJob {
 public:
  // kNotFound; kNoSpace where what is promised counts on cells that would be kept meanwhile; kOutOfMemory.
  [[nodiscard]] static Result<std::unique_ptr<SaveJob>> begin(Engine& engine,
                                                              std::span<const ConversationId> ids);

  [[nodiscard]] const Saved& saved() const noexcept { return saved_; }

  // Copies a few more cells of at most about kSliceBytes into content(). Must not run beside a job.
  enum class State : std::uint8_t {
    kGoesOn,   // there is more to be copied into this section
    kSection,  // content() is what a section holds; it is gone with the next call
    kEnd,      // there is nothing left
  };
  [[nodiscard]] Result<State> advance();
  [[nodiscard]] std::span<const std::byte> content() const noexcept { return content_; }

  [[nodiscard]] std::uint64_t bytes_done() const noexcept { return done_; }
  [[nodiscard]] std::uint64_t bytes_total() const noexcept { return total_; }

  static constexpr std::uint64_t kSliceBytes = 65'536;
  // Of a section of cells: few enough to stay in a cache between being copied, hashed and written, but whole
  // groups of lanes as long as they are not many more.
  static constexpr std::uint64_t kSectionBytes = 524'288;
  static constexpr std::uint64_t kSectionBytesMost = 4'194'304;

 private:
  SaveJob(Engine& engine, std::unique_ptr<pages::Snapshot> snapshot) noexcept
      : engine_(&engine), snapshot_(std::move(snapshot)) {}
  void begin_section();
  [[nodiscard]] Status copy_slice(std::uint64_t most);
  [[nodiscard]] bool next_part() noexcept;

  Engine* engine_;
  std::unique_ptr<pages::Snapshot> snapshot_;
  Saved saved_;
  BlocksRead read_;
  std::vector<std::byte> content_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  CellSections sections_;
  // The section at hand, of which those cells before cell_ of part_ are copied; of a state, whose one cell it
  // is, the first bytes.
  CellSection section_;
  bool open_ = false;
  std::uint32_t part_ = 0;
  std::uint64_t cell_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint64_t at_ = 0;  // in content_
};

}  // namespace kvasir::engine
