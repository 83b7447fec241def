#include "model/arch/t5_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace kvasir::model {
namespace {

constexpr std::int32_t kReach = 128;  // farther tokens share a bucket

// The bucket of a cell that lies `distance` positions behind (negative) or before a query. Half of them are
// for each side where a text is read both ways; half of those of a side are for one distance each.
std::uint32_t bucket_of(std::int32_t distance, std::uint32_t buckets, bool both_ways) {
  const std::uint32_t side = both_ways ? buckets / 2 : buckets;
  const std::uint32_t first = both_ways && distance > 0 ? side : 0;
  const auto far = static_cast<std::uint32_t>(both_ways ? std::abs(distance) : -std::min(distance, 0));
  const std::uint32_t exact = side / 2;
  if (far < exact) return first + far;
  const double share =
      std::log(static_cast<double>(far) / exact) / std::log(static_cast<double>(kReach) / exact);
  const auto bucket = static_cast<std::uint32_t>(exact + share * (side - exact));
  return first + std::min(side - 1, bucket);
}

}  // namespace

PositionBias bias_of_buckets(const std::vector<float>& numbers, std::uint32_t buckets, std::uint32_t heads,
                             bool both_ways) {
  PositionBias bias;
  bias.reach = kReach;
  for (std::uint32_t head = 0; head < heads; ++head) {
    for (std::int32_t distance = -kReach; distance <= kReach; ++distance)
      bias.values.push_back(numbers[std::size_t{bucket_of(distance, buckets, both_ways)} * heads + head]);
  }
  return bias;
}

}  // namespace kvasir::model
