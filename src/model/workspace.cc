#include "model/workspace.h"

#include <new>
#include <variant>

#include "base/try.h"
#include "model/part_kinds.h"

namespace kvasir::model {

namespace {

Status reserve_layers(const std::vector<Layer>& layers, Workspace& workspace) {
  for (const Layer& layer : layers) {
    for (const Part& part : layer.parts)
      KVASIR_TRY(std::visit([&](const auto& body) { return reserve(body, workspace); }, part.body));
  }
  return {};
}

}  // namespace

Result<Workspace> Workspace::create(const Model& model, const PassLimits& limits) {
  const Network& network = model.network();
  const std::size_t embedding = model.sizes().embedding;
  const std::size_t rows = limits.rows;
  if (rows == 0 || limits.logit_rows == 0) {
    return fail(Outcome::kInvalidArgument, "a pass needs room for at least one token",
                {.limit = 1, .setting = "--pass"});
  }
  try {
    Workspace workspace;
    workspace.limits = limits;
    workspace.as_bytes = network.takes_bytes;
    KVASIR_ASSIGN(workspace.hidden, FloatRows::allocate(rows, embedding));
    KVASIR_ASSIGN(workspace.normed, InputRows::allocate(rows, embedding, workspace.as_bytes));
    KVASIR_ASSIGN(workspace.product, FloatRows::allocate(rows, embedding));
    KVASIR_ASSIGN(workspace.logits, FloatRows::allocate(limits.logit_rows, model.sizes().vocabulary));
    KVASIR_TRY(reserve_layers(network.layers, workspace));
    if (network.encoder) KVASIR_TRY(reserve_layers(network.encoder->layers, workspace));
    KVASIR_TRY(workspace.attention.reserve_variants(network, 2 * rows));
    return workspace;
  } catch (const std::bad_alloc&) {
    return fail(Outcome::kOutOfMemory, "out of memory", {.wanted = rows, .setting = "--pass"});
  }
}

}  // namespace kvasir::model
