#include "simd/scans.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/scans.cc"
#include "hwy/foreach_target.h"
// Highway must come first.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "simd/curves-inl.h"
#include "simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvasir::simd::HWY_NAMESPACE {
namespace {

HWY_INLINE F16x LoadUpTo16(const float* from, std::size_t count) {
  return count >= 16 ? LoadFloats(from) : LoadSome(from, count, 0.0f);
}
HWY_INLINE void StoreUpTo16(const F16x& value, std::size_t count, float* to) {
  if (count >= 16) return StoreFloats(value, to);
  StoreSome(value, count, to);
}

void ConvolveStep(float* history, const float* weight, const float* bias, float* row, std::size_t taps,
                  std::size_t channels) {
  for (std::size_t c = 0; c < channels; c += 16) {
    const std::size_t count = channels - c;
    const F16x newest = LoadUpTo16(row + c, count);
    F16x sum = bias == nullptr ? Splat(0.0f) : LoadFloats(bias + c);
    for (std::size_t tap = 0; tap + 1 < taps; ++tap) {
      float* const at = history + tap * kChannelBlock + c;
      sum = MulAdd(LoadFloats(at), LoadFloats(weight + tap * kChannelBlock + c), sum);
      // The next tap's input moves up; it is read by the next turn before its own place is written.
      StoreFloats(tap + 2 < taps ? LoadFloats(at + kChannelBlock) : newest, at);
    }
    sum = MulAdd(newest, LoadFloats(weight + (taps - 1) * kChannelBlock + c), sum);
    StoreUpTo16(sum, count, row + c);
  }
}

void Selective(const SelectiveStep& step, float* state, float* out) {
  const std::size_t channels = step.input.size();
  for (std::size_t c = 0; c < channels; c += 16) {
    const std::size_t count = channels - c;
    const F16x time = Softplus(LoadUpTo16(step.time.data() + c, count));
    const F16x input = LoadUpTo16(step.input.data() + c, count);
    const F16x entering = Mul(time, input);
    F16x sum = Splat(0.0f);
    for (std::size_t n = 0; n < step.enter.size(); ++n) {
      float* const at = state + n * kChannelBlock + c;
      const F16x kept = Exp(Mul(time, LoadFloats(step.decay.data() + n * kChannelBlock + c)));
      const F16x next = MulAdd(entering, Splat(step.enter[n]), Mul(LoadFloats(at), kept));
      StoreFloats(next, at);
      sum = MulAdd(next, Splat(step.leave[n]), sum);
    }
    sum = MulAdd(input, LoadFloats(step.skip.data() + c), sum);
    StoreUpTo16(Mul(sum, Silu(LoadUpTo16(step.gate.data() + c, count))), count, out + c);
  }
}

template <StateStore kStore>
HWY_INLINE void StoreState(const F16x& value, float* to) {
  kStore == StateStore::kAway ? StreamFloats(value, to) : StoreFloats(value, to);
}

// Of a whole head's lanes at once where there are 64: memory is read from its start to its end. What is left
// over goes through by 32 and 16.
template <std::size_t kWide, bool kReadsBefore, StateStore kStore>
HWY_INLINE void OuterColumns(const OuterStep& step, const float* old_state, float* state, float* out,
                             std::size_t from) {
  const std::size_t lanes = state_lanes(step.value.size());
  const std::size_t decay_step = step.decay.size() == 1 ? 0 : 1;
  const F16x scale = Splat(step.value_scale);
  F16x value[kWide], scaled[kWide], sum[kWide];
  for (std::size_t w = 0; w < kWide; ++w) {
    value[w] = LoadUpTo16(step.value.data() + from + w * 16, step.value.size() - from - w * 16);
    scaled[w] = Mul(value[w], scale);
    sum[w] = Splat(0.0f);
  }
  for (std::size_t k = 0; k < step.key.size(); ++k) {
    const std::size_t row = k * lanes + from;
    const F16x kept = Splat(step.decay[k * decay_step]);
    const F16x key = Splat(step.key[k]);
    const F16x query = Splat(step.query[k]);
    for (std::size_t w = 0; w < kWide; ++w) {
      const F16x before = LoadFloats(old_state + row + w * 16);
      const F16x after = MulAdd(key, scaled[w], Mul(before, kept));
      StoreState<kStore>(after, state + row + w * 16);
      sum[w] = MulAdd(kReadsBefore ? before : after, query, sum[w]);
    }
  }
  for (std::size_t w = 0; w < kWide; ++w) {
    sum[w] = MulAdd(value[w], Splat(step.skip), sum[w]);
    StoreUpTo16(sum[w], step.value.size() - from - w * 16, out + from + w * 16);
  }
}

template <bool kReadsBefore, StateStore kStore>
void OuterRows(const OuterStep& step, const float* old_state, float* state, float* out) {
  const std::size_t lanes = state_lanes(step.value.size());
  std::size_t at = 0;
  for (; at + 64 <= lanes; at += 64) OuterColumns<4, kReadsBefore, kStore>(step, old_state, state, out, at);
  for (; at + 32 <= lanes; at += 32) OuterColumns<2, kReadsBefore, kStore>(step, old_state, state, out, at);
  if (at < lanes) OuterColumns<1, kReadsBefore, kStore>(step, old_state, state, out, at);
}

template <StateStore kStore>
void Outer(const OuterStep& step, const float* old_state, float* state, float* out) {
  step.reads_before ? OuterRows<true, kStore>(step, old_state, state, out)
                    : OuterRows<false, kStore>(step, old_state, state, out);
}

void OuterNear(const OuterStep& step, const float* old_state, float* state, float* out) {
  Outer<StateStore::kNear>(step, old_state, state, out);
}

void OuterAway(const OuterStep& step, const float* old_state, float* state, float* out) {
  Outer<StateStore::kAway>(step, old_state, state, out);
  hwy::FlushStream();
}

template <std::size_t kWide, StateStore kStore>
HWY_INLINE void DeltaColumns(const DeltaStep& step, const float* old_state, float* state, float* out,
                             std::size_t from) {
  const std::size_t lanes = state_lanes(step.value.size());
  const std::size_t decay_step = step.decay.size() == 1 ? 0 : 1;
  F16x value[kWide], answer[kWide], sum[kWide];
  for (std::size_t w = 0; w < kWide; ++w) {
    value[w] = Mul(LoadUpTo16(step.value.data() + from + w * 16, step.value.size() - from - w * 16),
                   Splat(step.value_scale));
    answer[w] = Splat(0.0f);
    sum[w] = Splat(0.0f);
  }
  for (std::size_t k = 0; k < step.key.size(); ++k) {
    const float* const row = old_state + k * lanes + from;
    const F16x probe = Splat(step.probe[k]);
    for (std::size_t w = 0; w < kWide; ++w) answer[w] = MulAdd(LoadFloats(row + w * 16), probe, answer[w]);
  }
  for (std::size_t w = 0; w < kWide; ++w) answer[w] = Mul(answer[w], Splat(step.probe_scale));
  for (std::size_t k = 0; k < step.key.size(); ++k) {
    const std::size_t row = k * lanes + from;
    const F16x kept = Splat(step.decay[k * decay_step]);
    const F16x correction = Splat(step.correction[k]);
    const F16x key = Splat(step.key[k]);
    const F16x query = Splat(step.query[k]);
    for (std::size_t w = 0; w < kWide; ++w) {
      F16x next = Mul(LoadFloats(old_state + row + w * 16), kept);
      next = MulAdd(answer[w], correction, next);
      next = MulAdd(value[w], key, next);
      StoreState<kStore>(next, state + row + w * 16);
      sum[w] = MulAdd(next, query, sum[w]);
    }
  }
  for (std::size_t w = 0; w < kWide; ++w) {
    StoreUpTo16(sum[w], step.value.size() - from - w * 16, out + from + w * 16);
  }
}

template <StateStore kStore>
void Delta(const DeltaStep& step, const float* old_state, float* state, float* out) {
  const std::size_t lanes = state_lanes(step.value.size());
  std::size_t at = 0;
  for (; at + 64 <= lanes; at += 64) DeltaColumns<4, kStore>(step, old_state, state, out, at);
  for (; at + 32 <= lanes; at += 32) DeltaColumns<2, kStore>(step, old_state, state, out, at);
  if (at < lanes) DeltaColumns<1, kStore>(step, old_state, state, out, at);
}

void DeltaNear(const DeltaStep& step, const float* old_state, float* state, float* out) {
  Delta<StateStore::kNear>(step, old_state, state, out);
}

void DeltaAway(const DeltaStep& step, const float* old_state, float* state, float* out) {
  Delta<StateStore::kAway>(step, old_state, state, out);
  hwy::FlushStream();
}

}  // namespace
}  // namespace kvasir::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kvasir::simd {
namespace {
HWY_EXPORT(ConvolveStep);
HWY_EXPORT(DeltaAway);
HWY_EXPORT(DeltaNear);
HWY_EXPORT(OuterAway);
HWY_EXPORT(OuterNear);
HWY_EXPORT(Selective);
}  // namespace

