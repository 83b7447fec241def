// How parts follow one another in any walk through a model: the stream begins with embeddings, a part reads
// it and what the part gives is added to it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "model/layers.h"
#include "model/stages.h"
#include "model/workspace.h"

namespace kvasir::model {

// Each of these is an item of a stage: any thread, different rows at once.

// Makes a row of the stream of what the row of the pass names.
void enter_stream(const OpenPass& open, std::size_t row) noexcept;

// Makes row `into` of workspace.normed, the input of products, of a row of the stream.
void take_input(const std::optional<Norm>& norm, Workspace& w, std::size_t row, std::size_t into) noexcept;

// Adds what a part gave to a row of the stream.
void end_part(const Part& part, Workspace& w, std::size_t row) noexcept;

void scale_all(std::span<float> numbers, float by) noexcept;

}  // namespace kvasir::model
