#include "cli/tensor_stream.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/try.h"
#include "parallel/first_error.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kPiecesAThread = 8;  // enough that a slow piece at the end does not hold up the others

}  // namespace

// Pieces that are made at once and written together.
struct TensorStream::Round {
  std::uint64_t first_block;
  std::span<std::byte> bytes;
  std::uint64_t piece_blocks;
  std::size_t block_bytes;
};

Status TensorStream::make_round(const Round& round, const Make& make) {
  const std::size_t piece_bytes = round.piece_blocks * round.block_bytes;
  parallel::FirstError first;
  const parallel::RangeFunction work = [&](std::size_t begin, std::size_t end) {
    for (std::size_t piece = begin; piece < end; ++piece) {
      const std::size_t from = piece * piece_bytes;
      const auto bytes = round.bytes.subspan(from, std::min(piece_bytes, round.bytes.size() - from));
      try {
        if (Status made = make(round.first_block + piece * round.piece_blocks, bytes); !made) {
          first.keep(std::move(made).error());
        }
      } catch (const std::bad_alloc&) {
        first.keep(Error(Outcome::kOutOfMemory, {}));  // an empty text allocates nothing
      }
    }
  };
  pool_.run(base::div_up(round.bytes.size(), piece_bytes), 1, work);
  return std::move(first).status();
}

Status TensorStream::write(std::string_view name, const quant::BlockTypeInfo& type, std::uint64_t elements,
                           const Make& make) {
  const std::uint64_t piece_blocks = std::max<std::uint64_t>(1, kPieceValues / type.values);
  const std::uint64_t round_blocks =
      piece_blocks * kPiecesAThread * static_cast<std::uint64_t>(pool_.threads());
  const std::uint64_t blocks = elements / type.values;
  for (std::uint64_t block = 0; block < blocks;) {
    if (hooks_.stop()) return fail(Outcome::kCancelled, "interrupted");
    hooks_.progress(bytes_written_, name);
    const std::uint64_t count = std::min(round_blocks, blocks - block);
    const std::size_t bytes = count * type.bytes;
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    const Round round{block, std::span(buffer_).first(bytes), piece_blocks, type.bytes};
    if (Status made = make_round(round, make); !made) {
      return fail(made.error().within("tensor '" + std::string(name) + "'"));
    }
    KVASIR_TRY(writer_.write(round.bytes));
    bytes_written_ += bytes;
    block += count;
  }
  return {};
}

}  // namespace kvasir::cli
