// Tensors made in parallel pieces and written in order, with bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "cli/work.h"
#include "gguf/writer.h"
#include "kvasir/result.h"
#include "parallel/thread_pool.h"
#include "quant/block_type.h"

namespace kvasir::cli {

// Holds at most kPieceValues values for each of a few pieces a thread, as bytes of the type they become. One
// thread at a time; what it is made from outlives it.
class TensorStream {
 public:
  static constexpr std::uint64_t kPieceValues = std::uint64_t{64} << 10;

  TensorStream(gguf::Writer& writer, parallel::ThreadPool& pool, const WorkHooks& hooks)
      : writer_(writer), pool_(pool), hooks_(hooks) {}

  // Fills `blocks`, whole blocks from index `first_block` of the tensor on. Called from several threads at
  // once.
  using Make = std::function<Status(std::uint64_t first_block, std::span<std::byte> blocks)>;

  // Makes and writes the `elements` values of the writer's current tensor. The error of `make` with the
  // tensor's name, kCancelled where hooks.stop() says so, else as Writer::write.
  [[nodiscard]] Status write(std::string_view name, const quant::BlockTypeInfo& type, std::uint64_t elements,
                             const Make& make);

  // Bytes written so far.
  [[nodiscard]] std::uint64_t bytes_written() const noexcept { return bytes_written_; }

 private:
  struct Round;
  [[nodiscard]] Status make_round(const Round& round, const Make& make);

  gguf::Writer& writer_;
  parallel::ThreadPool& pool_;
  const WorkHooks& hooks_;
  std::vector<std::byte> buffer_;
  std::uint64_t bytes_written_ = 0;
};

}  // namespace kvasir::cli
