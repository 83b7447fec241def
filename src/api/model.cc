#include "kvasir/model.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/parts.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "engine/executor.h"
#include "gguf/gguf.h"
#include "parallel/beside.h"

namespace kvasir {
namespace {

Result<bool> wants_begin(AddBegin add, bool usual) {
  switch (add) {
    case AddBegin::kAuto:
      return usual;
    case AddBegin::kYes:
      return true;
    case AddBegin::kNo:
      return false;
  }
  return fail(Outcome::kInvalidArgument, "there is no way to begin " + std::to_string(static_cast<int>(add)),
              {.setting = "add_begin"});
}

}  // namespace

Result<std::vector<Token>> api::tokens_of(const text::Tokenizer& tokenizer, std::string_view text,
                                          const TextOptions& options, std::optional<Token> begin,
                                          bool usual) {
  KVASIR_ASSIGN(const bool wanted, wants_begin(options.add_begin, usual));
  KVASIR_ASSIGN(std::vector<Token> tokens,
                tokenizer.tokenize(text, {.parse_special = options.parse_special}));
  if (!wanted) return tokens;
  if (!begin) return fail(Outcome::kInvalidArgument, "this vocabulary has no begin token");
  if (tokens.empty() || tokens.front() != *begin) tokens.insert(tokens.begin(), *begin);
  return tokens;
}

Result<Model> Model::load(const std::string& path, const ModelOptions& options) {
  return base::within_memory([&]() -> Result<Model> {
    if (path.find('\0') != std::string::npos)
      return fail(Outcome::kInvalidArgument, "a path cannot hold a byte of zero");
    auto parts = std::make_shared<api::ModelParts>();
    const int threads = options.threads == 0 ? base::usable_processors() : options.threads;
    KVASIR_ASSIGN(parts->pool, api::in_public_words(parallel::ThreadPool::create(threads)));
    KVASIR_ASSIGN(const gguf::File file, gguf::File::open(base::system_files(), path));
    std::atomic<bool> has_text = true;
    parallel::Beside beside;
    KVASIR_TRY(beside.begin([&]() -> Status {
      auto tokenizer = text::Tokenizer::load(file);
      has_text = tokenizer.has_value();
      KVASIR_ASSIGN(parts->tokenizer, std::move(tokenizer));
      return {};
    }));
    const auto report = [&](std::uint64_t done, std::uint64_t total) {
      if (!has_text || !options.progress) return has_text.load();
      bool goes_on = false;  // also where it throws
      engine::call_safely([&] {
        goes_on = options.progress(total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
      });
      return goes_on;
    };
    auto model = model::Model::load(file, *parts->pool, report, options.context);
    // First: what is wrong with the vocabulary has stopped the weights.
    KVASIR_TRY(beside.wait());
    KVASIR_ASSIGN(parts->model, std::move(model));
    const std::uint32_t rows = parts->model->sizes().vocabulary;
    if (parts->tokenizer->size() > rows) {
      return fail(Outcome::kCorrupt, "the vocabulary has " + std::to_string(parts->tokenizer->size()) +
                                         " tokens, the model's embedding " + std::to_string(rows));
    }
    return Model(std::move(parts));
  });
}

Result<std::vector<Token>> Model::tokenize(std::string_view text, const TextOptions& options) const {
  return base::within_memory([&] {
    const text::Tokenizer& tokenizer = *parts_->tokenizer;
    return api::tokens_of(tokenizer, text, options, tokenizer.begin_token(), tokenizer.adds_begin());
  });
}

Result<std::string> Model::detokenize(std::span<const Token> ids) const {
  return parts_->tokenizer->detokenize(ids);
}

std::optional<Token> Model::find(std::string_view spelling) const noexcept {
  return parts_->tokenizer->find(spelling);
}

std::optional<Token> Model::begin_token() const noexcept {
  return parts_->tokenizer->begin_token();
}

std::optional<Token> Model::start_token() const noexcept {
  return parts_->model->network().start_token;
}

bool Model::ends_generation(Token id) const noexcept {
  return parts_->tokenizer->ends_generation(id);
}

std::uint32_t Model::vocabulary() const noexcept {
  return parts_->model->sizes().vocabulary;
}

std::uint32_t Model::embedding_size() const noexcept {
  return parts_->model->sizes().embedding;
}

std::uint64_t Model::trained_context() const noexcept {
  return parts_->model->sizes().context;
}

std::string_view Model::architecture() const noexcept {
  return parts_->model->sizes().architecture;
}

Result<std::vector<float>> Model::embedding(Token id) const {
  return base::within_memory([&]() -> Result<std::vector<float>> {
    if (id < 0 || static_cast<std::uint32_t>(id) >= vocabulary()) {
      return fail(
          Outcome::kInvalidArgument,
          "there is no token " + std::to_string(id) + ", the vocabulary has " + std::to_string(vocabulary()),
          {.limit = vocabulary()});
    }
    std::vector<float> row(embedding_size());
    parts_->model->network().read_embedding(static_cast<std::uint32_t>(id), row);
    return row;
  });
}

}  // namespace kvasir
