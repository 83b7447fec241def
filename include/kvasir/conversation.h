// A conversation: a handle on one token history with its cells, queue and draws.
//
// Any thread may call. Calls take effect at once, or answer an Error and change nothing. While a conversation
// is part of an open step, queries, fork() and prompt() act on what is committed; cancel() and close() take
// it out of the step; edits wait for the step where a worker runs, and answer kBusy where none does or from a
// callback.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kvasir/archive.h"
#include "kvasir/generation.h"
#include "kvasir/model.h"
#include "kvasir/report.h"
#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir {

namespace api {
class Core;
struct Inside;
}  // namespace api

struct ConversationOptions {
  int priority = 0;        // higher goes first
  bool pinned = false;     // never gives up its cells to make room for others
  std::uint64_t salt = 0;  // beginnings are shared only among conversations of one salt
  // Tokens it may reach; default: the executor's context.
  std::optional<std::uint64_t> max_length = std::nullopt;
  std::optional<std::uint64_t> seed = std::nullopt;  // of its draws; default: a new one, see seed()
};

// Vectors in the place of tokens, one behind the other, embedding_size() floats each. All must be finite.
// What these refer to is copied by the call that takes it.
struct Embeddings {
  std::span<const float> values;
};
struct Text {
  std::string_view text;
  TextOptions options;
};
using PromptPart = std::variant<std::span<const Token>, Text, Embeddings>;

struct PromptOptions {
  bool every_logit = false;  // keep the row of logits of each of these tokens, not of the last alone
};

struct EncodeOptions {
  // Called now and then from the calling thread with no lock held, with the share that is done (0 to 1). To
  // answer false ends it: kCancelled.
  std::function<bool(double)> progress = nullptr;
};

// One change of a conversation's history.
struct EditOperation {
  enum class Kind : std::uint8_t {
    kRemove,  // takes the tokens [first, first + count) out; those behind move up, positions stay
    kMove,    // adds `amount` to their positions
    kDivide,  // divides their positions by `amount`, rounding down
  };
  Kind kind = Kind::kRemove;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::int64_t amount = 0;
};

enum class ConversationState : std::uint8_t {
  kEmpty,        // nothing computed, nothing queued
  kReady,        // all is computed, the last token's logits are there
  kNeedsPrompt,  // all is computed, but there are no logits: prompt or refresh() it
  kQueued,       // something waits to be computed
  kComputing,    // it is part of an open step
  kWaiting,      // it waits for room
  kClosed,
  kSpilled,  // all is computed, and lies at least in part in a tier; what is prompted brings it back
  kDropped,  // its cells are given up; what is prompted computes its tokens again first
};

// Move-only; what it was moved away from answers as a closed one. The destructor closes it, without waiting
// for anything.
class Conversation {
 public:
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  // The same after close(). UINT64_MAX, which names nobody, where it was moved away.
  [[nodiscard]] ConversationId id() const noexcept;

  // Queues tokens, text, vectors, or a mixture, of any length; nothing is computed before a step. Answers how
  // many tokens were queued. Prompting while something is queued appends. All or nothing.
  // kInvalidArgument: a token outside the vocabulary, a number that is not finite, a length that is no
  // multiple of embedding_size(), nothing at all (an empty text that begins a conversation is its begin
  // token); kNoSpace: longer than the conversation may get, or than the whole cache, with the numbers;
  // kWrongState while generate() goes on, and after close(); kOutOfMemory.
  Result<std::uint64_t> prompt(std::span<const Token> tokens, const PromptOptions& options = {});
  Result<std::uint64_t> prompt(std::string_view text, const TextOptions& text_options = {},
                               const PromptOptions& options = {});
  Result<std::uint64_t> prompt(const Embeddings& vectors, const PromptOptions& options = {});
  Result<std::uint64_t> prompt(std::span<const PromptPart> parts, const PromptOptions& options = {});

  // Reads a source with the encoder of an encoder-decoder model, as one unit, and answers when that is done:
  // all of it, or nothing has changed. What is prompted or generated from then on attends to it, in this
  // conversation and in its forks; without a prompt, generate() begins with the model's start token. Another
  // source takes its place once the conversation is cleared. A text ends with the end token where the
  // vocabulary asks for one. cancel() and close() end it.
  // kUnsupported where the model reads no source; kInvalidArgument for an empty source or a token outside the
  // vocabulary; kNoSpace with the numbers; kWrongState where the conversation has tokens, which belong to
  // another source, and after close(); kBusy where it is read already, or is part of an open step that no
  // worker ends; kCancelled; kOutOfMemory. prompt() without a source is kWrongState, and kBusy meanwhile.
  [[nodiscard]] Status encode(std::span<const Token> source, const EncodeOptions& options = {});
  [[nodiscard]] Status encode(std::string_view source, const EncodeOptions& options = {});

