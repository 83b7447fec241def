// Tensors of a GGUF file into layers: shapes are checked before anything is allocated, then rows are read in
// parallel with positioned reads and repacked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "model/layers.h"
#include "parallel/thread_pool.h"

namespace kvasir::model {

// Called between chunks from the loading thread with the bytes of weights read so far and in all; false stops
// the load with kCancelled.
using LoadProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// One thread uses it; it computes on the pool.
class Loader {
 public:
  Loader(const gguf::File& file, parallel::ThreadPool& pool, LoadProgress progress);

  [[nodiscard]] const gguf::File& file() const noexcept { return *file_; }
  [[nodiscard]] bool has(const std::string& tensor) const { return file_->find_tensor(tensor) != nullptr; }

  // Each of these answers kCorrupt where the tensor is missing or has another shape, kUnsupported for a type
  // that does not unpack, kIo, kOutOfMemory or kCancelled; the message names the tensor.

  // NAME.weight of `in` x `out`, and NAME.bias where the file has one.
  [[nodiscard]] Result<Linear> linear(const std::string& name, std::uint64_t in, std::uint64_t out);

  // Rows [first, first + out) of NAME.weight, which has `rows` in all, with their part of NAME.bias.
  [[nodiscard]] Result<Linear> linear_rows(const std::string& name, std::uint64_t in, std::uint64_t rows,
                                           std::uint64_t first, std::uint64_t out);

  // Rows [first, first + out) of every head of NAME.weight, which has `rows.heads` times `rows.of_head`, one
  // head's behind the other's.
  struct HeadRows {
    std::uint64_t heads = 0;
    std::uint64_t of_head = 0;
  };
  [[nodiscard]] Result<Linear> linear_of_heads(const std::string& name, std::uint64_t in,
                                               const HeadRows& rows, std::uint64_t first, std::uint64_t out);

  // Matrix `index` of NAME.weight of `in` x `out` x `count`, and its row of NAME.bias of `out` x `count`
  // where the file has one.
  [[nodiscard]] Result<Linear> linear_of(const std::string& name, std::uint64_t in, std::uint64_t out,
                                         std::uint64_t count, std::uint64_t index);

  // NAME, one row of `size` numbers as floats.
  [[nodiscard]] Result<std::vector<float>> vector(const std::string& name, std::uint64_t size);

  // NAME of these dimensions as floats. Those of 1, here or in the file, say nothing.
  [[nodiscard]] Result<std::vector<float>> numbers(const std::string& name, std::vector<std::uint64_t> dims);

  // NAME, a matrix of `in` x `out` as floats, row after row.
  [[nodiscard]] Result<std::vector<float>> matrix(const std::string& name, std::uint64_t in,
                                                  std::uint64_t out);

  // NAME.weight, which is all a norm of the root mean square has, or with NAME.bias where the file has one.
  [[nodiscard]] Result<Norm> norm(const std::string& name, std::uint64_t size, float epsilon);
  [[nodiscard]] Result<Norm> layer_norm(const std::string& name, std::uint64_t size, float epsilon);

  // Whether any of the matrices read so far takes activations as bytes.
  [[nodiscard]] bool takes_bytes() const noexcept { return takes_bytes_; }

 private:
  [[nodiscard]] Result<const gguf::Tensor*> find(const std::string& name,
                                                 std::vector<std::uint64_t> dims) const;
  [[nodiscard]] Result<std::vector<float>> floats(const gguf::Tensor& tensor) const;
  // Rows of a tensor: `count` in all, `of_each` from `first` on, then as many from `every` rows further on.
  struct Rows {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t of_each = 0;
    std::uint64_t every = 0;
  };
  [[nodiscard]] Result<simd::Panels> panels(const gguf::Tensor& tensor, const Rows& rows);
  [[nodiscard]] Status fill_panels(const gguf::Tensor& tensor, const Rows& rows, simd::Panels& panels,
                                   std::size_t begin, std::size_t end);
  [[nodiscard]] Status report(std::uint64_t bytes);

  const gguf::File* file_;
  parallel::ThreadPool* pool_;
  LoadProgress progress_;
  base::Slab slab_;  // for all matrices
  bool takes_bytes_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace kvasir::model
