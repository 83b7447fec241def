// How an executor reads texts: the jobs of a reading and those of a step take turns on the same threads, and
// only those that write the cells of a conversation keep others out.

#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/encode_job.h"
#include "engine/executor.h"
#include "engine/executor_jobs.h"
#include "engine/texts.h"

namespace kvasir::engine {

// One job; whether it was the last.
Result<bool> Executor::advance_encode(EncodeJob& job) {
  if (job.writes_cells()) {
    return copy_between_jobs([&]() -> Result<bool> {
      KVASIR_TRY(job.check());
      return job.advance();
    });
  }
  {
    const Entered held(*this);
    KVASIR_TRY(check_open());
    KVASIR_TRY(job.check());
  }
  return job.advance();
}

Status Executor::encode(ConversationId id, std::span<const Token> source,
                        const std::function<bool(double)>& progress) {
  return base::within_memory([&]() -> Status {
    Held<EncodeJob> job(*this);
    {
      const Entered held(*this);
      KVASIR_TRY(leave_step(id));
      KVASIR_ASSIGN(std::unique_ptr<EncodeJob> begun, EncodeJob::begin(*engine_, id, source));
      job.set(std::move(begun));
    }
    for (bool done = false; !done;) {
      bool goes_on = !progress;  // also where it throws
      const model::PassProgress at = job->view().progress;
      if (progress) call_safely([&] { goes_on = progress(double{1} * at.layer / (at.layers + 1)); });
      if (!goes_on) return fail(Outcome::kCancelled, "the progress function has ended it");
      KVASIR_ASSIGN(done, advance_encode(*job));
    }
    const Entered held(*this);
    KVASIR_TRY(check_open());
    KVASIR_TRY(job->check());
    job->commit();
    changed();
    return {};
  });
}

Result<std::vector<std::vector<float>>> Executor::embed(std::span<const std::span<const Token>> texts,
                                                        EmbedWishes wishes) {
  {
    const Entered held(*this);
    KVASIR_TRY(check_open());
  }
  wishes.context = options().context;
  wishes.pass_tokens = options().pass_tokens;
  wishes.goes_on = [this, asked = std::move(wishes.goes_on)](std::uint64_t done) {
    bool goes_on = !asked;  // also where it throws
    if (asked) call_safely([&] { goes_on = asked(done); });
    return goes_on && !closing_.load();
  };
  return engine::embed(unlocked().model(), *pool_, texts, wishes);
}

}  // namespace kvasir::engine
