#include "cli/logits_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archive/stream.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include "engine/archives.h"
#include "pages/ticket.h"
#include "sample/sampler.h"

namespace kvasir::cli {
namespace {

using engine::ConversationId;
using engine::JobView;
using engine::LogitsWanted;
using engine::StepReport;
using engine::Verdict;
using pages::EditOperation;

constexpr std::size_t kRewound = 40;      // tokens computed and taken back
constexpr std::uint32_t kOtherPage = 16;  // cells in a page of the pool that an archive is loaded into

struct ViaName {
  std::string_view name;
  Via::Kind kind;
  std::size_t numbers;
};
constexpr std::array kViaNames = {
    ViaName{"fork", Via::Kind::kFork, 0},       ViaName{"rewind", Via::Kind::kRewind, 0},
    ViaName{"abort", Via::Kind::kAbort, 0},     ViaName{"suspend", Via::Kind::kSuspend, 0},
    ViaName{"compact", Via::Kind::kCompact, 0}, ViaName{"prefix", Via::Kind::kPrefix, 0},
    ViaName{"swap", Via::Kind::kSwap, 2},       ViaName{"shift", Via::Kind::kShift, 2},
    ViaName{"divide", Via::Kind::kDivide, 1},   ViaName{"archive", Via::Kind::kArchive, 0},
    ViaName{"spill", Via::Kind::kSpill, 0},
};

// The numbers of "name:A:B" behind the name, or nothing where one is no number.
std::optional<std::vector<std::uint64_t>> numbers_of(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view word = text.substr(0, text.find(':'));
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(word.size());
  }
  return numbers;
}

Verdict go_on_unless_interrupted(const JobView&) {
  return interrupted() ? Verdict::kCancel : Verdict::kGoOn;
}

std::unexpected<Error> interrupted_error() {
  return fail(Outcome::kCancelled, "interrupted; no logits were written");
}

}  // namespace

Result<Via> parse_via(const std::string& text) {
  const std::string_view name = std::string_view(text).substr(0, text.find(':'));
  const auto numbers = numbers_of(std::string_view(text).substr(name.size()));
  for (const ViaName& known : kViaNames) {
    if (known.name != name || !numbers || numbers->size() != known.numbers) continue;
    Via via{known.kind};
    if (known.numbers > 0) via.first = (*numbers)[0];
    if (known.numbers > 1) via.second = (*numbers)[1];
    return via;
  }
  return fail(Outcome::kInvalidArgument,
              "--via takes fork, rewind, abort, suspend, compact, prefix, archive, spill, swap:A:B, "
              "shift:KEEP:COUNT or divide:D, not '" +
                  text + "'");
}

Status LogitsRun::open(const Via& via) {
  if (via.kind == Via::Kind::kCompact) KVASIR_TRY(scatter());
  KVASIR_ASSIGN(main_, engine_->open());
  KVASIR_TRY(read_source(main_, source_));
  for (std::uint32_t i = 0; i < beside_; ++i) {
    KVASIR_ASSIGN(const ConversationId other, open_other());
    others_.push_back(other);
  }
  return {};
}

// One that reads a source of its own, where the model reads any.
Result<ConversationId> LogitsRun::open_other() {
  KVASIR_ASSIGN(const ConversationId other, engine_->open());
  KVASIR_TRY(read_source(other, random_tokens(source_.size())));
  return other;
}

Status LogitsRun::read_source(ConversationId id, std::span<const Token> source) {
  if (source.empty()) return {};
  Status read = engine_->encode(id, source, go_on_unless_interrupted);
  if (!read && interrupted()) return interrupted_error();
  return read;
}

// Fills the whole pool with conversations of at most so many tokens. Room for the sources of ours and the
// others is kept free meanwhile: they cannot lie in what becomes free between cells of tokens.
Status LogitsRun::fill_pool(std::uint64_t each) {
  std::vector<ConversationId> readers;
  for (std::uint32_t i = 0; i <= beside_ && !source_.empty(); ++i) {
    KVASIR_ASSIGN(const ConversationId reader, open_other());
    readers.push_back(reader);
  }
  for (std::uint64_t free = engine_->tokens_free(); free > 1; free = engine_->tokens_free()) {
    KVASIR_ASSIGN(const ConversationId filler, engine_->open());
    fillers_.push_back(filler);
    KVASIR_TRY(engine_->fill(filler, std::vector<Token>(std::min({free, engine_->options().context, each}))));
  }
  for (const ConversationId reader : readers) KVASIR_TRY(engine_->close(reader));
  return {};
}

