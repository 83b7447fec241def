#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/file.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "kv/arena.h"
#include "parallel/beside.h"
#include "tiers/disk_space.h"

namespace kvasir::cli {
namespace {

// What CLI11 asks of a check: what is wrong, or nothing.
std::string check_types(const std::string& text) {
  const auto types = parse_types(text);
  return types ? std::string() : types.error().message();
}
std::string check_page(const std::string& text) {
  std::uint32_t cells = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), cells);
  const bool number = error == std::errc() && rest == text.data() + text.size();
  if (number && cells >= pages::kCellsStep && cells <= pages::kPageCellsMax && cells % pages::kCellsStep == 0)
    return {};
  return fmt::format("'{}' is no multiple of {} up to {}", text, pages::kCellsStep, pages::kPageCellsMax);
}

}  // namespace

Result<kv::CacheTypes> parse_types(const std::string& text) {
  const std::size_t colon = text.find(':');
  kv::CacheTypes types;
  KVASIR_ASSIGN(types.keys, kv::parse_element(text.substr(0, colon)));
  KVASIR_ASSIGN(types.values, kv::parse_element(colon == text.npos ? text : text.substr(colon + 1)));
  return types;
}

void add_model_flags(CLI::App& verb, ModelFlags& flags) {
  verb.add_option("-m,--model", flags.model, "The model: a GGUF file, or any shard of a split")->required();
  verb.add_option("--threads", flags.threads, "Threads that compute")
      ->check(whole_number(1, parallel::ThreadPool::kMaxThreads))
      ->capture_default_str();
  verb.add_option("--ctx", flags.context,
                  "The longest one conversation may get, in tokens (default: the trained length)")
      ->check(whole_number(1, UINT32_MAX));
  verb.add_option(
          "--pool", flags.pool,
          "Tokens that the cache holds, rounded up to whole pages (default: enough, at most half the free "
          "memory)")
      ->check(whole_number(1, UINT32_MAX));
  verb.add_option("--kv", flags.types,
                  "Type of keys and values in the cache, K or K:V, of f32, f16, bf16, q8_0, q4_0")
      ->check(check_types)
      ->capture_default_str();
  verb.add_option("--page", flags.page_cells, "Cells in a page of the cache, a multiple of 16")
      ->check(check_page)
      ->capture_default_str();
  verb.add_option("--pass", flags.pass_tokens, "Most tokens in a pass")
      ->check(whole_number(1, 1U << 16))
      ->capture_default_str();
}

namespace {

Status check_vocabulary(const Session& session) {
  const std::uint64_t rows = session.model->sizes().vocabulary;
  if (session.tokenizer->size() <= rows) return {};
  return fail(Outcome::kCorrupt, fmt::format("the vocabulary has {} tokens, the model's embedding {}",
                                             session.tokenizer->size(), rows));
}

Result<Session> load(const ModelFlags& flags, bool with_text) {
  watch_interrupts();
  Session session;
  KVASIR_ASSIGN(session.options.types, parse_types(flags.types));
  session.options.page_cells = flags.page_cells;
  session.options.pass_tokens = flags.pass_tokens;
  KVASIR_ASSIGN(session.pool, parallel::ThreadPool::create(flags.threads));
  KVASIR_ASSIGN(gguf::File file, gguf::File::open(base::system_files(), flags.model));
  session.file = std::make_shared<const gguf::File>(std::move(file));
  parallel::Beside beside;
  const auto read_vocabulary = [&session]() -> Status {
    KVASIR_ASSIGN(session.tokenizer, text::Tokenizer::load(*session.file));
    return {};
  };
  if (with_text) KVASIR_TRY(beside.begin(read_vocabulary));
  std::optional<Progress> progress;
  const auto report = [&](std::uint64_t done, std::uint64_t total) {
    if (!progress) progress.emplace(total);
    progress->at(done, "loading");
    return !interrupted();
  };
  auto loaded = model::Model::load(*session.file, *session.pool, report, flags.context.value_or(0));
  if (!loaded && loaded.error().code() == Outcome::kCancelled) {
    return fail(Outcome::kCancelled, "interrupted");  // which tensor was at work helps nobody
  }
  KVASIR_ASSIGN(session.model, std::move(loaded));
  KVASIR_TRY(beside.wait());
  if (with_text) KVASIR_TRY(check_vocabulary(session));
  session.options.context = flags.context.value_or(session.model->sizes().context);
  return session;
}

}  // namespace

Result<Session> load_session(const ModelFlags& flags) {
  return load(flags, false);
}

Result<Session> load_session_with_text(const ModelFlags& flags) {
  return load(flags, true);
}

Status check_completes(const model::Model& model) {
  const std::string name = "a model of architecture '" + model.sizes().architecture + "' ";
  if (!model.network().decodes())
    return fail(Outcome::kUnsupported,
                name + "makes vectors of texts and writes none; `kvasir embed` does that");
  if (model.network().reads_source()) {
    return fail(
        Outcome::kUnsupported,
        name + "reads a source before it writes; `kvasir logits --encode` and `kvasir embed` do that");
  }
  return {};
}

Result<std::unique_ptr<engine::Engine>> make_engine(const Session& session, const ModelFlags& flags,
                                                    std::uint64_t wanted, std::uint32_t logit_rows) {
  engine::EngineOptions options = session.options;
  options.logit_rows = logit_rows;
  options.pool = flags.pool.value_or(wanted);
  const model::Network& network = session.model->network();
  const std::uint64_t half = base::available_memory() / 2;
  const engine::PoolWishes wishes = engine::wishes_of(options);
  if (session.go_back) {
    KVASIR_ASSIGN(options.states, engine::states_within(half == 0 ? UINT64_MAX : half, network, wishes,
                                                        session.conversations));
  } else {
    options.states = static_cast<std::uint32_t>(engine::kStatesAtWork * session.conversations);
  }
  KVASIR_ASSIGN(const engine::PoolShape shape, engine::pool_shape(network, engine::wishes_of(options)));
  if (half > 0 && shape.bytes > half) {
    KVASIR_ASSIGN(const std::uint64_t fits, engine::tokens_within(half, network, wishes));
    return fail(
        Outcome::kNoSpace,
        fmt::format("a pool of {} tokens takes {} bytes, more than half the free memory; --pool {} would fit",
                    options.pool, shape.bytes, fits),
        {.wanted = options.pool, .available = fits, .setting = "--pool"});
  }
  // A cell takes no more bytes outside a page than in it. The disk counts in units, so a small run takes
  // more.
  const std::uint64_t largest = std::max(shape.page_bytes, shape.state_bytes);
  if (session.spill == SpillTo::kMemory) options.tiers.memory_bytes = shape.bytes;
  if (session.spill == SpillTo::kDisk) {
    options.tiers = {largest, shape.bytes + shape.spec.frames * tiers::DiskSpace::kUnitBytes,
                     std::string(kTemporaryDirectory)};
  }
  return engine::Engine::create(session.model, *session.pool, options);
}

}  // namespace kvasir::cli
