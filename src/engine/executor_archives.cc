// How an executor saves and loads: everything is read and written without its lock, cells are copied a little
// at a time between two jobs, and a save holds what it reads as a fork would.

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "archive/reader.h"
#include "archive/writer.h"
#include "base/log.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/archives.h"
#include "engine/encode_job.h"
#include "engine/executor.h"
#include "engine/executor_jobs.h"
#include "engine/load_job.h"
#include "engine/save_job.h"
#include "engine/saved.h"

namespace kvasir::engine {
namespace {

using Nanoseconds = std::chrono::nanoseconds;
using SteadyClock = std::chrono::steady_clock;

// The most that a pause is cut into, so that whoever closes the executor does not wait for long.
constexpr Nanoseconds kPauseMost = std::chrono::milliseconds(5);
constexpr double kLeastShare = 1e-3;

// Asks the user whether to go on.
Status report(const std::function<bool(const ArchiveProgress&)>& progress, std::uint64_t done,
              std::uint64_t total) {
  if (!progress) return {};
  bool goes_on = false;  // also where it throws
  call_safely([&] { goes_on = progress({done, total}); });
  if (goes_on) return {};
  return fail(Outcome::kCancelled, "the progress function has ended it");
}

std::string text_of(const ArchiveReport& about) {
  return std::to_string(about.conversations) + " conversations of " + std::to_string(about.tokens) +
         " tokens, " + std::to_string(about.bytes) + " bytes";
}

Status check_share(double background) {
  if (background >= 0 && background <= 1) return {};
  return fail(Outcome::kInvalidArgument,
              "a share of the time is a number from 0 to 1, not " + std::to_string(background),
              {.setting = "background"});
}

}  // namespace

// Leaves the others the rest of the time, where somebody else computes.
void Executor::pause_after(Nanoseconds spent, double share) {
  if (!(share < 1)) return;
  const double part = std::max(share, kLeastShare);
  auto left = std::chrono::duration_cast<Nanoseconds>(spent * ((1 - part) / part));
  const Entered held(*this);
  while (left.count() > 0 && stepping_ && !steps_here() && !closed_) {
    const auto start = SteadyClock::now();
    change_.wait_for(mutex_, std::min(left, kPauseMost));
    left -= SteadyClock::now() - start;
  }
}

Result<ArchiveReport> Executor::save(std::optional<ConversationId> only, archive::Sink& sink,
                                     const SaveOptions& options) {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_TRY(check_share(options.background));
    Held<SaveJob> job(*this);
    {
      const Entered held(*this);
      KVASIR_TRY(check_open());
      std::vector<ConversationId> ids;
      if (only) ids.push_back(*only);
      const std::span<const Conversation> all = engine_->conversations();
      for (std::size_t index = 0; index < all.size() && !only; ++index) {
        if (all[index].open()) ids.push_back(Engine::id_of(all[index], index));
      }
      KVASIR_ASSIGN(std::unique_ptr<SaveJob> begun, SaveJob::begin(*engine_, ids));
      job.set(std::move(begun));
    }
    // What is refused is refused before a byte is written.
    KVASIR_ASSIGN(archive::Writer writer, archive::Writer::begin(sink, options.compression));
    ArchiveReport about = report_of(job->saved());
    about.cell_bytes = job->bytes_total();
    if (options.compression == 0) KVASIR_TRY(sink.expect(expected_bytes(job->bytes_total())));
    KVASIR_TRY(write_small_sections(job->saved(), writer));
    KVASIR_TRY(write_cells(*job, writer, options));
    job.reset();
    KVASIR_TRY(writer.end());
    about.bytes = writer.bytes();
    base::log(LogLevel::kInfo, [&] { return "saved " + text_of(about); });
    return about;
  });
}

Status Executor::write_cells(SaveJob& job, archive::Writer& writer, const SaveOptions& options) {
  while (true) {
    KVASIR_TRY(report(options.progress, job.bytes_done(), job.bytes_total()));
    auto start = SteadyClock::now();
    SaveJob::State state = SaveJob::State::kGoesOn;
    while (state == SaveJob::State::kGoesOn) {
      KVASIR_ASSIGN(state, copy_between_jobs([&] { return job.advance(); }));
      if (state == SaveJob::State::kSection) KVASIR_TRY(writer.section(kCellsSection, job.content()));
      pause_after(SteadyClock::now() - start, options.background);
      start = SteadyClock::now();
    }
    if (state == SaveJob::State::kEnd) return {};
  }
}

