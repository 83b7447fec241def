#include "engine/load_job.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/encode_job.h"
#include "engine/save_job.h"

namespace kvasir::engine {
namespace {

// Places that are filled together.
constexpr std::size_t kRunsAtOnce = 32;

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

// The position behind a conversation's last token: edits may have left it anywhere.
std::uint64_t next_position(const pages::Layout& layout, const pages::ConversationLayout& one) {
  std::uint64_t next = 0;
  for (std::size_t group = 0; group < one.cells.size(); ++group) {
    if (one.cells[group].empty()) continue;
    const pages::CellPiece& last = one.cells[group].back();
    std::uint64_t number = last.first + last.count - 1;
    for (const pages::CellStretch& stretch : layout.cells[group]) {
      if (number < stretch.count) {
        const auto stored = static_cast<std::int64_t>(stretch.position + number);
        next = std::max(next, static_cast<std::uint64_t>(stored + last.shift + 1));
        break;
      }
      number -= stretch.count;
    }
  }
  return next;
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
    for (pages::ConversationLayout& one : layout.conversations) one.foreign = true;
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
    if (!one.source.empty()) conversation.source = std::make_shared<const std::vector<Token>>(one.source);
    if (recompute) {
      KVASIR_TRY(queue_tokens(one, conversation));
    } else {
      const std::uint64_t next = next_position(saved.layout, saved.layout.conversations[coming_.size()]);
      KVASIR_TRY(engine_->check_positions(next, one.queue.size()));
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

Result<std::unique_ptr<EncodeJob>> LoadJob::begin_source(std::size_t index) {
  return EncodeJob::begin_loading(*engine_, coming_[index].conversation);
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

// Takes the next bytes of the section for so many cells of the part at hand, from `cell_` on. Cells without a
// place belong to checkpoints that are left out.
void LoadJob::fill_cells(std::uint64_t count, std::uint64_t bytes) noexcept {
  const std::uint64_t begin = section_.first + cell_;
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): without a ticket open_section() takes no cells
  const std::span<const pages::Run> all = ticket_->places(section_.group);
  const auto first = std::ranges::lower_bound(all, begin, std::less_equal(), &pages::Run::end);
  const std::span<const pages::Run> places(first, all.end());
  if (!sections_.state(section_.group)) {
    fill_places(places, begin, begin + count);
  } else if (!places.empty() && places.front().ordinal == begin) {
    engine_->write_part({.group = section_.group,
                         .part = part_,
                         .at = {places.front().page, places.front().cell},
                         .count = 1,
                         .skipped = skipped_},
                        content_.first(bytes));
  }
  content_ = content_.subspan(bytes);
  engine_->bytes_moved_ += bytes;
  done_ += bytes;
}

// Cells [begin, end) of the part at hand go to those of these places that are theirs, some runs at a time:
// neighbours that lie apart in the archive may be lanes of one group.
void LoadJob::fill_places(std::span<const pages::Run> places, std::uint64_t begin,
                          std::uint64_t end) noexcept {
  const kv::LayerGeometry& layer = engine_->model_->network().groups[section_.group].layers[part_];
  const std::uint64_t each = sections_.part_bytes(section_.group, part_);
  std::span<const std::byte> content = content_;
  std::array<kv::FrameRun, kRunsAtOnce> runs{};
  while (begin < end && !places.empty() && places.front().ordinal < end) {
    const std::uint64_t left_out = places.front().ordinal - std::min(begin, places.front().ordinal);
    content = content.subspan(left_out * each);
    begin += left_out;
    std::size_t count = 0;
    std::uint64_t cells = 0;
    for (; count < runs.size() && begin + cells < end; ++count) {
      if (places.empty() || places.front().ordinal > begin + cells) break;
      const pages::Run& place = places.front();
      const std::uint64_t inside = begin + cells - place.ordinal;
      const std::uint64_t some = std::min(end - begin - cells, place.count - inside);
      runs[count] = {.frame = engine_->store_->frame(section_.group, place.page, part_),
                     .cell = place.cell + static_cast<std::uint32_t>(inside),
                     .count = static_cast<std::uint32_t>(some)};
      cells += some;
      if (inside + some == place.count) places = places.subspan(1);
    }
    engine_->arena_.import_runs(layer, std::span(runs).first(count), content.first(cells * each));
    content = content.subspan(cells * each);
    begin += cells;
  }
}

// Some cells of the part at hand, or some of a state's numbers: about `most` bytes.
void LoadJob::fill_slice(std::uint64_t most) noexcept {
  const std::uint64_t bytes = sections_.part_bytes(section_.group, part_);
  if (!sections_.state(section_.group)) {
    const std::uint64_t count = std::min(section_.count - cell_, CellSections::cells_at_once(most, bytes));
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
