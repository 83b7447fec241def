#include "simd/vector_math.h"

#include <cmath>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/vector_math.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/highway.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

// Calls whole(i) for every full sixteen and then some(i, count) for the rest, if any.
template <class Whole, class Some>
HWY_INLINE void BySixteen(std::size_t size, const Whole& whole, const Some& some) {
  std::size_t i = 0;
  for (; i + 16 <= size; i += 16) whole(i);
  if (i < size) some(i, size - i);
}

void RmsNorm(const float* x, const float* weight, float epsilon, float* out, std::size_t size) {
  F16x squares = Splat(0.0f);
  BySixteen(
      size,
      [&](std::size_t i) {
        const F16x v = LoadFloats(x + i);
        squares = MulAdd(v, v, squares);
      },
      [&](std::size_t i, std::size_t count) {
        const F16x v = LoadSome(x + i, count, 0.0f);
        squares = MulAdd(v, v, squares);
      });
  const float mean = SumLanes(squares) / static_cast<float>(size);
  const F16x factor = Splat(1.0f / std::sqrt(mean + epsilon));
  BySixteen(
      size,
      [&](std::size_t i) {
        StoreFloats(Mul(Mul(LoadFloats(x + i), factor), LoadFloats(weight + i)), out + i);
      },
      [&](std::size_t i, std::size_t count) {
        const F16x v = Mul(Mul(LoadSome(x + i, count, 0.0f), factor), LoadSome(weight + i, count, 0.0f));
        StoreSome(v, count, out + i);
      });
}

void LayerNorm(const float* x, const float* weight, const float* bias, float epsilon, float* out,
               std::size_t size) {
  F16x sums = Splat(0.0f);
  BySixteen(
      size, [&](std::size_t i) { sums = Add(sums, LoadFloats(x + i)); },
      [&](std::size_t i, std::size_t count) { sums = Add(sums, LoadSome(x + i, count, 0.0f)); });
  const float mean = SumLanes(sums) / static_cast<float>(size);
  const F16x middle = Splat(mean);
  F16x squares = Splat(0.0f);
  BySixteen(
      size,
      [&](std::size_t i) {
        const F16x v = Sub(LoadFloats(x + i), middle);
        squares = MulAdd(v, v, squares);
      },
      [&](std::size_t i, std::size_t count) {
        const F16x v = Sub(LoadSome(x + i, count, mean), middle);
        squares = MulAdd(v, v, squares);
      });
  const F16x factor = Splat(1.0f / std::sqrt(SumLanes(squares) / static_cast<float>(size) + epsilon));
  const auto normed = [&](const F16x& v, const F16x& by) { return Mul(Mul(Sub(v, middle), factor), by); };
  BySixteen(
      size,
      [&](std::size_t i) {
        const F16x v = normed(LoadFloats(x + i), LoadFloats(weight + i));
        StoreFloats(bias != nullptr ? Add(v, LoadFloats(bias + i)) : v, out + i);
      },
      [&](std::size_t i, std::size_t count) {
        const F16x v = normed(LoadSome(x + i, count, 0.0f), LoadSome(weight + i, count, 0.0f));
        StoreSome(bias != nullptr ? Add(v, LoadSome(bias + i, count, 0.0f)) : v, count, out + i);
      });
}

// x / (1 + e^-z)
HWY_INLINE F16x Sigmoid(const F16x& x, const F16x& z) {
  return Div(x, Add(Splat(1.0f), Exp(Sub(Splat(0.0f), z))));
}

HWY_INLINE F16x Least(const F16x& a, float b) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p) {
    // Not Min: a NaN stays one on every instruction set.
    out.part[p] = hn::IfThenElse(hn::Gt(a.part[p], hn::Set(DF(), b)), hn::Set(DF(), b), a.part[p]);
  }
  return out;
}
HWY_INLINE F16x Greatest(const F16x& a, float b) {
  F16x out;
  for (std::size_t p = 0; p < kParts; ++p)
    out.part[p] = hn::IfThenElse(hn::Lt(a.part[p], hn::Set(DF(), b)), hn::Set(DF(), b), a.part[p]);
  return out;
}

struct Silu {
  static F16x Of(const F16x& z) { return Sigmoid(z, z); }
};
struct Gelu {
  static F16x Of(const F16x& z) {
    constexpr float kTwiceRoot = 1.5957691216057308f;  // 2 sqrt(2 / pi)
    const F16x inner = MulAdd(Mul(z, z), Splat(0.044715f), Splat(1.0f));
    return Sigmoid(z, Mul(Mul(z, Splat(kTwiceRoot)), inner));
  }
};
struct Relu {
  static F16x Of(const F16x& z) { return Greatest(z, 0.0f); }
};
struct SquaredRelu {
  static F16x Of(const F16x& z) {
    const F16x positive = Greatest(z, 0.0f);
    return Mul(positive, positive);
  }
};
struct SwishOfSeven {
  static F16x Of(const F16x& z) {
    const F16x bounded = Least(z, 7.0f);
    return Sigmoid(bounded, Mul(bounded, Splat(1.702f)));
  }
};

