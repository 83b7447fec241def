// The memory that a pass computes in, taken once for the largest pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "kv/arena.h"
#include "kvasir/result.h"
#include "model/model.h"
#include "simd/byte_columns.h"
#include "simd/products.h"

namespace kvasir::model {

// Rows of floats, each row's start a multiple of 64 bytes and padded to whole panels.
class FloatRows {
 public:
  FloatRows() = default;
  [[nodiscard]] static Result<FloatRows> allocate(std::size_t rows, std::size_t width);

  [[nodiscard]] std::span<float> row(std::size_t index) noexcept {
    return {data() + index * stride_, width_};
  }
  [[nodiscard]] std::span<const float> row(std::size_t index) const noexcept {
    return {bytes_.as<float>().data() + index * stride_, width_};
  }
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::size_t rows() const noexcept {
    return stride_ == 0 ? 0 : bytes_.size() / (stride_ * sizeof(float));
  }

  // The rows [first, first + count) as what a product reads, and all rows from `first` on as where one
  // writes.
  [[nodiscard]] simd::Activations columns(std::size_t first, std::size_t count) const noexcept {
    return {bytes_.as<float>().data() + first * stride_, count, width_, stride_};
  }
  [[nodiscard]] simd::ProductOutput output(std::size_t first = 0) noexcept {
    return {data() + first * stride_, stride_};
  }

 private:
  [[nodiscard]] float* data() noexcept { return bytes_.as<float>().data(); }
  base::Buffer bytes_;
  std::size_t width_ = 0;
  std::size_t stride_ = 0;
};

// The blocks of activation bytes that a model's weights take.
struct ByteForms {
  bool of32 = false;
  bool of256 = false;
};

// What a product reads: floats, and the same as bytes where weights of this model are codes.
struct ProductInput {
  simd::Activations floats;
  const simd::ByteRows* bytes32 = nullptr;  // with blocks of 32 and of 256; null or empty: never packed
  const simd::ByteRows* bytes256 = nullptr;
  std::size_t first = 0;  // column of the bytes that is the first of the floats

  // The columns [from, from + count) of these, `width` numbers each, in the form that `weight` takes.
  void multiply(const simd::Panels& weight, std::size_t first_panel, std::size_t last_panel, std::size_t from,
                std::size_t count, const simd::ProductOutput& output) const noexcept;
};

// Rows of floats that products read.
class InputRows {
 public:
  InputRows() = default;
  [[nodiscard]] static Result<InputRows> allocate(std::size_t rows, std::size_t width,
                                                  const ByteForms& forms);

  // Writing a row is followed by pack(): its first `width` floats become what products read.
  [[nodiscard]] std::span<float> row(std::size_t index) noexcept { return floats_.row(index); }
  [[nodiscard]] std::span<const float> row(std::size_t index) const noexcept { return floats_.row(index); }
  void pack(std::size_t index, std::size_t width) noexcept;

  [[nodiscard]] ProductInput columns(std::size_t first, std::size_t count) const noexcept {
    return {floats_.columns(first, count), &bytes32_, &bytes256_, first};
  }
  // Where a product writes what is then turned into an input in place.
  [[nodiscard]] simd::ProductOutput output(std::size_t first = 0) noexcept { return floats_.output(first); }

 private:
  FloatRows floats_;
  simd::ByteRows bytes32_;
  simd::ByteRows bytes256_;
};

// One expert's part of a pass: the assignments [first, first + count) go through it.
struct ExpertLoad {
  std::uint32_t expert = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// A token's use of one expert.
struct Assignment {
  std::uint32_t row = 0;
  float weight = 0;
};

// What experts need besides: assignments sorted by expert, and where those of each row are.
struct ExpertScratch {
  FloatRows router;                     // [row] scores of all experts
  InputRows input, gate;                // [assignment]
  FloatRows up, output;                 // [assignment]
  std::vector<Assignment> assignments;  // sorted by expert, then row
  std::vector<std::uint32_t> of_row;    // [row * used + i]: assignment of the row's i-th expert, ascending
  std::vector<std::uint32_t> chosen;    // [row * used + i]: that expert
  std::vector<ExpertLoad> loads;
};

// Sizes of the largest pass.
struct PassLimits {
  std::uint32_t rows = 512;        // tokens in a pass
  std::uint32_t logit_rows = 512;  // rows of a pass whose logits are wanted
};

// One pass uses it at a time.
struct Workspace {
  // kOutOfMemory names the bytes.
  [[nodiscard]] static Result<Workspace> create(const Model& model, const PassLimits& limits);

  // Room for this many variants of queries in a pass (see Forward); there is always room for two a row.
  // kOutOfMemory, with nothing changed.
  [[nodiscard]] Status reserve_variants(const Model& model, std::size_t variants);

  PassLimits limits;
  FloatRows hidden;  // the residual stream
  InputRows normed;  // input of the next product
  FloatRows query, key, value;
  InputRows attended;
  FloatRows turned;  // [variant]: the query, rotated
  InputRows gate;
  FloatRows up;
  FloatRows product;  // output of the last product of a part, before it is added to the residual stream
  FloatRows logits;   // [logit row]
  std::vector<FloatRows> cosines, sines;  // [rotary table][variant]
  std::vector<kv::FrameRun> frame_runs;
  std::vector<kv::ResolvedRuns> resolved;  // [sequence]
  ExpertScratch experts;
};

}  // namespace kvasir::model
