// The recorded blocks of tests/data/quant: one set of 8 x 512 floats, packed by the format's own reference.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/paths.h"

namespace kvasir::test {

struct Reference {
  const char* type;
  std::uint64_t digest;  // FNV-1a of what the blocks unpack to, as bytes
  double nmse;           // of those floats against the input
};

inline std::ostream& operator<<(std::ostream& out, const Reference& reference) {
  return out << reference.type;
}

inline constexpr Reference kReferences[] = {
    {"BF16", 0xE59FCF216BEBCACEU, 2.89014e-06},  {"F16", 0x0D5DB48C40CF11E0U, 3.72071e-08},
    {"IQ2_S", 0x788212D4BF42FCB6U, 0.0698417},   {"IQ3_S", 0xF1B85540A05F4439U, 0.0330318},
    {"IQ3_XXS", 0x60B279E637016B35U, 0.0424375}, {"IQ4_NL", 0xA1D205A059C758C8U, 0.00545481},
    {"IQ4_XS", 0x73B0744367E37608U, 0.00551604}, {"MXFP4", 0x7BD886A87C6C54B8U, 0.0137565},
    {"NVFP4", 0xD924B0CD27139542U, 0.0093545},   {"Q2_K", 0x5F34E1BF79049C32U, 0.0959649},
    {"Q3_K", 0x9B72BDEF761C6FA3U, 0.0248208},    {"Q4_0", 0x4232AEABEA0C8A34U, 0.00774893},
    {"Q4_1", 0xBFDC8ED8C8C5EC59U, 0.0065759},    {"Q4_K", 0x0354EF4CABF8AADDU, 0.00554575},
    {"Q5_0", 0x7F1D5A6698571579U, 0.00173583},   {"Q5_1", 0xBC7A23FC03C08E70U, 0.00144397},
    {"Q5_K", 0x151AF0B63F052C05U, 0.00129868},   {"Q6_K", 0x091F0FEAD5E15611U, 0.000334212},
    {"Q8_0", 0xAFF8EAA43B87D6A5U, 2.83712e-05},  {"TQ1_0", 0x69AD98A86A7DD659U, 0.553771},
    {"TQ2_0", 0x69AD98A86A7DD659U, 0.553771},
};

inline std::vector<std::byte> read_bytes(const std::string& path) {
  auto bytes = base::read_whole(base::system_files(), path, 1U << 20);
  EXPECT_TRUE(bytes) << path;
  return bytes ? *std::move(bytes) : std::vector<std::byte>{};
}

inline std::vector<float> read_floats(const std::string& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

inline std::uint64_t digest_of(std::span<const float> values) {
  std::uint64_t digest = 0xCBF29CE484222325U;
  for (const std::byte byte : std::as_bytes(values)) {
    digest = (digest ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3U;
  }
  return digest;
}

// Sum of squared differences over sum of squares.
inline double nmse(std::span<const float> values, std::span<const float> reference) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - static_cast<double>(reference[i]);
    error += difference * difference;
    power += static_cast<double>(reference[i]) * static_cast<double>(reference[i]);
  }
  return error / power;
}

}  // namespace kvasir::test
