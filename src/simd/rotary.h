// Rotary position embedding (RoPE): pairs of dimensions of a query or key turn by an angle that grows with
// position.
//
// Sources: Su et al., RoFormer, 2021; linear scaling: Chen et al., Extending Context Window, 2023; YaRN: Peng
// et al., 2023; factor tensors: the GGUF convention (rope_freqs.weight divides the frequencies).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::simd {

// Which two dimensions turn together.
enum class RopePairing : std::uint8_t {
  kAdjacent,  // 2i and 2i + 1
  kHalves,    // i and i + dims / 2
};

// YaRN: low frequencies are scaled, high ones kept, with a ramp between.
struct YarnSpec {
  double original_context = 0;  // trained length before scaling, in tokens
  double extrapolation = 1;     // how much of the ramp applies
  double beta_fast = 32;        // turns within the trained length above which nothing is scaled
  double beta_slow = 1;         // turns below which all is scaled
};

struct RotarySpec {
  std::size_t dims = 0;  // leading dimensions of a head that turn, even; the others stay
  RopePairing pairing = RopePairing::kAdjacent;
  double base = 10000;
  double frequency_scale = 1;   // 1 / factor of linear scaling or YaRN
  double attention_factor = 1;  // multiplies cos and sin
  std::vector<float> factors;   // empty, or dims / 2 divisors of the frequencies
  std::optional<YarnSpec> yarn;
};

// The frequencies of a model, fixed when it is loaded. Immutable; any thread.
class RotaryTable {
 public:
  // kInvalidArgument where a number is not usable (odd dims, base or factor not positive, ...), and says
  // which.
  [[nodiscard]] static Result<RotaryTable> make(const RotarySpec& spec);

  // An empty table: nothing turns.
  RotaryTable() = default;

  [[nodiscard]] std::size_t dims() const noexcept { return frequencies_.size() * 2; }

  // All that the turns depend on: which dimensions turn together, the attention factor, and each pair's
  // radians for a position.
  [[nodiscard]] RopePairing pairing() const noexcept { return pairing_; }
  [[nodiscard]] double magnitude() const noexcept { return magnitude_; }
  [[nodiscard]] std::span<const double> frequencies() const noexcept { return frequencies_; }

  // Cosines and sines (times the attention factor) of every pair at `position`, dims() / 2 of each. Angles
  // are taken in double precision, so they are as exact at one million as at ten.
  void turn_at(double position, std::span<float> cosines, std::span<float> sines) const noexcept;

  // The same without the attention factor, for what was turned before: by `distance` positions, of either
  // sign. |distance| times the greatest frequency is below 2^30.
  void pure_turn_at(std::int64_t distance, std::span<float> cosines, std::span<float> sines) const noexcept;

  // Turns one head in place.
  void rotate(std::span<float> head, std::span<const float> cosines,
              std::span<const float> sines) const noexcept;

 private:
  void turn(double position, double magnitude, std::span<float> cosines,
            std::span<float> sines) const noexcept;

  std::vector<double> frequencies_;  // radians for each position
  double magnitude_ = 1;
  RopePairing pairing_ = RopePairing::kAdjacent;
};

// Cosine and sine of `angle` radians, |angle| < 2^30, to 2 units in the last place of a double near 1; the
// same bits on every machine.
struct CosSin {
  double cos;
  double sin;
};
[[nodiscard]] CosSin cos_sin(double angle) noexcept;

}  // namespace kvasir::simd
