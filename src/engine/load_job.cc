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

void bring_tokens(const SavedConversation& saved, const Saved& all, std::uint64_t behind,
                  Conversation& conversation) {
  conversation.tokens.reserve(saved.tokens.size() + saved.queue.size());
  conversation.tokens.assign(saved.tokens.begin(), saved.tokens.end());
  const auto vector = std::ranges::find(saved.tokens, kEmbedded);
  if (vector != saved.tokens.end())
    conversation.first_embedded = static_cast<std::uint64_t>(vector - saved.tokens.begin());
  // What it is behind by is queued first. It is wanted only with what is queued behind it.
  conversation.again = behind;
  conversation.accepted += behind;
  if (behind > 0 && behind == saved.queue.size()) {
    conversation.dropped.swap(conversation.queue.tokens);
    conversation.queue.clear();
    conversation.again = 0;
  }
  if (saved.last_row) conversation.last_logits = all.rows[*saved.last_row];
  for (const SavedConversation::Kept& kept : saved.kept)
    conversation.kept.push_back({kept.ordinal, all.rows[kept.row]});
}

}  // namespace

Result<std::unique_ptr<LoadJob>> LoadJob::begin(Engine& engine, const Saved& saved, bool recompute) {
  return base::within_memory([&]() -> Result<std::unique_ptr<LoadJob>> {
    std::unique_ptr<LoadJob> job(new LoadJob(engine));
    KVASIR_TRY(job->take_slots(saved, recompute));
    if (recompute) return job;
    std::vector<pages::TableId> tables;
    for (const Coming& one : job->coming_) tables.push_back(one.conversation.table);
    pages::Layout layout = saved.layout;
    for (pages::ConversationLayout& one : layout.conversations) one.clean = 0;
    KVASIR_ASSIGN(pages::RestoreTicket ticket, engine.store_->begin_restore(layout, tables));
    job->ticket_.emplace(std::move(ticket));
    std::vector<std::uint64_t> cells;
    for (const std::vector<pages::CellStretch>& stretches : layout.cells) {
      KVASIR_ASSIGN(const std::uint64_t of_group, pages::cells_in(stretches));
      cells.push_back(of_group);
    }
    KVASIR_ASSIGN(job->sections_, CellSections::of(saved.origin, std::move(cells)));
    job->total_ = job->sections_.bytes_total();
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
    if (recompute && saved.layout.conversations[coming_.size()].encoded != 0) {
      return fail(
          Outcome::kUnsupported,
          "the conversation attends to a source, whose tokens are not kept; it cannot be computed again");
    }
    if (recompute) {
      KVASIR_TRY(queue_tokens(one, conversation));
    } else {
      bring_tokens(one, saved, saved.layout.conversations[coming_.size()].behind, conversation);
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
  KVASIR_ASSIGN(section_, sections_.read(content));
  part_ = section_.first_part;
  cell_ = 0;
  skipped_ = 0;
  content_ = content.subspan(CellSections::kHeadBytes);
  return {};
}

// Takes the next bytes of the section for so many cells of the part at hand, from `cell_` on.
void LoadJob::fill_cells(std::uint64_t count, std::uint64_t bytes) noexcept {
  const std::uint64_t begin = section_.first + cell_;
  const std::uint64_t end = begin + count;
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): without a ticket open_section() takes no cells
  const std::span<const pages::Run> places = ticket_->places(section_.group);
  auto place = std::ranges::lower_bound(places, begin, std::less_equal(), &pages::Run::end);
  for (; place != places.end() && place->ordinal < end; ++place) {
    const std::uint64_t from = std::max(begin, place->ordinal);
    const auto some = static_cast<std::uint32_t>(std::min(end, place->end()) - from);
    engine_->write_part({.group = section_.group,
                         .part = part_,
                         .at = {place->page, place->cell + static_cast<std::uint32_t>(from - place->ordinal)},
                         .count = some,
                         .skipped = skipped_},
                        content_.subspan((from - begin) * (bytes / count), some * (bytes / count)));
  }
  content_ = content_.subspan(bytes);
  engine_->bytes_moved_ += bytes;
  done_ += bytes;
}

// Some cells of the part at hand, or some of a state's numbers: about `most` bytes.
void LoadJob::fill_slice(std::uint64_t most) noexcept {
  const std::uint64_t bytes = sections_.part_bytes(section_.group, part_);
  if (!sections_.state(section_.group)) {
    const std::uint64_t count =
        std::min(section_.count - cell_, CellSections::cells_at_once(most, bytes));
    fill_cells(count, count * bytes);
    cell_ += count;
    return;
  }
  const std::uint64_t some = std::min(bytes - skipped_, CellSections::state_bytes_at_once(most));
  fill_cells(1, some);
  skipped_ += some;
  if (skipped_ == bytes) ++cell_;
}

bool LoadJob::fill() noexcept {
  for (const std::uint64_t end = done_ + SaveJob::kSliceBytes; done_ < end;) {
    fill_slice(end - done_);
    if (cell_ < section_.count) continue;
    cell_ = 0;
    skipped_ = 0;
    if (++part_ < section_.first_part + section_.parts) continue;
    sections_.pass(section_);
    return false;
  }
  return true;
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