  // Makes the conversation hold exactly `tokens`: keeps the longest common beginning, takes the rest back and
  // queues what is missing, at least the last token unless its logits are there. Answers how many were kept.
  // Errors as prompt() and edit().
  Result<std::uint64_t> prompt_to(std::span<const Token> tokens);

  // Waits until nothing is queued; where no worker runs, by taking steps itself. kNoSpace where it waits for
  // room that nobody will give back; kIo and kCorrupt where its cells cannot be read back from a tier, until
  // it is prompted again: drop() then lets its tokens be computed again; kCancelled, kComputeFailed,
  // kOutOfMemory as its step reported; kWrongState after close(), and from a callback where it would have to
  // wait.
  [[nodiscard]] Status wait();
  // As wait(), at most so long: false where that was not enough. Takes no steps itself.
  [[nodiscard]] Result<bool> wait_for(std::chrono::nanoseconds time);
  // Called once, from whoever steps and with no lock held, when nothing is queued any more, or when the
  // conversation is cancelled or fails. At once where nothing is queued. kWrongState after close().
  [[nodiscard]] Status when_ready(std::function<void(const Status&)> callback);

  // The row of logits of the last token but `back`: vocabulary() floats. It is immutable and lives as long as
  // somebody holds it. Rows before the last are there where PromptOptions::every_logit asked for them.
  // kNeedsPrompt where there is none, or something is queued; kInvalidArgument where there is no such token.
  [[nodiscard]] Result<std::shared_ptr<const std::vector<float>>> logits(std::uint64_t back = 0) const;

  // A token drawn from that row; it is not added: prompt() it to go on with it. Errors as logits();
  // kInvalidArgument names a setting that is out of range; kOutOfMemory.
  [[nodiscard]] Result<Token> sample(const Sampler& sampler = {}, std::uint64_t back = 0) const;

  // The same from a row of the caller's own making, such as the rows of two conversations combined.
  // kInvalidArgument where it has not vocabulary() numbers.
  [[nodiscard]] Result<Token> sample_row(std::span<const float> row, const Sampler& sampler = {}) const;

  // Draws and computes token after token, see generation.h. What is queued is computed first. kNeedsPrompt
  // where there is nothing to go on from; kWrongState while another generation goes on; kInvalidArgument
  // names an option that makes no sense; kOutOfMemory.
  [[nodiscard]] Result<Generation> generate(const GenerateOptions& options = {});

  // A new conversation with the same history, queue and logits. Nothing is copied in the cache, now or later.
  // Its draws have a seed of their own, derived from this one's, unless `keep_seed`. kOutOfMemory;
  // kWrongState after close().
  [[nodiscard]] Result<Conversation> fork(bool keep_seed = false);

  // Several changes as one, all or none, each applied to what the one before left. kInvalidArgument for a
  // range that is not there, a divisor below 1, a position out of range; kUnsupported where this model's
  // positions cannot move; kNoSpace where keys must be rewritten and there is no room; kBusy as above;
  // kWrongState while something is queued, generate() goes on, and after close(); kOutOfMemory.
  [[nodiscard]] Status edit(std::span<const EditOperation> operations);

  // Keeps the first `length` tokens. In a model that keeps recurrent states, or windows, those of that moment
  // may be gone: the nearest earlier ones that were kept are then restored, and the tokens from there on (see
  // rewind_cost()) are computed again before what is prompted next. Until then edits other than this, spill()
  // and drop() answer kWrongState. kUnsupported where embedding vectors would have to be computed again, or
  // tokens behind an edit, which would not be what they were; else as edit().
  [[nodiscard]] Status rewind(std::uint64_t length);

  // Short forms. shift_left() drops `count` tokens after the first `keep` and moves the rest up, positions
  // and all.
  [[nodiscard]] Status remove(std::uint64_t first, std::uint64_t count);
  [[nodiscard]] Status shift_left(std::uint64_t keep, std::uint64_t count);
  // Nothing is left, and nothing queued: cancel() and rewind(0) in one. kBusy as above; kWrongState after
  // close(); kOutOfMemory, then the queue may be gone.
  [[nodiscard]] Status clear();

  // Tokens that would have to be computed again after rewind(length), those that are dropped included.
  // kInvalidArgument beyond the length.
  [[nodiscard]] Result<std::uint64_t> rewind_cost(std::uint64_t length) const;

  // Queues the last token again, so that its logits come: after an edit that left none. Nothing to do where
  // they are there. kNeedsPrompt for an empty conversation; kUnsupported where the last is an embedding
  // vector; errors as edit().
  [[nodiscard]] Status refresh();