template <class Function>
void ActivateAll(float* x, std::size_t size) {
  BySixteen(
      size, [&](std::size_t i) { StoreFloats(Function::Of(LoadFloats(x + i)), x + i); },
      [&](std::size_t i, std::size_t count) {
        StoreSome(Function::Of(LoadSome(x + i, count, 0.0f)), count, x + i);
      });
}

template <class Function>
HWY_INLINE F16x Gated(const F16x& gate, const F16x& up) {
  if constexpr (std::is_same_v<Function, SwishOfSeven>) {
    return Mul(Function::Of(gate), Add(Greatest(Least(up, 7.0f), -7.0f), Splat(1.0f)));
  } else {
    return Mul(Function::Of(gate), up);
  }
}

template <class Function>
void GateAll(float* gate, const float* up, std::size_t size) {
  BySixteen(
      size,
      [&](std::size_t i) {
        StoreFloats(Gated<Function>(LoadFloats(gate + i), LoadFloats(up + i)), gate + i);
      },
      [&](std::size_t i, std::size_t count) {
        const F16x gated = Gated<Function>(LoadSome(gate + i, count, 0.0f), LoadSome(up + i, count, 0.0f));
        StoreSome(gated, count, gate + i);
      });
}

void Activate(Activation activation, float* x, std::size_t size) {
  switch (activation) {
    case Activation::kSilu:
      return ActivateAll<Silu>(x, size);
    case Activation::kGelu:
      return ActivateAll<Gelu>(x, size);
    case Activation::kRelu:
      return ActivateAll<Relu>(x, size);
    case Activation::kSquaredRelu:
      return ActivateAll<SquaredRelu>(x, size);
    case Activation::kSwishOfSeven:
      return ActivateAll<SwishOfSeven>(x, size);
  }
}

void ActivateGate(Activation activation, float* gate, const float* up, std::size_t size) {
  switch (activation) {
    case Activation::kSilu:
      return GateAll<Silu>(gate, up, size);
    case Activation::kGelu:
      return GateAll<Gelu>(gate, up, size);
    case Activation::kRelu:
      return GateAll<Relu>(gate, up, size);
    case Activation::kSquaredRelu:
      return GateAll<SquaredRelu>(gate, up, size);
    case Activation::kSwishOfSeven:
      return GateAll<SwishOfSeven>(gate, up, size);
  }
}

void SoftCap(float* x, float cap, std::size_t size) {
  BySixteen(
      size, [&](std::size_t i) { StoreFloats(SoftCapped(LoadFloats(x + i), cap), x + i); },
      [&](std::size_t i, std::size_t count) {
        StoreSome(SoftCapped(LoadSome(x + i, count, 0.0f), cap), count, x + i);
      });
}

void SigmoidAll(float* x, std::size_t size) {
  BySixteen(
      size, [&](std::size_t i) { StoreFloats(Sigmoid(Splat(1.0f), LoadFloats(x + i)), x + i); },
      [&](std::size_t i, std::size_t count) {
        StoreSome(Sigmoid(Splat(1.0f), LoadSome(x + i, count, 0.0f)), count, x + i);
      });
}

void Softmax(float* x, std::size_t size) {
  float max = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < size; ++i) max = x[i] > max ? x[i] : max;
  const F16x shift = Splat(max);
  F16x sums = Splat(0.0f);
  BySixteen(
      size,
      [&](std::size_t i) {
        const F16x e = Exp(Sub(LoadFloats(x + i), shift));
        StoreFloats(e, x + i);
        sums = Add(sums, e);
      },
      [&](std::size_t i, std::size_t count) {
        StoreSome(Exp(Sub(LoadSome(x + i, count, 0.0f), shift)), count, x + i);
        sums = Add(sums, LoadSome(x + i, count, 0.0f));
      });
  const float sum = SumLanes(sums);
  for (std::size_t i = 0; i < size; ++i) x[i] /= sum;
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(RmsNorm);
HWY_EXPORT(LayerNorm);
HWY_EXPORT(Activate);
HWY_EXPORT(ActivateGate);
HWY_EXPORT(SoftCap);
HWY_EXPORT(SigmoidAll);
HWY_EXPORT(Softmax);
}  // namespace

void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon,
              std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x.data(), weight.data(), epsilon, out.data(), x.size());
}

void layer_norm(std::span<const float> x, std::span<const float> weight, std::span<const float> bias,
                float epsilon, std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(LayerNorm)
  (x.data(), weight.data(), bias.empty() ? nullptr : bias.data(), epsilon, out.data(), x.size());
}

void activate(Activation activation, std::span<float> x) noexcept {
  HWY_DYNAMIC_DISPATCH(Activate)(activation, x.data(), x.size());
}

void activate_gate(Activation activation, std::span<float> gate, std::span<const float> up) noexcept {
  HWY_DYNAMIC_DISPATCH(ActivateGate)(activation, gate.data(), up.data(), gate.size());
}

void soft_cap(std::span<float> x, float cap) noexcept {
  HWY_DYNAMIC_DISPATCH(SoftCap)(x.data(), cap, x.size());
}

void sigmoid(std::span<float> x) noexcept {
  HWY_DYNAMIC_DISPATCH(SigmoidAll)(x.data(), x.size());
}

void softmax(std::span<float> x) noexcept {
  HWY_DYNAMIC_DISPATCH(Softmax)(x.data(), x.size());
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
