// Many conversations over one model and one cache, advanced by atomic steps.
//
//   auto model = kvasir::Model::load("model.gguf");
//   auto executor = kvasir::Executor::create(*model);
//   auto talk = executor->conversation();
//   talk->prompt("Once upon a time");
//   auto story = talk->generate({.max_tokens = 64});
//   while (auto piece = story->next(); piece && *piece) std::cout << (*piece)->text;
//
// Steps are taken by whoever calls step() or run_until_idle(), or by an own worker between start() and
// stop(). A step takes full effect or none: until it is committed, every conversation is what it was before.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvasir/archive.h"
#include "kvasir/conversation.h"
#include "kvasir/model.h"
#include "kvasir/report.h"
#include "kvasir/result.h"

namespace kvasir {

// How keys or values are stored in the cache.
enum class CacheType : std::uint8_t { kF32, kF16, kBf16, kQ8_0, kQ4_0 };

struct ExecutorOptions {
  // Tokens that one conversation may reach, in a model with learned positions no more than there are.
  // Default: the trained length, as far as the pool holds it.
  std::optional<std::uint64_t> context = std::nullopt;
  // Tokens that the cache holds in all, rounded up to whole pages. Their memory is taken and written at once,
  // so that it is there later: a second or two for 2 GB. Default: the trained length, at most
  // 32,768, and no more than fits in half the free memory.
  std::optional<std::uint64_t> pool = std::nullopt;
  // Recurrent states that the cache holds beside them, for models that keep some: one for each conversation,
  // a second while it is in a step, and one for each checkpoint. Where there are too few, only so many
  // conversations go on in a step. Default: two each for the conversations of full length that the pool
  // holds, or for 24 where half the free memory is enough, and 16 more.
  std::optional<std::uint32_t> states = std::nullopt;
  CacheType keys = CacheType::kF16;
  CacheType values = CacheType::kF16;
  std::uint32_t page_cells = 32;    // cells in a page: 16, 32, ... 256
  std::uint32_t pass_tokens = 512;  // most tokens in a pass: 1 to 65,536
  bool share_prefixes = true;       // prompts begin with what the cache still holds of others

  // Where cells of idle conversations go by themselves when others want their room, least recently used
  // first, and come back from when their conversations are prompted: memory, and when that is full, a file
  // without a name in `spill_directory`. A disk needs some memory before it, at least a page of cells. 0: no
  // tier.
  std::uint64_t memory_tier_bytes = 0;
  std::uint64_t disk_tier_bytes = 0;
  // NOLINTNEXTLINE(readability-redundant-member-init): GCC warns whoever names other members alone
  std::string spill_directory = {};

  // Called, from whoever steps and with no lock held, when less than this many tokens are free after a step
  // and more were before it.
  std::uint64_t low_space_tokens = 0;
  std::function<void(const CacheInfo&)> on_low_space = nullptr;
};

// Where a step is, between two of its jobs.
struct JobView {
  std::uint32_t pass = 0;    // of this step, from 0
  std::uint32_t passes = 0;  // of this step
  std::uint32_t layer = 0;   // finished in this pass
  std::uint32_t layers = 0;  // of the model
  std::uint64_t job = 0;     // finished in this pass
};

enum class Verdict : std::uint8_t {
  kGoOn,
  kSuspend,  // leave the step open; the next one continues it
  kCancel,   // undo the step
};

// Bounds of a step.
struct Budget {
  // The call returns within 2 ms of it, where a job of the model takes less; what is not finished stays open.
  std::optional<std::chrono::nanoseconds> time = std::nullopt;
  std::uint64_t tokens = UINT64_MAX;  // most in one pass; one is always computed
  bool whole_queue = false;           // all that is queued as one unit, all or nothing; else one pass
  // Asked between two jobs, from the thread that steps, with no lock held.
  std::function<Verdict(const JobView&)> between_jobs = nullptr;
};

// How what a model made of a text's tokens becomes what the text is known by.
enum class Pooling : std::uint8_t {
  kOfModel,  // as the model's file says
  kNone,     // a vector for each token, one behind the other
  kMean,     // their mean
  kFirst,    // that of the first token, which stands for the text in some vocabularies
  kLast,     // that of the last token
};

struct EmbedOptions {
  Pooling pooling = Pooling::kOfModel;
  bool normalise = true;  // each vector to a length of 1
  // Called between two jobs, from the calling thread with no lock held, with the number of texts that are
  // done. To answer false ends it: kCancelled.
  std::function<bool(std::uint64_t)> progress = nullptr;
};

// A conversation that came out of an archive, with the id it had where it was saved.
struct LoadedConversation {
  ConversationId saved_as{};
  Conversation conversation;
};
struct Loaded {
  ArchiveReport report;
  std::vector<LoadedConversation> conversations;  // in the order in which they were saved
};

// Move-only; what it was moved away from answers kWrongState. Any thread may call anything. Conversations may
// outlive it: they then answer kWrongState. What a callback throws is swallowed (between_jobs then cancels
// its step); they may call anything that does not wait, and close or destroy this and every conversation.
class Executor {
 public:
  // kInvalidArgument names an option that makes no sense, such as a spill_directory that is not there (of a
  // disk tier; without one it is not looked at); kNoSpace where the pool does not fit into memory, with the
  // bytes; kIo where no file can be made in spill_directory; kOutOfMemory.
  [[nodiscard]] static Result<Executor> create(const Model& model, const ExecutorOptions& options = {});

  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;
  // Stops the worker and ends all conversations.
  ~Executor();