// Fills the whole pool with conversations and takes every second cell of each back; where cells cannot be
// taken out of a conversation, every second conversation, each of half a page more than one.
Status LogitsRun::scatter() {
  if (!engine_->model().network().positions_can_move) {
    KVASIR_TRY(fill_pool(engine_->options().page_cells * std::uint64_t{3} / 2));
    for (std::size_t i = 0; i < fillers_.size(); i += 2) KVASIR_TRY(engine_->close(fillers_[i]));
    std::vector<ConversationId> left;
    for (std::size_t i = 1; i < fillers_.size(); i += 2) left.push_back(fillers_[i]);
    fillers_.swap(left);
    return {};
  }
  // No longer than the shortest window: what lies behind one would leave all cells to the other groups.
  std::uint64_t each = UINT64_MAX;
  for (const model::CacheGroup& group : engine_->model().network().groups) {
    if (group.kind == pages::GroupKind::kWindow) each = std::min(each, group.width);
  }
  KVASIR_TRY(fill_pool(each));
  std::vector<EditOperation> operations;
  for (const ConversationId filler : fillers_) {
    KVASIR_ASSIGN(const std::span<const Token> held, engine_->tokens(filler));
    operations.clear();
    for (std::uint64_t i = held.size() / 2; i-- > 0;) {
      operations.push_back({EditOperation::Kind::kRemove, 2 * i, 1, 0});
    }
    KVASIR_TRY(engine_->edit(filler, operations));
  }
  return {};
}

Status LogitsRun::piece(std::span<const Token> ids) {
  KVASIR_TRY(engine_->prompt(main_, ids, LogitsWanted::kEvery));
  KVASIR_TRY(prompt_others(ids.size()));
  if (abort_next_) KVASIR_TRY(stop_in_last_layer());
  return drain();
}

Status LogitsRun::prompt_others(std::size_t count) {
  for (const ConversationId other : others_) KVASIR_TRY(prompt_random(other, count));
  return {};
}

Status LogitsRun::prompt_random(ConversationId id, std::size_t count) {
  KVASIR_TRY(engine_->prompt(id, random_tokens(count), LogitsWanted::kLast));
  return {};
}

std::vector<Token> LogitsRun::random_tokens(std::size_t count) {
  std::vector<Token> random(count);
  for (Token& token : random) token = next_random();
  return random;
}

// Steps until nothing of ours is queued.
Status LogitsRun::drain() {
  while (true) {
    KVASIR_ASSIGN(const std::uint64_t queued, engine_->queued(main_));
    if (queued == 0) return {};
    KVASIR_TRY(step());
  }
}

Status LogitsRun::step() {
  const auto suspend_always = [](const JobView&) {
    return interrupted() ? Verdict::kCancel : Verdict::kSuspend;
  };
  while (true) {
    auto ran = suspend_ ? engine_->step({.between_jobs = suspend_always})
                        : engine_->step({.between_jobs = go_on_unless_interrupted});
    KVASIR_ASSIGN(const StepReport report, std::move(ran));
    if (report.outcome == Outcome::kCancelled) return interrupted_error();
    if (report.outcome == Outcome::kSuspended) {
      ++report_.jobs_suspended;
      continue;
    }
    count(report);
    return {};
  }
}

void LogitsRun::count(const StepReport& report) {
  ++report_.steps;
  report_.passes += report.passes;
  for (const std::vector<ConversationId>& pass : report.shared_passes) {
    if (std::ranges::find(pass, main_) == pass.end()) continue;
    report_.beside_in_same_pass = std::max<std::uint64_t>(report_.beside_in_same_pass, pass.size() - 1);
  }
}

