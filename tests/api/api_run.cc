#include "api/api_run.h"

#include "api/parts.h"
#include "cli/synth_vocabulary.h"
#include "support/paths.h"

namespace kvasir::test {

TinyShape speaking_shape() {
  TinyShape shape;
  shape.vocabulary = 512;
  shape.context = 8192;
  return shape;
}

GgufDraft speaking_draft(const TinyShape& shape) {
  GgufDraft draft = tiny_model(shape, 7);
  const auto vocabulary = must(cli::make_vocabulary(shape.vocabulary));
  for (const gguf::KeyValue& entry : vocabulary.keys) draft.set(entry.key, entry.value);
  return draft;
}

const std::string& model_file() {
  static const std::string path = [] {
    std::string file = scratch_directory() + "/model.gguf";
    speaking_draft(speaking_shape()).write(file);
    return file;
  }();
  return path;
}

const Model& model() {
  static const Model loaded = must(Model::load(model_file(), {.threads = 2}));
  return loaded;
}

ExecutorOptions options_of(std::uint64_t pool, std::uint32_t pass_tokens) {
  ExecutorOptions options;
  options.pool = pool;
  options.keys = CacheType::kF32;
  options.values = CacheType::kF32;
  options.page_cells = 16;
  options.pass_tokens = pass_tokens;
  return options;
}

Executor make_executor(const ExecutorOptions& options) {
  return must(Executor::create(model(), options));
}

std::vector<Token> some_tokens(std::size_t count, std::uint64_t seed) {
  return random_tokens(model().vocabulary() - 2, count, seed);
}

std::vector<Token> joined(std::vector<Token> a, std::span<const Token> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<float> embeddings_of(std::span<const Token> tokens) {
  std::vector<float> rows;
  for (const Token token : tokens) {
    const std::vector<float> row = must(model().embedding(token));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

std::vector<float> logits_of(const Conversation& conversation, std::uint64_t back) {
  return *must(conversation.logits(back));
}

std::vector<float> cold_logits(std::span<const PromptPart> parts) {
  Executor executor = make_executor(4096);
  Conversation conversation = must(executor.conversation());
  must(conversation.prompt(parts));
  must(conversation.wait());
  return logits_of(conversation);
}

std::vector<float> cold_logits(std::span<const Token> tokens) {
  const PromptPart part = tokens;
  return cold_logits(std::span(&part, 1));
}

GeneratedPiece alone(std::span<const Token> prompt, std::uint64_t seed, const GenerateOptions& options) {
  Executor executor = make_executor(4096);
  Conversation conversation = must(executor.conversation({.seed = seed}));
  must(conversation.prompt(prompt));
  return must(must(conversation.generate(options)).rest());
}

std::uint64_t digest_of(const Executor& executor) {
  return must(api::Inside::core(executor)->executor->look(
      [](const engine::Engine& engine) { return engine.digest(); }));
}

std::optional<ConversationReport> about(const StepReport& report, ConversationId id) {
  for (const ConversationReport& each : report.conversations) {
    if (each.id == id) return each;
  }
  return std::nullopt;
}

}  // namespace kvasir::test
