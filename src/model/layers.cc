#include "model/layers.h"

#include "simd/vector_math.h"

namespace kvasir::model {

void Network::read_embedding(std::uint32_t token, std::span<float> out) const noexcept {
  token_embedding.read_row(token, out);
  if (embedding_scale == 1) return;
  for (float& number : out) number *= embedding_scale;
}

void apply(const Norm& norm, std::span<const float> x, std::span<float> out) noexcept {
  for (std::size_t at = 0; at < x.size(); at += norm.width) {
    const std::size_t of_weight = at % norm.weight.size();
    const std::span<const float> piece = x.subspan(at, norm.width);
    const std::span<const float> weight = std::span(norm.weight).subspan(of_weight, norm.width);
    if (norm.kind == Norm::Kind::kRootMeanSquare) {
      simd::rms_norm(piece, weight, norm.epsilon, out.subspan(at, norm.width));
    } else {
      const std::span<const float> bias =
          norm.bias.empty() ? std::span<const float>() : std::span(norm.bias).subspan(of_weight, norm.width);
      simd::layer_norm(piece, weight, bias, norm.epsilon, out.subspan(at, norm.width));
    }
  }
}

}  // namespace kvasir::model
