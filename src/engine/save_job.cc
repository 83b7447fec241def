#include "engine/save_job.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {
namespace {

// Gives each row a number, the same row one number.
class RowNumbers {
 public:
  explicit RowNumbers(std::vector<std::shared_ptr<const Row>>& rows) : rows_(&rows) {}
  [[nodiscard]] std::uint64_t number(const std::shared_ptr<const Row>& row) {
    const auto [known, is_new] = numbers_.try_emplace(row.get(), rows_->size());
    if (is_new) rows_->push_back(row);
    return known->second;
  }

 private:
  std::vector<std::shared_ptr<const Row>>* rows_;
  std::unordered_map<const Row*, std::uint64_t> numbers_;
};

// Closes tables that nobody else knows.
class CloseAtEnd {
 public:
  // Has places for so many. Throws std::bad_alloc.
  CloseAtEnd(pages::PageStore& store, std::size_t most) : store_(&store) { tables_.reserve(most); }
  CloseAtEnd(const CloseAtEnd&) = delete;
  CloseAtEnd& operator=(const CloseAtEnd&) = delete;
  ~CloseAtEnd() {
    for (const pages::TableId table : tables_) store_->close(table);
  }
  void add(pages::TableId table) noexcept { tables_.push_back(table); }

 private:
  pages::PageStore* store_;
  std::vector<pages::TableId> tables_;
};

SavedConversation saved_of(const Conversation& conversation, ConversationId id, RowNumbers& rows) {
  SavedConversation saved;
  saved.id = id;
  saved.settings = conversation.settings;
  saved.accepted = conversation.accepted;
  saved.forks = conversation.forks;
  saved.arrival = conversation.arrival;
  saved.drawn_queued = conversation.drawn_queued;
  saved.tokens = conversation.tokens;
  // What is dropped is queued again wherever it is loaded, and counts as accepted when it is computed.
  saved.accepted -= conversation.dropped.size() + conversation.again;
  saved.queue = conversation.queue;
  saved.queue.tokens.insert(saved.queue.tokens.begin(), conversation.dropped.begin(),
                            conversation.dropped.end());
  saved.queue.every.insert(saved.queue.every.begin(), conversation.dropped.size(), 0);
  // Rows of tokens that are computed.
  const bool last = conversation.length() == conversation.tokens.size();
  if (last && conversation.last_logits != nullptr) saved.last_row = rows.number(conversation.last_logits);
  for (const KeptRow& kept : conversation.kept) {
    if (kept.ordinal < conversation.tokens.size())
      saved.kept.push_back({kept.ordinal, rows.number(kept.row)});
  }
  return saved;
}

}  // namespace

Result<std::unique_ptr<SaveJob>> SaveJob::begin(Engine& engine, std::span<const ConversationId> ids) {
  return base::within_memory([&]() -> Result<std::unique_ptr<SaveJob>> {
    std::vector<pages::TableId> tables;
    Saved saved;
    RowNumbers rows(saved.rows);
    // What a conversation has borrowed shows nowhere yet: it is described by one that has but its source.
    CloseAtEnd closed(*engine.store_, ids.size());
    for (const ConversationId id : ids) {
      KVASIR_ASSIGN(const Conversation* const conversation, std::as_const(engine).look(id));
      pages::TableId table = conversation->table;
      if (conversation->borrowed > 0) {
        KVASIR_ASSIGN(table, engine.store_->fork_source(table));
        closed.add(table);
      }
      tables.push_back(table);
      saved.conversations.push_back(saved_of(*conversation, id, rows));
    }
    saved.origin = origin_of(engine.model(), engine.options().types);
    KVASIR_ASSIGN(auto snapshot, engine.store_->snapshot(tables));
    saved.layout = snapshot->layout();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      KVASIR_ASSIGN(const Conversation* const conversation, std::as_const(engine).look(ids[i]));
      const bool attends = saved.layout.conversations[i].encoded != 0 && conversation->source != nullptr;
      if (attends) saved.conversations[i].source = *conversation->source;
    }
    std::unique_ptr<SaveJob> job(new SaveJob(engine, std::move(snapshot)));
    job->saved_ = std::move(saved);
    std::vector<std::uint64_t> cells;
    cells.reserve(job->saved_.origin.groups.size());
    for (std::size_t group = 0; group < job->saved_.origin.groups.size(); ++group)
      cells.push_back(job->snapshot_->cells(group).cells());
    KVASIR_ASSIGN(job->sections_, CellSections::of(job->saved_.origin, std::move(cells)));
    job->total_ = job->sections_.bytes_total();
    return job;
  });
}

// Bytes of the section before are written over, not cleared.
void SaveJob::begin_section() {
  section_ = sections_.next(kSectionBytes, kSectionBytesMost);
  read_.forget_unused();
  std::vector<std::byte> head;
  CellSections::append_head(section_, sections_.state(section_.group), head);
  content_.resize(head.size() + section_.bytes);
  std::ranges::copy(head, content_.begin());
  at_ = head.size();
  part_ = section_.first_part;
  cell_ = 0;
  skipped_ = 0;
  open_ = true;
}

// Some cells of the part at hand, or some of a state's numbers: about `most` bytes.
Status SaveJob::copy_slice(std::uint64_t most) {
  const std::uint64_t bytes = sections_.part_bytes(section_.group, part_);
  const bool state = sections_.state(section_.group);
  const std::uint64_t end = std::min(section_.count, cell_ + CellSections::cells_at_once(most, bytes));
  while (cell_ < end) {
    const std::uint64_t number = section_.first + cell_;
    const pages::Run& run = snapshot_->cells(section_.group).at(number);
    const std::uint64_t behind = number - run.ordinal;
    const auto some = static_cast<std::uint32_t>(std::min(run.count - behind, end - cell_));
    const std::uint64_t copied =
        state ? std::min(bytes - skipped_, CellSections::state_bytes_at_once(most)) : some * bytes;
    KVASIR_TRY(engine_->export_part({.group = section_.group,
                                     .part = part_,
                                     .at = {run.page, run.cell + static_cast<std::uint32_t>(behind)},
                                     .count = some,
                                     .skipped = skipped_},
                                    read_, std::span(content_).subspan(at_, copied)));
    at_ += copied;
    done_ += copied;
    engine_->bytes_moved_ += copied;
    skipped_ += state ? copied : 0;
    if (state && skipped_ < bytes) return {};
    cell_ += some;
  }
  return {};
}

// Whether the section goes on, with another part where the one at hand is copied.
bool SaveJob::next_part() noexcept {
  if (cell_ < section_.count) return true;
  cell_ = 0;
  skipped_ = 0;
  return ++part_ < section_.first_part + section_.parts;
}

Result<SaveJob::State> SaveJob::advance() {
  return base::within_memory([&]() -> Result<State> {
    if (!open_) {
      if (sections_.done()) return State::kEnd;
      begin_section();
    }
    for (const std::uint64_t end = done_ + kSliceBytes; done_ < end;) {
      KVASIR_TRY(copy_slice(end - done_));
      if (!next_part()) {
        sections_.pass(section_);
        open_ = false;
        return State::kSection;
      }
    }
    return State::kGoesOn;
  });
}

}  // namespace kvasir::engine
