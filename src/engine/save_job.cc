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

// Closes an empty table.
class CloseAtEnd {
 public:
  CloseAtEnd(pages::PageStore& store, pages::TableId table) : store_(&store), table_(table) {}
  CloseAtEnd(const CloseAtEnd&) = delete;
  CloseAtEnd& operator=(const CloseAtEnd&) = delete;
  ~CloseAtEnd() { store_->close(table_); }

 private:
  pages::PageStore* store_;
  pages::TableId table_;
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
    // What a conversation has borrowed shows nowhere yet: it is described as this.
    KVASIR_ASSIGN(const pages::TableId empty, engine.store_->open());
    const CloseAtEnd closed(*engine.store_, empty);
    for (const ConversationId id : ids) {
      KVASIR_ASSIGN(const Conversation* const conversation, std::as_const(engine).look(id));
      tables.push_back(conversation->borrowed > 0 ? empty : conversation->table);
      saved.conversations.push_back(saved_of(*conversation, id, rows));
    }
    saved.origin = origin_of(engine.model(), engine.options().types);
    KVASIR_ASSIGN(auto snapshot, engine.store_->snapshot(tables));
    saved.layout = snapshot->layout();
    std::unique_ptr<SaveJob> job(new SaveJob(engine, std::move(snapshot)));
    job->saved_ = std::move(saved);
    for (std::size_t group = 0; group < job->saved_.origin.groups.size(); ++group)
      job->total_ += job->snapshot_->cells(group).cells() * engine.cell_bytes(group);
    return job;
  });
}

// As many cells as make about kSectionBytes. Bytes of the section before are written over, not cleared.
void SaveJob::begin_section() {
  const std::uint64_t bytes = std::max<std::uint64_t>(1, engine_->cell_bytes(group_));
  const std::uint64_t left = snapshot_->cells(group_).cells() - first_;
  count_ = std::min<std::uint64_t>(left, std::max<std::uint64_t>(1, kSectionBytes / bytes));
  std::vector<std::byte> head;
  base::ByteWriter out(head);
  out.number(static_cast<std::uint32_t>(group_));
  out.number(static_cast<std::uint32_t>(count_));
  out.number(first_);
  content_.resize(head.size() + count_ * bytes);
  std::ranges::copy(head, content_.begin());
  at_ = head.size();
  layer_ = 0;
  cell_ = 0;
}

Status SaveJob::copy_slice() {
  const kv::LayerGeometry& layer = saved_.origin.groups[group_].layers[layer_];
  const std::uint64_t bytes = engine_->arena_.cell_bytes(layer);
  const std::uint64_t most = std::max<std::uint64_t>(1, kSliceBytes / std::max<std::uint64_t>(1, bytes));
  const std::uint64_t end = std::min(count_, cell_ + most);
  while (cell_ < end) {
    const pages::Run& run = snapshot_->cells(group_).at(first_ + cell_);
    const std::uint64_t skipped = first_ + cell_ - run.ordinal;
    const auto some = static_cast<std::uint32_t>(std::min(run.count - skipped, end - cell_));
    const pages::CellAt from{run.page, run.cell + static_cast<std::uint32_t>(skipped)};
    KVASIR_TRY(engine_->export_cells(static_cast<std::uint32_t>(group_), layer_, from, some,
                                     std::span(content_).subspan(at_, some * bytes)));
    at_ += some * bytes;
    done_ += some * bytes;
    engine_->bytes_moved_ += some * bytes;
    cell_ += some;
  }
  return {};
}

Result<SaveJob::State> SaveJob::advance() {
  return base::within_memory([&]() -> Result<State> {
    if (count_ == 0) {
      while (group_ < saved_.origin.groups.size() && first_ == snapshot_->cells(group_).cells()) {
        ++group_;
        first_ = 0;
      }
      if (group_ == saved_.origin.groups.size()) return State::kEnd;
      begin_section();
    }
    KVASIR_TRY(copy_slice());
    if (cell_ < count_) return State::kGoesOn;
    cell_ = 0;
    if (++layer_ < saved_.origin.groups[group_].layers.size()) return State::kGoesOn;
    first_ += count_;
    count_ = 0;
    return State::kSection;
  });
}

}  // namespace kvasir::engine
