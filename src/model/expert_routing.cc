#include "model/expert_routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "simd/vector_math.h"

namespace kvasir::model {
namespace {

// The smallest divisor of the chosen weights: the smallest normal F16, the convention of the field.
constexpr float kWeightSumMin = 6.103515625e-5F;

// Whether a score is strictly higher, as a total order: NaN is lowest.
bool higher(float a, float b) {
  return std::isnan(b) ? !std::isnan(a) : a > b;
}

// The sum of the two highest scores of a group; of the one where it is alone.
float best_two(std::span<const float> scores) {
  std::array<std::uint32_t, 2> best{};
  const std::span<std::uint32_t> some = std::span(best).first(std::min<std::size_t>(2, scores.size()));
  choose_experts(scores, some);
  float sum = 0;
  for (const std::uint32_t expert : some) sum += scores[expert];
  return sum;
}

// Of the groups that are not among the best, no expert can be chosen.
void keep_best_groups(std::span<float> choice, const Routing& routing) {
  const std::size_t width = choice.size() / routing.groups;
  std::array<float, Routing::kGroupsMax> scores{};
  std::array<std::uint32_t, Routing::kGroupsMax> best{};
  for (std::uint32_t group = 0; group < routing.groups; ++group)
    scores[group] = best_two(choice.subspan(group * width, width));
  const std::span<std::uint32_t> kept = std::span(best).first(routing.groups_used);
  choose_experts(std::span(scores).first(routing.groups), kept);
  for (std::uint32_t group = 0; group < routing.groups; ++group) {
    if (!std::ranges::binary_search(kept, group))
      std::ranges::fill(choice.subspan(group * width, width), -std::numeric_limits<float>::infinity());
  }
}

// One row's choice.
void choose(ExpertScratch& scratch, std::size_t row, std::size_t experts, const Routing& routing) {
  const std::span<float> scores = scratch.router.row(row).first(experts);
  if (routing.gate == Routing::Gate::kSoftmax) simd::softmax(scores);
  if (routing.gate == Routing::Gate::kSigmoid) simd::sigmoid(scores);
  const std::span<std::uint32_t> chosen = std::span(scratch.chosen).subspan(row * routing.used, routing.used);
  if (routing.bias.empty() && routing.groups == 1) return choose_experts(scores, chosen);
  const std::span<float> choice = scratch.choice.row(row).first(experts);
  std::ranges::copy(scores, choice.begin());
  for (std::size_t expert = 0; expert < routing.bias.size(); ++expert) choice[expert] += routing.bias[expert];
  if (routing.groups > 1) keep_best_groups(choice, routing);
  choose_experts(choice, chosen);
}

// Weighs one row's chosen experts, summed in their ascending order.
void weigh(ExpertScratch& scratch, std::size_t row, const Routing& routing) {
  const std::span<const float> scores = scratch.router.row(row);
  const std::span<const std::uint32_t> chosen =
      std::span(scratch.chosen).subspan(row * routing.used, routing.used);
  const std::span<const std::uint32_t> assigned =
      std::span(scratch.of_row).subspan(row * routing.used, routing.used);
  float sum = 0;
  for (const std::uint32_t expert : chosen) sum += scores[expert];
  const float divisor = routing.sum_to_one ? std::max(sum, kWeightSumMin) : 1;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    scratch.assignments[assigned[i]].weight = scores[chosen[i]] / divisor * routing.scale;
}

// The same where the chosen ones' raw scores become their probabilities.
void weigh_chosen_alone(ExpertScratch& scratch, std::size_t row, const Routing& routing) {
  const std::span<const float> scores = scratch.router.row(row);
  const std::span<float> weights = scratch.choice.row(row).first(routing.used);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = scores[scratch.chosen[row * routing.used + i]];
  simd::softmax(weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint32_t assigned = scratch.of_row[row * routing.used + i];
    scratch.assignments[assigned].weight = weights[i] * routing.scale;
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

void route(ExpertScratch& scratch, std::size_t rows, std::size_t experts, const Routing& routing) noexcept {
  const std::size_t used = routing.used;
  for (std::size_t row = 0; row < rows; ++row) choose(scratch, row, experts, routing);
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
  for (std::size_t row = 0; row < rows; ++row) {
    if (routing.gate == Routing::Gate::kSoftmaxOfChosen) {
      weigh_chosen_alone(scratch, row, routing);
    } else {
      weigh(scratch, row, routing);
    }
  }
}

}  // namespace kvasir::model