  // The draws go on with this seed. kWrongState after close().
  [[nodiscard]] Status reseed(std::uint64_t seed);
  [[nodiscard]] std::uint64_t seed() const noexcept;

  // What is computed, kEmbedded in the place of vectors. kOutOfMemory; kWrongState after close().
  [[nodiscard]] Result<std::vector<Token>> tokens() const;
  [[nodiscard]] std::uint64_t length() const noexcept;  // tokens computed; 0 after close()
  [[nodiscard]] ConversationState state() const noexcept;
  [[nodiscard]] ConversationInfo info() const noexcept;

  // Whether so many more tokens fit now, behind those that are queued and those that a generation at work
  // still draws. false after close().
  [[nodiscard]] bool fits(std::uint64_t tokens) const noexcept;
  // Makes sure that so many more fit, counted as fits() counts, in place of what was reserved before; its
  // cells then stay in the pool until that is used up, or 0 is reserved. What lies in a tier is brought back
  // first. Prompting and generating use the reservation up. kNoSpace with the numbers; kOutOfMemory;
  // kWrongState after close().
  [[nodiscard]] Status reserve(std::uint64_t tokens);

  // As ConversationOptions says, from the next step on. kWrongState after close().
  [[nodiscard]] Status set_priority(int priority);
  [[nodiscard]] Status set_pinned(bool pinned);

  // Writes an archive of the conversation as it is committed now, with what is queued: to a file, which is
  // replaced once all is there and not before, to a function, to memory, whose bytes are written over, or to
  // a store under a name. Others go on meanwhile, and so may this one. It never writes a part of a step.
  // kInvalidArgument for a compression or name that cannot be; kNoSpace where what is promised to it counts
  // on cells that would be kept meanwhile; kCancelled where options.progress says so; kNotFound and kIo for a
  // path or store; whatever the function answers; kWrongState after close(); kOutOfMemory. Where it fails on
  // the way `bytes` are none.
  Result<ArchiveReport> save(const std::string& path, const SaveOptions& options = {}) const;
  Result<ArchiveReport> save(const WriteBytes& write, const SaveOptions& options = {}) const;
  Result<ArchiveReport> save(ArchiveStore& store, const std::string& name,
                             const SaveOptions& options = {}) const;
  Result<ArchiveReport> save(std::vector<std::byte>& bytes, const SaveOptions& options = {}) const;
  [[nodiscard]] Result<std::vector<std::byte>> save_bytes(const SaveOptions& options = {}) const;

  // Makes this the one conversation of an archive: history, queue, logits, draws and settings, in any cache
  // of this model that has room beside what this one holds. What it was is cancelled and gone, once all has
  // been read and agrees with its checksums; until then, and on error, nothing has changed. kNotFound and kIo
  // for a path or store; kCorrupt for what is no archive, or damaged; kUnsupported names what differs: the
  // model, the vocabulary, the rotary table, the type of the cache, the numerics or the version; kNoSpace
  // where it is longer than it may get here or the cache has no room, with the numbers; kInvalidArgument for
  // an archive of several; kBusy as above; kCancelled; kWrongState after close(); kOutOfMemory.
  Result<ArchiveReport> load(const std::string& path, const LoadOptions& options = {});
  Result<ArchiveReport> load(const ReadBytes& read, const LoadOptions& options = {});
  Result<ArchiveReport> load(ArchiveStore& store, const std::string& name, const LoadOptions& options = {});
  Result<ArchiveReport> load(std::span<const std::byte> bytes, const LoadOptions& options = {});

  // Puts its cells away into a tier now, instead of when others want their room; those that others use stay.
  // What is prompted brings them back; everything else goes on meanwhile. kUnsupported without tiers; kBusy
  // as above; kWrongState while something is queued, generate() goes on, and after close(); kNoSpace where
  // the tiers are full, kIo where the disk refuses: what is put away by then stays so; kOutOfMemory. What was
  // reserved is given back.
  [[nodiscard]] Status spill();

  // Gives its cells up and keeps tokens and logits: what is prompted computes the tokens again first, to the
  // same bits. kUnsupported where they cannot be, because some were removed, moved or divided, or are
  // vectors; else as spill(). An archive of it has its tokens queued.
  [[nodiscard]] Status drop();

  // Takes back everything queued, ends generate(), and takes the conversation out of an open step. What was
  // committed stays. kWrongState after close().
  [[nodiscard]] Status cancel();

  // Gives everything back. Further calls answer kWrongState.
  void close() noexcept;

 private:
  friend class Executor;
  struct Handle;
  explicit Conversation(std::unique_ptr<Handle> handle) noexcept;
  template <class Change>
  [[nodiscard]] Status set(const Change& change);
  std::unique_ptr<Handle> handle_;
};

}  // namespace kvasir
