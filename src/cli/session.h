// What every verb that runs a model has in common: its flags, loading with progress, and an engine of the
// right size.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/threads.h"
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "model/model.h"
#include "parallel/thread_pool.h"
#include "text/tokenizer.h"

namespace kvasir::cli {

// Where what lives no longer than the program is put on a disk.
inline constexpr std::string_view kTemporaryDirectory = "/tmp";

// -m, --threads, --ctx, --pool, --kv, --page, --pass as interfaces fix them.
struct ModelFlags {
  std::string model;
  int threads = default_threads();
  std::optional<std::uint64_t> context;
  std::optional<std::uint64_t> pool;
  std::string types = "f16";
  std::uint32_t page_cells = 32;
  std::uint32_t pass_tokens = 512;
};

void add_model_flags(CLI::App& verb, ModelFlags& flags);

// Where cells may go that leave the pool: nowhere, into memory that holds all of them, or through as little
// memory as is possible into a file of the system's directory for temporary ones.
enum class SpillTo : std::uint8_t { kNowhere, kMemory, kDisk };

// A loaded model with the threads it runs on.
struct Session {
  std::unique_ptr<parallel::ThreadPool> pool;
  std::shared_ptr<const gguf::File> file;
  std::shared_ptr<const model::Model> model;
  std::unique_ptr<const text::Tokenizer> tokenizer;  // where texts were asked for
  engine::EngineOptions options;  // of the flags; `pool` and `tiers` are set by make_engine
  SpillTo spill = SpillTo::kNowhere;
  // At once: recurrent states are for so many, and checkpoints beside them, if half the memory holds them.
  // For those that never go back they are for nothing else.
  std::uint64_t conversations = 1;
  bool go_back = true;
};

// "K" or "K:V" of element names. kInvalidArgument lists them.
[[nodiscard]] Result<kv::CacheTypes> parse_types(const std::string& text);

// Opens and loads, with progress on standard error; kCancelled where the user interrupts.
[[nodiscard]] Result<Session> load_session(const ModelFlags& flags);

// The same with the vocabulary, which is read while the weights are. kCorrupt where it has more tokens than
// the model.
[[nodiscard]] Result<Session> load_session_with_text(const ModelFlags& flags);

// Whether the model goes on with a text: kUnsupported for one that makes vectors of texts only, and for one
// that reads a source before it writes, each with the verb that does.
[[nodiscard]] Status check_completes(const model::Model& model);

// An engine whose pool holds --pool tokens, or by default `wanted`, as far as half the free memory allows:
// kNoSpace with the bytes where it does not. Logits of `logit_rows` rows a pass.
[[nodiscard]] Result<std::unique_ptr<engine::Engine>> make_engine(const Session& session,
                                                                  const ModelFlags& flags,
                                                                  std::uint64_t wanted,
                                                                  std::uint32_t logit_rows);

}  // namespace kvasir::cli
