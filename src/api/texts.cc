// Texts as vectors.

#include "engine/texts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/parts.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "kvasir/executor.h"

namespace kvasir {
namespace {

Result<std::optional<model::Pooling>> pooling_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::kOfModel:
      return std::nullopt;
    case Pooling::kNone:
      return model::Pooling::kNone;
    case Pooling::kMean:
      return model::Pooling::kMean;
    case Pooling::kFirst:
      return model::Pooling::kFirst;
    case Pooling::kLast:
      return model::Pooling::kLast;
  }
  return fail(Outcome::kInvalidArgument, "there is no pooling " + std::to_string(static_cast<int>(pooling)),
              {.setting = "pooling"});
}

Result<std::vector<std::vector<float>>> embed_all(api::Core& core, std::span<const std::vector<Token>> texts,
                                                  const EmbedOptions& options) {
  engine::EmbedWishes wishes{.normalise = options.normalise, .goes_on = options.progress};
  KVASIR_ASSIGN(wishes.pooling, pooling_of(options.pooling));
  const std::vector<std::span<const Token>> spans(texts.begin(), texts.end());
  return api::in_public_words(core.executor->embed(spans, std::move(wishes)));
}

}  // namespace

Result<std::vector<std::vector<float>>> Executor::embed(std::span<const std::vector<Token>> texts,
                                                        const EmbedOptions& options) {
  return base::within_memory([&]() -> Result<std::vector<std::vector<float>>> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return embed_all(*core, texts, options);
  });
}

Result<std::vector<std::vector<float>>> Executor::embed(std::span<const std::string> texts,
                                                        const EmbedOptions& options) {
  return base::within_memory([&]() -> Result<std::vector<std::vector<float>>> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    std::vector<std::vector<Token>> tokens;
    tokens.reserve(texts.size());
    for (const std::string& text : texts) {
      KVASIR_ASSIGN(std::vector<Token> some, core->model->tokenizer->tokenize(text, {.add_begin_end = true}));
      tokens.push_back(std::move(some));
    }
    return embed_all(*core, tokens, options);
  });
}

}  // namespace kvasir