// Runs everything queued as one unit up to the last layer of its last pass and undoes it; nothing may have
// changed.
Status LogitsRun::stop_in_last_layer() {
  abort_next_ = false;
  KVASIR_ASSIGN(const std::uint64_t before, engine_->digest());
  // Between the first two of these jobs something of the last layer is done, even where it is the only one.
  std::uint32_t in_last_layer = 0;
  const auto verdict = [&](const JobView& view) {
    const bool last = view.pass + 1 == view.passes && view.progress.layer + 1 == view.progress.layers;
    return (last && ++in_last_layer == 2) || interrupted() ? Verdict::kCancel : Verdict::kGoOn;
  };
  KVASIR_ASSIGN(const StepReport report, engine_->step({.whole_queue = true, .between_jobs = verdict}));
  if (interrupted()) return interrupted_error();
  if (report.outcome != Outcome::kCancelled) {
    return fail(Outcome::kWrongState, "the step ended before it could be stopped in its last layer");
  }
  report_.layers_undone += report.layers_undone + 1;  // and the one that was begun
  KVASIR_ASSIGN(const std::uint64_t after, engine_->digest());
  if (before != after) return fail(Outcome::kInternal, "a step that was stopped has left something behind");
  return {};
}

Status LogitsRun::act(const Via& via, std::span<const Token> held) {
  switch (via.kind) {
    case Via::Kind::kNone:
      return {};
    case Via::Kind::kFork:
      return fork();
    case Via::Kind::kRewind:
      return rewind(held.size());
    case Via::Kind::kAbort:
      abort_next_ = true;
      return {};
    case Via::Kind::kSuspend:
      suspend_ = true;
      return {};
    case Via::Kind::kCompact:
      return compact();
    case Via::Kind::kPrefix:
      return find_again(held);
    case Via::Kind::kSwap:
      report_.cells_moved += 2;
      return engine_->swap_cells(main_, via.first, via.second);
    case Via::Kind::kShift:
      return shift(via, held.size());
    case Via::Kind::kDivide:
      return divide(via, held.size());
    case Via::Kind::kArchive:
      return move_by_archive();
    case Via::Kind::kSpill:
      return spill();
  }
  return {};
}

// The rest runs in a fork; the parent goes on beside it with other tokens.
Status LogitsRun::fork() {
  KVASIR_ASSIGN(const ConversationId child, engine_->fork(main_));
  KVASIR_ASSIGN(const pages::Holdings holdings, engine_->holdings(child));
  report_.cells_shared += holdings.shared;
  others_.push_back(main_);
  main_ = child;
  return {};
}

Status LogitsRun::rewind(std::uint64_t length) {
  KVASIR_TRY(prompt_random(main_, kRewound));
  KVASIR_TRY(prompt_others(kRewound));
  KVASIR_TRY(drain());
  KVASIR_TRY(engine_->rewind(main_, length));
  report_.cells_dropped += kRewound;
  return {};
}

// Where no cell can be taken out of a conversation, fresh pages have come free with the fillers: ours lies
// scattered when its own cells have changed places.
Status LogitsRun::exchange_cells() {
  KVASIR_ASSIGN(const std::span<const Token> held, engine_->tokens(main_));
  const std::uint64_t count = held.size();
  for (std::uint64_t i = 0; i + 1 < count / 2; i += 2)
    KVASIR_TRY(engine_->swap_cells(main_, i, count - 1 - i));
  return {};
}

Status LogitsRun::compact() {
  if (!engine_->model().network().positions_can_move) KVASIR_TRY(exchange_cells());
  for (const ConversationId filler : fillers_) KVASIR_TRY(engine_->close(filler));
  fillers_.clear();
  KVASIR_ASSIGN(const std::uint64_t moved, engine_->compact(UINT64_MAX));
  if (moved == 0) return fail(Outcome::kWrongState, "no cell lay scattered, so compaction moved none");
  report_.cells_moved += moved;
  return {};
}

// Closes ours; a new conversation of the same beginning finds it through the index.
Status LogitsRun::find_again(std::span<const Token> held) {
  if (!source_.empty()) {
    return fail(Outcome::kUnsupported,
                "each conversation reads a source of its own, so a new one finds nothing of another's");
  }
  KVASIR_TRY(engine_->close(main_));
  KVASIR_ASSIGN(main_, engine_->open());
  KVASIR_ASSIGN(const std::uint64_t reused, engine_->prompt(main_, held, LogitsWanted::kLast));
  if (reused == 0) {
    return fail(Outcome::kWrongState,
                fmt::format("{} tokens hold no whole page of {} cells to be found again; a smaller "
                            "--page or a later --at helps",
                            held.size(), engine_->options().page_cells));
  }
  report_.cells_reused += reused;
  return drain();
}

