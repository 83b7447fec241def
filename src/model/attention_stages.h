// What every kind of attention shares: queries, keys and values in the scratch become stored cells and, for
// each query head, what it reads of them.
#pragma once

#include <span>

#include "kvasir/result.h"
#include "model/layers.h"
#include "model/stages.h"

namespace kvasir::model {

// Room for queries, keys, values and what is read. As reserve().
[[nodiscard]] Status reserve_cells(const CellAttention& cells, Workspace& workspace);

// The stage that fills scratch.cosines and sines for every variant of every row, once in a pass.
void add_turning(const Network& network, StageList& stages);

// Turns the heads of a row, side by side, as one of its variants.
void turn_heads(const OpenPass& open, const CellAttention& cells, std::span<float> heads,
                std::size_t variant) noexcept;

// Makes a turned query of a row's raw one for each variant, so that no query is ever turned twice.
void turn_query(const OpenPass& open, const CellAttention& cells, std::size_t row) noexcept;

// Turns a row's key and stores it with its value in the row's cell.
void store_key_value(const OpenPass& open, const CellAttention& cells, std::size_t row) noexcept;

// Both.
void store_cell(const OpenPass& open, const CellAttention& cells, std::size_t row) noexcept;

// The stages of the halves of attention for those who compute them apart: keys and values of workspace.normed
// into the rows' cells; and queries of it that read, into workspace.product.
void add_keys(const Attention& part, StageList& stages);
void add_queries(const Attention& part, StageList& stages);

// The stage in which scratch.turned reads the cells, into scratch.attended.
void add_reading(const CellAttention& cells, StageList& stages);

}  // namespace kvasir::model