Result<ArchiveReport> Executor::load(archive::Source& source, const LoadTarget& target,
                                     const LoadOptions& options) {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_TRY(check_share(options.background));
    KVASIR_ASSIGN(archive::Reader reader, archive::Reader::begin(source));
    KVASIR_ASSIGN(const Saved saved, read_small_sections(reader));
    ArchiveReport about = report_of(saved);
    const Origin mine = origin_of(unlocked().model(), unlocked().options().types);
    KVASIR_TRY(check_model(saved.origin, mine));
    if (target.into && saved.conversations.size() != 1) {
      return fail(Outcome::kInvalidArgument,
                  "the archive holds " + std::to_string(saved.conversations.size()) +
                      " conversations; one is wanted here, an executor loads them all",
                  {.wanted = 1, .available = saved.conversations.size()});
    }
    Status usable = check_cache(saved.origin, mine);
    Held<LoadJob> job(*this);
    if (usable) {
      KVASIR_TRY(begin_load(job, saved, target, false));
      about.cell_bytes = job->bytes_total();
      usable = read_cells(*job, reader, options);
      if (!usable) job.reset();
      const bool damaged = !usable && usable.error().code() == Outcome::kCorrupt;
      if (!usable && !(damaged && options.recompute)) return fail(std::move(usable).error());
    }
    if (!usable) {
      if (!options.recompute) return fail(std::move(usable).error());
      about.tokens_recomputed = about.tokens;
      about.cell_bytes = 0;
      KVASIR_TRY(begin_load(job, saved, target, true));
      KVASIR_TRY(read_sources(*job, options));
    }
    about.bytes = reader.bytes();
    if (target.prepare) KVASIR_TRY(target.prepare(saved.conversations));
    KVASIR_TRY(commit_load(job, target));
    base::log(LogLevel::kInfo, [&] {
      return "loaded " + text_of(about) + ", " + std::to_string(about.tokens_recomputed) +
             " of the tokens are computed again";
    });
    return about;
  });
}

Status Executor::begin_load(Held<LoadJob>& job, const Saved& saved, const LoadTarget& target,
                            bool recompute) {
  const Entered held(*this);
  KVASIR_TRY(check_open());
  if (target.into) KVASIR_TRY(engine_->look(*target.into));
  KVASIR_ASSIGN(std::unique_ptr<LoadJob> begun, LoadJob::begin(*engine_, saved, recompute));
  job.set(std::move(begun));
  return {};
}

// What conversations attend to whose tokens are queued.
Status Executor::read_sources(LoadJob& job, const LoadOptions& options) {
  for (std::size_t i = 0; i < job.conversations(); ++i) {
    if (!job.has_source(i)) continue;
    Held<EncodeJob> reading(*this);
    {
      const Entered held(*this);
      KVASIR_TRY(check_open());
      KVASIR_ASSIGN(std::unique_ptr<EncodeJob> begun, job.begin_source(i));
      reading.set(std::move(begun));
    }
    for (bool done = false; !done;) {
      KVASIR_TRY(report(options.progress, job.bytes_done(), job.bytes_total()));
      KVASIR_ASSIGN(done, advance_encode(*reading));
    }
    const Entered held(*this);
    KVASIR_TRY(check_open());
    reading->commit();
  }
  return {};
}

Status Executor::read_cells(LoadJob& job, archive::Reader& reader, const LoadOptions& options) {
  while (true) {
    KVASIR_TRY(report(options.progress, job.bytes_done(), job.bytes_total()));
    KVASIR_ASSIGN(const archive::Kind coming, reader.next());
    if (coming != kCellsSection) break;
    auto start = SteadyClock::now();
    KVASIR_ASSIGN(const std::span<const std::byte> content, reader.take());
    {
      const Entered held(*this);
      KVASIR_TRY(job.open_section(content));
    }
    bool goes_on = true;
    while (goes_on) {
      KVASIR_ASSIGN(goes_on, copy_between_jobs([&]() -> Result<bool> { return job.fill(); }));
      pause_after(SteadyClock::now() - start, options.background);
      start = SteadyClock::now();
    }
  }
  KVASIR_TRY(job.check_complete());
  return reader.end();
}

// A conversation that is loaded into is cancelled and leaves the step that it is in.
Status Executor::commit_load(Held<LoadJob>& job, const LoadTarget& target) {
  const Entered held(*this);
  KVASIR_TRY(check_open());
  if (!target.into) {
    const std::span<const ConversationId> ids = job->commit();
    if (target.loaded) target.loaded(ids);
  } else {
    KVASIR_ASSIGN(const Conversation* const conversation, std::as_const(*engine_).look(*target.into));
    if (conversation->reads_source)
      return fail(Outcome::kBusy, "the conversation's source is being read; cancel it, or wait for that");
    KVASIR_TRY(cancel_and_leave(*target.into));
    job->commit_into(*target.into);
  }
  changed();
  collect_due();
  call_due();
  const base::Unlock meanwhile(mutex_);
  job.reset();
  return {};
}

}  // namespace kvasir::engine
