// The stages of latent attention: the query, absorbed head by head; latent and turned key, stored; reading;
// values of what was read, head by head; the output.

#include <algorithm>

#include "base/try.h"
#include "model/attention_stages.h"
#include "model/part_kinds.h"

namespace kvasir::model {
namespace {

// Norms the query latent.
void norm_query(const LatentAttention& part, LatentScratch& scratch, std::size_t row) {
  const std::span<float> latent = scratch.query.row(row).first(part.query_up.in());
  if (part.query_norm) apply(*part.query_norm, latent, latent);
  scratch.query.pack(row, latent.size());
}

// A product for each head, of its own rows by its own matrix.
void add_head_products(const std::vector<Linear>& of_heads, InputRows LatentScratch::* from,
                       FloatRows LatentScratch::* to, StageList& stages) {
  stages.add_products([&of_heads, from, to](OpenPass& open, StageItems& items) {
    LatentScratch& scratch = open.workspace->latent;
    for (std::size_t head = 0; head < of_heads.size(); ++head) {
      const std::size_t first = head * open.rows();
      items.add_product(of_heads[head], (scratch.*from).columns(first, open.rows()),
                        (scratch.*to).output(first));
    }
  });
}

// Puts the plain part of each head's query where its own matrix reads it.
void split_query(const LatentAttention& part, const OpenPass& open, std::size_t row) {
  LatentScratch& scratch = open.workspace->latent;
  const std::size_t width = part.plain() + part.turned();
  for (std::size_t head = 0; head < part.cells.heads; ++head) {
    const std::size_t at = head * open.rows() + row;
    std::ranges::copy(scratch.unpacked.row(row).subspan(head * width, part.plain()),
                      scratch.plain.row(at).begin());
    scratch.plain.pack(at, part.plain());
  }
}

// Each head's query is (part to turn, absorbed part), the one key (part to turn, latent), the value the
// latent.
void store(const LatentAttention& part, const OpenPass& open, std::size_t row) {
  const LatentScratch& scratch = open.workspace->latent;
  AttentionScratch& attention = open.workspace->attention;
  const std::size_t width = part.plain() + part.turned();
  for (std::size_t head = 0; head < part.cells.heads; ++head) {
    const std::span<float> query =
        attention.query.row(row).subspan(head * part.cells.geometry.key_dims, part.cells.geometry.key_dims);
    std::ranges::copy(scratch.unpacked.row(row).subspan(head * width + part.plain(), part.turned()),
                      query.begin());
    std::ranges::copy(scratch.absorbed.row(head * open.rows() + row).first(part.latent()),
                      query.subspan(part.turned()).begin());
  }
  const std::span<const float> joint = scratch.joint.row(row);
  const std::span<float> key = attention.key.row(row);
  const std::span<float> value = attention.value.row(row).first(part.latent());
  apply(part.latent_norm, joint.first(part.latent()), value);
  std::ranges::copy(joint.subspan(part.latent(), part.turned()), key.begin());
  std::ranges::copy(value, key.subspan(part.turned()).begin());
  store_cell(open, part.cells, row);
}

// Puts what each head has read where its own matrix reads it.
void split_read(const LatentAttention& part, const OpenPass& open, std::size_t row) {
  const std::span<const float> attended = std::as_const(open.workspace->attention.attended).row(row);
  LatentScratch& scratch = open.workspace->latent;
  for (std::size_t head = 0; head < part.cells.heads; ++head) {
    const std::size_t at = head * open.rows() + row;
    std::ranges::copy(attended.subspan(head * part.latent(), part.latent()), scratch.read.row(at).begin());
    scratch.read.pack(at, part.latent());
  }
}

void join_values(const LatentAttention& part, const OpenPass& open, std::size_t row) {
  LatentScratch& scratch = open.workspace->latent;
  const std::size_t width = part.values.front().out();
  for (std::size_t head = 0; head < part.cells.heads; ++head) {
    std::ranges::copy(scratch.value.row(head * open.rows() + row).first(width),
                      scratch.values.row(row).subspan(head * width).begin());
  }
  scratch.values.pack(row, part.output.in());
}

void add_query(const LatentAttention& part, StageList& stages) {
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    const ProductInput normed = w.normed.columns(0, open.rows());
    if (part.query_down) {
      items.add_product(*part.query_down, normed, w.latent.query.output());
    } else {
      items.add_product(part.query_up, normed, w.latent.unpacked.output());
    }
    items.add_product(part.down, normed, w.latent.joint.output());
  });
  if (!part.query_down) return;
  stages.add_rows(part.query_down->out() * 8, [&part](OpenPass& open, std::size_t row) {
    norm_query(part, open.workspace->latent, row);
  });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    LatentScratch& scratch = open.workspace->latent;
    items.add_product(part.query_up, scratch.query.columns(0, open.rows()), scratch.unpacked.output());
  });
}

}  // namespace

Status reserve(const LatentAttention& part, Workspace& workspace) {
  KVASIR_TRY(reserve_cells(part.cells, workspace));
  LatentScratch& scratch = workspace.latent;
  const std::size_t rows = workspace.limits.rows;
  const std::size_t of_heads = rows * part.cells.heads;
  const bool as_bytes = workspace.as_bytes;
  if (part.query_down) KVASIR_TRY(grow(scratch.query, rows, part.query_down->out(), as_bytes));
  KVASIR_TRY(grow(scratch.joint, rows, part.down.out()));
  KVASIR_TRY(grow(scratch.unpacked, rows, part.query_up.out()));
  KVASIR_TRY(grow(scratch.plain, of_heads, part.plain(), as_bytes));
  KVASIR_TRY(grow(scratch.absorbed, of_heads, part.latent()));
  KVASIR_TRY(grow(scratch.read, of_heads, part.latent(), as_bytes));
  KVASIR_TRY(grow(scratch.value, of_heads, part.values.front().out()));
  return grow(scratch.values, rows, part.output.in(), as_bytes);
}

void add_stages(const LatentAttention& part, StageList& stages) {
  const std::size_t heads = part.cells.heads;
  add_query(part, stages);
  stages.add_rows(part.query_up.out(),
                  [&part](OpenPass& open, std::size_t row) { split_query(part, open, row); });
  add_head_products(part.keys, &LatentScratch::plain, &LatentScratch::absorbed, stages);
  stages.add_rows(heads * part.cells.geometry.key_dims * 8,
                  [&part](OpenPass& open, std::size_t row) { store(part, open, row); });
  add_reading(part.cells, stages);
  stages.add_rows(heads * part.latent(),
                  [&part](OpenPass& open, std::size_t row) { split_read(part, open, row); });
  add_head_products(part.values, &LatentScratch::read, &LatentScratch::value, stages);
  stages.add_rows(part.output.in(),
                  [&part](OpenPass& open, std::size_t row) { join_values(part, open, row); });
  stages.add_products([&part](OpenPass& open, StageItems& items) {
    Workspace& w = *open.workspace;
    items.add_product(part.output, w.latent.values.columns(0, open.rows()), w.product.output());
  });
}

}  // namespace kvasir::model
