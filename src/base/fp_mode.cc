#include "base/fp_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kvasir::base {
namespace {

#if defined(__x86_64__)
// MXCSR: all exceptions masked, round to nearest, no flush to zero. Source: Intel SDM volume 1,
// section 10.2.3.
constexpr std::uint64_t kStandard = 0x1F80;
std::uint64_t read_mode() noexcept {
  return _mm_getcsr();
}
void write_mode(std::uint64_t mode) noexcept {
  _mm_setcsr(static_cast<unsigned>(mode));
}
#elif defined(__aarch64__)
// FPCR 0: round to nearest, no flush to zero, no traps. Source: Arm ARM, FPCR.
constexpr std::uint64_t kStandard = 0;
std::uint64_t read_mode() noexcept {
  std::uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void write_mode(std::uint64_t mode) noexcept {
  asm volatile("msr fpcr, %0" : : "r"(mode));
}
#else
#error "say how this processor sets rounding and denormals"
#endif

}  // namespace

FloatingPointMode::FloatingPointMode() noexcept : saved_(read_mode()) {
  write_mode(kStandard);
}
FloatingPointMode::~FloatingPointMode() {
  write_mode(saved_);
}

}  // namespace kvasir::base
