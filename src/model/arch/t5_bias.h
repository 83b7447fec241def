// What T5 adds to a score for the distance of a cell from the query. Distances share buckets: the near ones
// have one each, farther ones fewer and fewer, as Raffel et al., 2019, describe it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/layers.h"

namespace kvasir::model {

// `numbers` are [bucket][head]. `both_ways`: half of the buckets are for cells behind the query.
[[nodiscard]] PositionBias bias_of_buckets(const std::vector<float>& numbers, std::uint32_t buckets,
                                           std::uint32_t heads, bool both_ways);

}  // namespace kvasir::model
