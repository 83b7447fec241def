// Inside the room: the checksum of the whole, taken piece by piece.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace kvasir::archive {

class WholeHash {
 public:
  // Throws std::bad_alloc.
  WholeHash() : state_(XXH3_createState()) {
    if (state_ == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }
  void add(std::span<const std::byte> bytes) noexcept {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  // Least significant byte first.
  [[nodiscard]] std::array<std::byte, 16> value() const noexcept {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    std::array<std::byte, 16> bytes{};
    for (std::size_t i = 0; i < 8; ++i) {
      bytes[i] = static_cast<std::byte>(hash.low64 >> (8 * i));
      bytes[8 + i] = static_cast<std::byte>(hash.high64 >> (8 * i));
    }
    return bytes;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace kvasir::archive
