#include "engine/load_job.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/save_job.h"

namespace kvasir::engine {
namespace {

// What is computed again: the tokens before what was queued, and the rows of those that had one.
Status queue_tokens(const SavedConversation& saved, Conversation& conversation) {
  const std::vector<Token>& tokens = saved.tokens;
  if (std::ranges::find(tokens, kEmbedded) != tokens.end()) {
    return fail(Outcome::kUnsupported,
                "the conversation holds embedding vectors, which are not kept; it cannot be computed again");
  }
  Queue& queue = conversation.queue;
  queue.tokens.insert(queue.tokens.begin(), tokens.begin(), tokens.end());
  queue.every.insert(queue.every.begin(), tokens.size(), 0);
  for (const SavedConversation::Kept& kept : saved.kept) queue.every[kept.ordinal] = 1;
  conversation.accepted -= std::min<std::uint64_t>(conversation.accepted, tokens.size());
  conversation.drawn_queued = conversation.drawn_queued && tokens.empty();
  return {};
}

void bring_tokens(const SavedConversation& saved, const Saved& all, Conversation& conversation) {
  conversation.tokens.reserve(saved.tokens.size() + saved.queue.size());
  conversation.tokens.assign(saved.tokens.begin(), saved.tokens.end());
  const auto vector = std::ranges::find(saved.tokens, kEmbedded);
  if (vector != saved.tokens.end())
    conversation.first_embedded = static_cast<std::uint64_t>(vector - saved.tokens.begin());
  if (saved.last_row) conversation.last_logits = all.rows[*saved.last_row];
  for (const SavedConversation::Kept& kept : saved.kept)
    conversation.kept.push_back({kept.ordinal, all.rows[kept.row]});
}

}  // namespace

Result<std::unique_ptr<LoadJob>> LoadJob::begin(Engine& engine, const Saved& saved, bool recompute) {
  return base::within_memory([&]() -> Result<std::unique_ptr<LoadJob>> {
    std::unique_ptr<LoadJob> job(new LoadJob(engine, saved.origin));
    KVASIR_TRY(job->take_slots(saved, recompute));
    if (recompute) return job;
    std::vector<pages::TableId> tables;
    for (const Coming& one : job->coming_) tables.push_back(one.conversation.table);
    pages::Layout layout = saved.layout;
    for (pages::ConversationLayout& one : layout.conversations) one.clean = 0;
    KVASIR_ASSIGN(pages::RestoreTicket ticket, engine.store_->begin_restore(layout, tables));
    job->ticket_.emplace(std::move(ticket));
    for (std::size_t group = 0; group < layout.cells.size(); ++group) {
      KVASIR_ASSIGN(const std::uint64_t cells, pages::cells_in(layout.cells[group]));
      job->cells_.push_back(cells);
      job->total_ += cells * engine.cell_bytes(group);
    }
    return job;
  });
}

// A slot and a table for each, and all that the conversation will be.
Status LoadJob::take_slots(const Saved& saved, bool recompute) {
  coming_.reserve(saved.conversations.size());
  ids_.reserve(saved.conversations.size());
  for (const SavedConversation& one : saved.conversations) {
    const std::size_t index = engine_->new_slot();
    Conversation conversation;
    conversation.life = Conversation::Life::kOpen;
    conversation.generation = engine_->conversations_[index].generation;
    conversation.settings = one.settings;
    conversation.accepted = one.accepted;
    conversation.forks = one.forks;
    conversation.arrival = one.arrival;
    conversation.drawn_queued = one.drawn_queued && !one.queue.empty();
    conversation.queue = one.queue;
    KVASIR_TRY(engine_->check_length(conversation, 0, one.tokens.size() + one.queue.size()));
    if (recompute) {
      KVASIR_TRY(queue_tokens(one, conversation));
    } else {
      bring_tokens(one, saved, conversation);
    }
    KVASIR_ASSIGN(conversation.table, engine_->store_->open());
    // Within what was reserved.
    engine_->conversations_[index].life = Conversation::Life::kLoading;
    ids_.push_back(Engine::id_of(conversation, index));
    coming_.push_back({index, std::move(conversation)});
  }
  // They are offered room in the order in which they waited.
  std::vector<std::size_t> order;
  order.reserve(coming_.size());
  for (std::size_t i = 0; i < coming_.size(); ++i) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(saved.conversations[i].arrival, i); });
  for (const std::size_t i : order) coming_[i].conversation.arrival = engine_->arrivals_++;
  return {};
}