void convolve_step(std::span<float> history, std::span<const float> weight, std::span<const float> bias,
                   std::span<float> row) noexcept {
  HWY_DYNAMIC_DISPATCH(ConvolveStep)
  (history.data(), weight.data(), bias.empty() ? nullptr : bias.data(), row.data(),
   weight.size() / kChannelBlock, row.size());
}

void selective_step(const SelectiveStep& step, std::span<float> state, std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(Selective)(step, state.data(), out.data());
}

void outer_step(const OuterStep& step, std::span<const float> before, std::span<float> state,
                std::span<float> out, StateStore store) noexcept {
  if (store == StateStore::kAway) {
    HWY_DYNAMIC_DISPATCH(OuterAway)(step, before.data(), state.data(), out.data());
  } else {
    HWY_DYNAMIC_DISPATCH(OuterNear)(step, before.data(), state.data(), out.data());
  }
}

void delta_step(const DeltaStep& step, std::span<const float> before, std::span<float> state,
                std::span<float> out, StateStore store) noexcept {
  if (store == StateStore::kAway) {
    HWY_DYNAMIC_DISPATCH(DeltaAway)(step, before.data(), state.data(), out.data());
  } else {
    HWY_DYNAMIC_DISPATCH(DeltaNear)(step, before.data(), state.data(), out.data());
  }
}

}  // namespace kvasir::simd
#endif  // HWY_ONCE
