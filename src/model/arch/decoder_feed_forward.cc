// How a decoder reads feed-forward parts and experts.

#include <utility>

#include "base/try.h"
#include "model/arch/decoder.h"

namespace kvasir::model {

Result<Part> Decoder::feed_forward(std::uint32_t layer, const FeedForwardForm& form) {
  const std::string prefix = block(layer) + "ffn_";
  const std::uint64_t width = sizes_->feed_forward[layer];
  Part part;
  if (!form.norm.empty()) {
    KVASIR_ASSIGN(part.norm, norm(layer, form.norm));
  }
  FeedForward body;
  body.activation = form.activation;
  if (form.gated) {
    KVASIR_ASSIGN(body.gate, loader_->linear(prefix + "gate", sizes_->embedding, width));
  }
  KVASIR_ASSIGN(body.up, loader_->linear(prefix + "up", sizes_->embedding, width));
  KVASIR_ASSIGN(body.down, loader_->linear(prefix + "down", width, sizes_->embedding));
  part.body = std::move(body);
  return part;
}

Result<Part> Decoder::experts(std::uint32_t layer, const ExpertForm& form) {
  const std::string prefix = block(layer) + "ffn_";
  const std::uint64_t width = sizes_->expert_feed_forward;
  const auto matrix = [&](const char* name, std::uint64_t in, std::uint64_t out, std::uint32_t index) {
    return loader_->linear_of(prefix + name + "_exps", in, out, sizes_->experts, index);
  };
  Part part;
  if (!form.norm.empty()) {
    KVASIR_ASSIGN(part.norm, norm(layer, form.norm));
  }
  Experts body;
  body.routing = form.routing;
  body.routing.used = sizes_->experts_used;
  KVASIR_ASSIGN(body.routing.sum_to_one, keys_.flag("expert_weights_norm", form.routing.sum_to_one));
  KVASIR_ASSIGN(const double scale, keys_.number("expert_weights_scale", 0.0));
  if (scale != 0) body.routing.scale = static_cast<float>(scale);  // 0 is how converters write "none"
  KVASIR_ASSIGN(body.router, loader_->linear(prefix + "gate_inp", sizes_->embedding, sizes_->experts));
  const std::string bias = block(layer) + "exp_probs_b.bias";
  if (loader_->has(bias)) {
    KVASIR_ASSIGN(body.routing.bias, loader_->vector(bias, sizes_->experts));
  }
  for (std::uint32_t index = 0; index < sizes_->experts; ++index) {
    FeedForward expert;
    expert.activation = form.activation;
    KVASIR_ASSIGN(expert.gate, matrix("gate", sizes_->embedding, width, index));
    KVASIR_ASSIGN(expert.up, matrix("up", sizes_->embedding, width, index));
    KVASIR_ASSIGN(expert.down, matrix("down", width, sizes_->embedding, index));
    body.experts.push_back(std::move(expert));
  }
  part.body = std::move(body);
  return part;
}

Result<Part> Decoder::shared_expert(std::uint32_t layer, std::uint64_t width) {
  const std::string prefix = block(layer) + "ffn_";
  Part part{.same_input = true};
  FeedForward body;
  KVASIR_ASSIGN(body.gate, loader_->linear(prefix + "gate_shexp", sizes_->embedding, width));
  KVASIR_ASSIGN(body.up, loader_->linear(prefix + "up_shexp", sizes_->embedding, width));
  KVASIR_ASSIGN(body.down, loader_->linear(prefix + "down_shexp", width, sizes_->embedding));
  part.body = std::move(body);
  return part;
}

}  // namespace kvasir::model