LoadJob::~LoadJob() {
  ticket_.reset();
  if (committed_) return;
  for (const Coming& one : coming_) {
    engine_->store_->close(one.conversation.table);
    engine_->free_slot(engine_->conversations_[one.index]);
  }
}

Status LoadJob::open_section(std::span<const std::byte> content) {
  while (group_ < cells_.size() && first_ == cells_[group_]) {
    ++group_;
    first_ = 0;
  }
  base::ByteReader in(content);
  KVASIR_ASSIGN(const auto group, in.number<std::uint32_t>());
  KVASIR_ASSIGN(const auto count, in.number<std::uint32_t>());
  KVASIR_ASSIGN(const auto first, in.number<std::uint64_t>());
  const bool expected = group_ < cells_.size() && group == group_ && first == first_ && count > 0 &&
                        count <= cells_[group_] - first_ && in.left() == count * engine_->cell_bytes(group_);
  if (!expected) {
    return fail(Outcome::kCorrupt, "cells " + std::to_string(first) + " and " + std::to_string(count) +
                                       " more of group " + std::to_string(group) +
                                       " are not what comes next");
  }
  count_ = count;
  layer_ = 0;
  cell_ = 0;
  content_ = content.subspan(content.size() - in.left());
  return {};
}

bool LoadJob::fill() noexcept {
  const kv::LayerGeometry& layer = groups_[group_].layers[layer_];
  const std::uint64_t bytes = engine_->arena_.cell_bytes(layer);
  const std::uint64_t most =
      std::max<std::uint64_t>(1, SaveJob::kSliceBytes / std::max<std::uint64_t>(1, bytes));
  const std::uint64_t begin = first_ + cell_;
  const std::uint64_t end = first_ + std::min(count_, cell_ + most);
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): without a ticket open_section() takes no cells
  const std::span<const pages::Run> places = ticket_->places(group_);
  auto place = std::ranges::lower_bound(places, begin, std::less_equal(), &pages::Run::end);
  for (; place != places.end() && place->ordinal < end; ++place) {
    const std::uint64_t from = std::max(begin, place->ordinal);
    const auto some = static_cast<std::uint32_t>(std::min(end, place->end()) - from);
    const pages::CellAt to{place->page, place->cell + static_cast<std::uint32_t>(from - place->ordinal)};
    engine_->arena_.import_cells(layer, engine_->place(static_cast<std::uint32_t>(group_), to, layer_), some,
                                 content_.subspan((from - begin) * bytes, some * bytes));
    engine_->bytes_moved_ += some * bytes;
  }
  content_ = content_.subspan((end - begin) * bytes);
  done_ += (end - begin) * bytes;
  cell_ = end - first_;
  if (cell_ < count_) return true;
  cell_ = 0;
  if (++layer_ < groups_[group_].layers.size()) return true;
  first_ += count_;
  count_ = 0;
  return false;
}

Status LoadJob::check_complete() const {
  for (std::size_t group = group_; group < cells_.size(); ++group) {
    const std::uint64_t come = group == group_ ? first_ : 0;
    if (come == cells_[group]) continue;
    return fail(
        Outcome::kCorrupt,
        "the archive brings " + std::to_string(come) + " of " + std::to_string(cells_[group]) + " cells",
        {.wanted = cells_[group], .available = come});
  }
  return {};
}

void LoadJob::install() noexcept {
  if (ticket_) ticket_->commit();
  ticket_.reset();
  committed_ = true;
}

std::span<const ConversationId> LoadJob::commit() noexcept {
  install();
  for (Coming& one : coming_) {
    Conversation& conversation = engine_->conversations_[one.index];
    conversation = std::move(one.conversation);
  }
  for (const Coming& one : coming_) engine_->admit_if_possible(engine_->conversations_[one.index]);
  return ids_;
}

void LoadJob::commit_into(ConversationId id) noexcept {
  install();
  Coming& one = coming_.front();
  Conversation& target = engine_->conversations_[static_cast<std::uint64_t>(id) & UINT32_MAX];
  engine_->stop_return(target);
  engine_->store_->close(target.table);
  engine_->drop_gone_blocks();
  one.conversation.generation = target.generation;
  target = std::move(one.conversation);
  engine_->free_slot(engine_->conversations_[one.index]);
  engine_->admit_if_possible(target);
}

}  // namespace kvasir::engine
