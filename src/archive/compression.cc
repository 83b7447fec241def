#include "archive/compression.h"

#include <zstd.h>

#include <string>

#include "archive/format.h"
#include "base/within_memory.h"

namespace kvasir::archive {

struct Compression::Contexts {
  Contexts() = default;
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
  ~Contexts() {
    ZSTD_freeCCtx(compressing);
    ZSTD_freeDCtx(expanding);
  }
  ZSTD_CCtx* compressing = nullptr;
  ZSTD_DCtx* expanding = nullptr;
};

Compression::Compression() = default;
Compression::Compression(Compression&&) noexcept = default;
Compression& Compression::operator=(Compression&&) noexcept = default;
Compression::~Compression() = default;

Result<std::span<const std::byte>> Compression::compress(std::span<const std::byte> bytes, int level) {
  return base::within_memory([&]() -> Result<std::span<const std::byte>> {
    if (contexts_ == nullptr) contexts_ = std::make_unique<Contexts>();
    if (contexts_->compressing == nullptr) contexts_->compressing = ZSTD_createCCtx();
    if (contexts_->compressing == nullptr) return fail(Outcome::kOutOfMemory, "out of memory");
    out_.resize(ZSTD_compressBound(bytes.size()));
    const std::size_t size = ZSTD_compressCCtx(contexts_->compressing, out_.data(), out_.size(), bytes.data(),
                                               bytes.size(), level);
    if (ZSTD_isError(size) != 0)
      return fail(Outcome::kOutOfMemory, std::string("zstd: ") + ZSTD_getErrorName(size));
    if (size >= bytes.size() || size * kCompressionMost < bytes.size()) return std::span<const std::byte>();
    return std::span<const std::byte>(out_).first(size);
  });
}

Status Compression::expand(std::span<const std::byte> stored, std::span<std::byte> into) {
  return base::within_memory([&]() -> Status {
    if (contexts_ == nullptr) contexts_ = std::make_unique<Contexts>();
    if (contexts_->expanding == nullptr) contexts_->expanding = ZSTD_createDCtx();
    if (contexts_->expanding == nullptr) return fail(Outcome::kOutOfMemory, "out of memory");
    const std::size_t size =
        ZSTD_decompressDCtx(contexts_->expanding, into.data(), into.size(), stored.data(), stored.size());
    if (ZSTD_isError(size) != 0)
      return fail(Outcome::kCorrupt,
                  std::string("what was compressed is damaged: ") + ZSTD_getErrorName(size));
    if (size != into.size()) {
      return fail(
          Outcome::kCorrupt,
          "what was compressed holds " + std::to_string(size) + " bytes, not " + std::to_string(into.size()),
          {.wanted = into.size(), .available = size});
    }
    return {};
  });
}

}  // namespace kvasir::archive
