// A load on its way: conversations that have their cells reserved and get them filled piece by piece, and of
// which nothing shows before commit().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/cell_sections.h"
#include "engine/engine.h"
#include "engine/saved.h"
#include "kvasir/result.h"
#include "pages/restore.h"

namespace kvasir::engine {

class EncodeJob;

// Made, filled and ended under the lock of its engine, which it must not outlive.
class LoadJob {
 public:
  // Of conversations whose model is that of the engine (check_model()). Where their keys and values are of
  // use too, their cells are reserved; else, `recompute`, their tokens are queued and no cell is taken.
  // kNoSpace with the numbers where a conversation is longer than it may get here or the cells do not fit;
  // kUnsupported where embedding vectors would have to be computed again; kCorrupt; kOutOfMemory. On error
  // nothing has changed.
  [[nodiscard]] static Result<std::unique_ptr<LoadJob>> begin(Engine& engine, const Saved& saved,
                                                              bool recompute);
  LoadJob(const LoadJob&) = delete;
  LoadJob& operator=(const LoadJob&) = delete;
  ~LoadJob();

  // Takes what the next section of cells holds: open_section() says whether it is the one that comes next, by
  // its numbers and size; fill() then writes a few more of its cells to their places and answers whether
  // there are more. Only fill() must not run beside a job. kCorrupt.
  [[nodiscard]] Status open_section(std::span<const std::byte> content);
  [[nodiscard]] bool fill() noexcept;

  // Of conversations whose tokens are queued: how many there are, whether one attends to a source, and the
  // job that reads that again, which ends before this does.
  [[nodiscard]] std::size_t conversations() const noexcept { return coming_.size(); }
  [[nodiscard]] bool has_source(std::size_t index) const noexcept {
    return coming_[index].conversation.source != nullptr;
  }
  [[nodiscard]] Result<std::unique_ptr<EncodeJob>> begin_source(std::size_t index);

  // Whether every cell has come: kCorrupt where not.
  [[nodiscard]] Status check_complete() const { return sections_.check_complete(); }

  // The conversations are there. Cannot fail. Answers their ids, in order.
  std::span<const ConversationId> commit() noexcept;

  // Puts the one conversation of this load in the place of another, which keeps its id and is in no step;
  // what it was is gone.
  void commit_into(ConversationId id) noexcept;

  [[nodiscard]] std::uint64_t bytes_done() const noexcept { return done_; }
  [[nodiscard]] std::uint64_t bytes_total() const noexcept { return total_; }

 private:
  explicit LoadJob(Engine& engine) : engine_(&engine) {}
  void fill_cells(std::uint64_t count, std::uint64_t bytes) noexcept;
  void fill_places(std::span<const pages::Run> places, std::uint64_t begin, std::uint64_t end) noexcept;
  void fill_slice(std::uint64_t most) noexcept;
  [[nodiscard]] Status take_slots(const Saved& saved, bool recompute);
  void install() noexcept;

  // A conversation as it will be.
  struct Coming {
    std::size_t index = 0;  // its slot
    Conversation conversation;
  };

  Engine* engine_;
  std::vector<Coming> coming_;
  std::vector<ConversationId> ids_;
  std::optional<pages::RestoreTicket> ticket_;
  bool committed_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  CellSections sections_;
  // The section at hand, as in SaveJob; what is left of its content.
  CellSection section_;
  std::span<const std::byte> content_;
  std::uint32_t part_ = 0;
  std::uint64_t cell_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace kvasir::engine