Status LogitsRun::shift(const Via& via, std::uint64_t length) {
  if (via.first > length || via.second > length - via.first) {
    return fail(Outcome::kInvalidArgument,
                fmt::format("{} tokens cannot keep {} and drop {}", length, via.first, via.second));
  }
  KVASIR_TRY(engine_->shift_left(main_, via.first, via.second));
  report_.cells_dropped += via.second;
  return {};
}

Status LogitsRun::divide(const Via& via, std::uint64_t length) {
  const EditOperation operation{EditOperation::Kind::kDivide, 0, length,
                                static_cast<std::int64_t>(std::min<std::uint64_t>(via.first, INT64_MAX))};
  return engine_->edit(main_, {&operation, 1});
}

// Saves everybody to a file, ends the engine, and loads them into another whose cells are held every second
// one, in pages of another size.
Status LogitsRun::move_by_archive() {
  std::uint64_t number = 0;
  KVASIR_TRY(base::system_entropy().fill(std::as_writable_bytes(std::span(&number, 1))));
  const std::string path = fmt::format("{}/kvasir-{:016x}.kvar", kTemporaryDirectory, number);
  const base::RemoveAtEnd removed(base::system_files(), path);
  std::vector<ConversationId> all = {main_};
  all.insert(all.end(), others_.begin(), others_.end());
  {
    KVASIR_ASSIGN(const auto sink, archive::file_sink(base::system_files(), path));
    KVASIR_TRY(engine::save(*engine_, all, *sink, {}));
  }
  const std::uint32_t page_cells = engine_->options().page_cells == kOtherPage ? kOtherPage * 2 : kOtherPage;
  engine_.reset();
  KVASIR_ASSIGN(engine_, make_engine_(page_cells));
  KVASIR_TRY(scatter());
  KVASIR_ASSIGN(auto file, base::system_files().open_read(path));
  const auto source = archive::file_source(std::move(file));
  KVASIR_ASSIGN(const engine::LoadedIds loaded, engine::load(*engine_, *source));
  main_ = loaded.ids.front();
  others_.assign(loaded.ids.begin() + 1, loaded.ids.end());
  report_.bytes_loaded += loaded.report.cell_bytes;
  report_.tokens_recomputed += loaded.report.tokens_recomputed;
  return {};
}

Status LogitsRun::put_away(ConversationId id) {
  engine::Moved moved = engine::Moved::kSome;
  while (moved != engine::Moved::kNothing) {
    KVASIR_ASSIGN(moved, engine_->spill(id));
    if (moved == engine::Moved::kWaits) engine_->wait_for_disk();
    if (interrupted()) return interrupted_error();
  }
  while (engine_->wait_for_disk()) {
  }
  return {};
}

// Out of the pool, into memory and on to the disk; the next piece brings it back. What memory still holds of
// it goes to the disk when another takes that memory.
Status LogitsRun::spill() {
  KVASIR_TRY(put_away(main_));
  report_.bytes_spilled += engine_->moves().bytes_spilled;
  KVASIR_ASSIGN(const ConversationId other, open_other());
  KVASIR_TRY(engine_->fill(other, std::vector<Token>(std::min<std::uint64_t>(engine_->options().page_cells,
                                                                             engine_->options().context))));
  KVASIR_TRY(put_away(other));
  report_.bytes_on_disk = engine_->tier_usage().disk_bytes;
  KVASIR_TRY(engine_->close(other));
  if (report_.bytes_on_disk >= report_.bytes_spilled) return {};
  return fail(Outcome::kNoSpace, fmt::format("only {} of {} bytes that left the pool lie on the disk",
                                             report_.bytes_on_disk, report_.bytes_spilled));
}

LogitsReport LogitsRun::report() const {
  LogitsReport report = report_;
  report.bytes_returned = engine_->moves().bytes_returned;
  report.tokens_recomputed += engine_->moves().tokens_recomputed;
  return report;
}

Token LogitsRun::next_random() {
  const double draw = sample::keyed_uniform(beside_, drawn_++);
  return static_cast<Token>(draw * static_cast<double>(engine_->model().sizes().vocabulary));
}

}  // namespace kvasir::cli