  // A new, empty conversation. kOutOfMemory; kWrongState after close().
  [[nodiscard]] Result<Conversation> conversation(const ConversationOptions& options = {});

  // One step, or the continuation of an open one. What concerns one conversation is in its report; an Error
  // concerns the whole step, which then has not happened: kOutOfMemory, kComputeFailed; kBusy while another
  // thread or a worker steps, and from a callback of a step; kWrongState after close().
  [[nodiscard]] Result<StepReport> step(const Budget& budget = {});

  // Steps until nothing is left to do, or the budget is used up (its `time` is that of all steps together).
  // The report is the sum, with one line for each conversation of any of the steps; its outcome is kIdle,
  // kSuspended (the time is used up), kStalled or kCancelled. Errors as step().
  [[nodiscard]] Result<StepReport> run_until_idle(const Budget& budget = {});

  // A vector for each of any number of texts, by a model that reads both ways (with Pooling::kNone one for
  // each token): embedding_size() floats. The same bits whatever else is read, beside it or at once, and
  // however long a pass is. Texts get the begin and end tokens that the vocabulary asks for, tokens are taken
  // as they are. Computes at once, beside the steps of others; takes no room in the cache.
  // kUnsupported for other models, and for a pooling that this one cannot do; kInvalidArgument names an empty
  // text or a token outside the vocabulary; kNoSpace for a text longer than the context, with the numbers;
  // kCancelled; kWrongState after close(); kOutOfMemory.
  [[nodiscard]] Result<std::vector<std::vector<float>>> embed(std::span<const std::string> texts,
                                                              const EmbedOptions& options = {});
  [[nodiscard]] Result<std::vector<std::vector<float>>> embed(std::span<const std::vector<Token>> texts,
                                                              const EmbedOptions& options = {});

  // Undoes an open, suspended step. Its tokens are queued again. kBusy while a thread steps; kWrongState
  // after close().
  [[nodiscard]] Status abandon_step();

  // A worker that steps whenever there is something to do. kWrongState where there is one, and after close();
  // kOutOfMemory where the system starts no thread. stop() waits for the step it is in; kWrongState from the
  // worker's own callbacks, which must not wait for themselves.
  [[nodiscard]] Status start();
  [[nodiscard]] Status stop();

  [[nodiscard]] CacheInfo cache() const noexcept;
  [[nodiscard]] Metrics metrics() const noexcept;
  [[nodiscard]] std::uint64_t context() const noexcept;  // tokens that one conversation may reach

  // Moves cells together, about `budget` tokens of them; answers how many. No bit of any logits changes.
  // Steps go on meanwhile, and a callback of a step may call it. kUnsupported where the model keeps recurrent
  // states alone; kOutOfMemory, with what has moved moved; kWrongState after close().
  Result<std::uint64_t> compact(std::uint64_t budget = UINT64_MAX);

  // As Conversation::save(), of every conversation at one moment; what they share is written once.
  Result<ArchiveReport> save(const std::string& path, const SaveOptions& options = {}) const;
  Result<ArchiveReport> save(const WriteBytes& write, const SaveOptions& options = {}) const;
  Result<ArchiveReport> save(ArchiveStore& store, const std::string& name,
                             const SaveOptions& options = {}) const;
  Result<ArchiveReport> save(std::vector<std::byte>& bytes, const SaveOptions& options = {}) const;
  [[nodiscard]] Result<std::vector<std::byte>> save_bytes(const SaveOptions& options = {}) const;

  // All conversations of an archive as new ones, or none of them; what they shared they share again. Errors
  // as Conversation::load().
  [[nodiscard]] Result<Loaded> load(const std::string& path, const LoadOptions& options = {});
  [[nodiscard]] Result<Loaded> load(const ReadBytes& read, const LoadOptions& options = {});
  [[nodiscard]] Result<Loaded> load(ArchiveStore& store, const std::string& name,
                                    const LoadOptions& options = {});
  [[nodiscard]] Result<Loaded> load(std::span<const std::byte> bytes, const LoadOptions& options = {});

  // Ends everything, as the destructor does. Calls from callbacks of this executor are legal.
  void close() noexcept;

 private:
  friend struct api::Inside;
  explicit Executor(std::shared_ptr<api::Core> core) noexcept;
  [[nodiscard]] Result<std::shared_ptr<api::Core>> core() const;
  template <class Open>
  [[nodiscard]] Result<Loaded> load_all(const Open& open, const LoadOptions& options);
  std::shared_ptr<api::Core> core_;
};

}  // namespace kvasir
