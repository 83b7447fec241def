#include "model/expert_routing.h"

#include <algorithm>
#include <cmath>

#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// The smallest divisor of the chosen weights: the smallest normal F16, the convention of the field.
constexpr float kWeightSumMin = 6.103515625e-5F;

// Whether a score is strictly higher, as a total order: NaN is lowest.
bool higher(float a, float b) {
  return std::isnan(b) ? !std::isnan(a) : a > b;
}

// Weighs one row's chosen experts, summed in their ascending order.
void weigh(ExpertScratch& scratch, std::size_t row, std::size_t used) {
  const std::span<const float> probabilities = scratch.router.row(row);
  float sum = 0;
  for (std::size_t i = row * used; i < (row + 1) * used; ++i) sum += probabilities[scratch.chosen[i]];
  const float divisor = std::max(sum, kWeightSumMin);
  for (std::size_t i = row * used; i < (row + 1) * used; ++i) {
    scratch.assignments[scratch.of_row[i]].weight = probabilities[scratch.chosen[i]] / divisor;
  }
}

}  // namespace

void choose_experts(std::span<const float> scores, std::span<std::uint32_t> chosen) noexcept {
  std::size_t count = 0;
  for (std::uint32_t expert = 0; expert < scores.size(); ++expert) {
    // Insertion by descending score; an equal score stays behind the lower index that came before it.
    std::size_t at = count;
    while (at > 0 && higher(scores[expert], scores[chosen[at - 1]])) --at;
    if (at == chosen.size()) continue;
    count = std::min(count + 1, chosen.size());
    for (std::size_t i = count - 1; i > at; --i) chosen[i] = chosen[i - 1];
    chosen[at] = expert;
  }
  std::ranges::sort(chosen);
}

void route(ExpertScratch& scratch, std::size_t rows, std::size_t experts, std::size_t used) noexcept {
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<float> scores = scratch.router.row(row).first(experts);
    simd::softmax(scores);
    choose_experts(scores, std::span(scratch.chosen).subspan(row * used, used));
  }
  scratch.loads.clear();
  std::uint32_t next = 0;
  for (std::uint32_t expert = 0; expert < experts; ++expert) {
    ExpertLoad load{expert, next, 0};
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < used; ++i) {
        if (scratch.chosen[row * used + i] != expert) continue;
        scratch.assignments[next].row = row;
        scratch.of_row[row * used + i] = next++;
      }
    }
    load.count = next - load.first;
    if (load.count > 0) scratch.loads.push_back(load);
  }
  for (std::size_t row = 0; row < rows; ++row) weigh(scratch, row, used);
}

}  // namespace kvasir::model
