#include "engine/texts.h"

#include <cmath>
#include <memory>
#include <string>

#include "base/try.h"
#include "base/within_memory.h"
#include "model/encoder.h"

namespace kvasir::engine {
namespace {

using Texts = std::span<const std::span<const Token>>;

Status check(const model::Model& model, Texts texts, const EmbedWishes& wishes) {
  if (!model.network().encoder) {
    return fail(Outcome::kUnsupported, "a model of architecture '" + model.sizes().architecture +
                                           "' has no encoder, so it makes no vectors of texts");
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() <= wishes.context) continue;
    return fail(Outcome::kNoSpace,
                "text " + std::to_string(i) + " has " + std::to_string(texts[i].size()) +
                    " tokens, the context is " + std::to_string(wishes.context),
                {.wanted = texts[i].size(), .limit = wishes.context, .setting = "--ctx"});
  }
  return {};
}

// So many of the first texts as fill a pass: more would take memory and save nothing.
std::size_t texts_at_once(Texts texts, std::uint32_t pass_tokens) {
  std::uint64_t tokens = 0;
  std::size_t count = 0;
  while (count < texts.size() && tokens < pass_tokens) tokens += texts[count++].size();
  return count;
}

// The zero vector stays.
void normalise(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector) squares += double{value} * double{value};
  if (squares == 0) return;
  const double factor = 1 / std::sqrt(squares);
  for (float& value : vector) value = static_cast<float>(value * factor);
}

}  // namespace

Result<std::vector<std::vector<float>>> embed(const model::Model& model, parallel::ThreadPool& pool,
                                              Texts texts, const EmbedWishes& wishes) {
  return base::within_memory([&]() -> Result<std::vector<std::vector<float>>> {
    KVASIR_TRY(check(model, texts, wishes));
    const model::Pooling pooling = wishes.pooling.value_or(model.network().pooling);
    const std::size_t width = model.sizes().embedding;
    std::vector<std::vector<float>> vectors;
    while (vectors.size() < texts.size()) {
      const Texts left = texts.subspan(vectors.size());
      const Texts some = left.first(texts_at_once(left, wishes.pass_tokens));
      KVASIR_ASSIGN(const std::unique_ptr<model::Encoder> encoder,
                    model::Encoder::begin(model, pool, some, wishes.pass_tokens));
      while (!encoder->done()) {
        if (wishes.goes_on && !wishes.goes_on(vectors.size()))
          return fail(Outcome::kCancelled, "reading texts was cancelled");
        KVASIR_TRY(encoder->advance());
      }
      std::size_t row = 0;
      for (const std::span<const Token> text : some) {
        std::vector<float>& out = vectors.emplace_back();
        KVASIR_TRY(model::pool_rows(*encoder, row, text.size(), pooling, out));
        for (std::size_t at = 0; wishes.normalise && at < out.size(); at += width)
          normalise(std::span(out).subspan(at, width));
        row += text.size();
      }
    }
    return vectors;
  });
}

}  // namespace kvasir::engine
