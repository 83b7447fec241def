#include "model/part_walk.h"

#include <algorithm>
#include <cstdint>

namespace kvasir::model {
namespace {

void add(std::span<const float> numbers, std::span<float> to) noexcept {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += numbers[i];
}

}  // namespace

void scale_all(std::span<float> numbers, float by) noexcept {
  if (by == 1) return;
  for (float& number : numbers) number *= by;
}

void enter_stream(const OpenPass& open, std::size_t row) noexcept {
  const Network& network = *open.network;
  const PassRow& entry = open.pass.rows[row];
  const std::span<float> hidden = open.workspace->hidden.row(row);
  if (entry.vector != nullptr) {
    std::ranges::copy(std::span(entry.vector, hidden.size()), hidden.begin());
  } else {
    network.read_embedding(static_cast<std::uint32_t>(entry.token), hidden);
  }
  if (!network.segment_embedding.empty()) add(network.segment_embedding, hidden);
  if (network.position_embedding) {
    const std::span<float> position = open.workspace->product.row(row);
    network.position_embedding->read_row(static_cast<std::size_t>(entry.position), position);
    add(position, hidden);
  }
  if (network.embedding_norm) apply(*network.embedding_norm, hidden, hidden);
}

void take_input(const std::optional<Norm>& norm, Workspace& w, std::size_t row, std::size_t into) noexcept {
  const std::span<const float> stream = w.hidden.row(row);
  const std::span<float> input = w.normed.row(into);
  if (norm) {
    apply(*norm, stream, input);
  } else {
    std::ranges::copy(stream, input.begin());
  }
  w.normed.pack(into, stream.size());
}

void end_part(const Part& part, Workspace& w, std::size_t row) noexcept {
  const std::span<float> stream = w.hidden.row(row);
  const std::span<float> given = w.product.row(row);
  if (part.output_norm) apply(*part.output_norm, given, given);
  scale_all(given, part.scale);
  add(given, stream);
  if (part.stream_norm) apply(*part.stream_norm, stream, stream);
  scale_all(stream, part.stream_scale);
}

}  // namespace kvasir::model
