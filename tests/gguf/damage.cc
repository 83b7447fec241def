#include "damage.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <random>

namespace kvasir::gguf::test {
namespace {

constexpr std::array<std::uint64_t, 14> kExtremes = {
    0,          1,          2,          0x7FFF,      0x8000,     0xFFFF,           0x10000,
    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 1ULL << 48, (1ULL << 63) - 1, 1ULL << 63};

}  // namespace

void cut_everywhere(const Bytes& file, const Examine& examine) {
  for (std::size_t size = 0; size < file.size(); ++size) {
    examine(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)),
            fmt::format("cut to {} bytes", size));
  }
}

void set_extremes(const Bytes& file, const Examine& examine) {
  const Result<File> opened = parse(file);
  if (!opened) return examine(file, "the file before it is changed");
  Bytes changed = file;
  const RawGguf image = image_of(*opened);
  for (const Field& field : image.fields()) {
    std::uint64_t value = 0;
    std::memcpy(&value, &file[field.offset], field.width);
    std::vector<std::uint64_t> settings(kExtremes.begin(), kExtremes.end());
    settings.insert(settings.end(), {value - 1, value + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 1, ~value});
    for (const std::uint64_t setting : settings) {
      std::memcpy(&changed[field.offset], &setting, field.width);
      examine(changed, fmt::format("{} at byte {} set to {}", field.name, field.offset, setting));
    }
    std::memcpy(&changed[field.offset], &value, field.width);
  }
}

void flip_bytes(const Bytes& file, std::uint64_t count, std::uint64_t seed, const Examine& examine) {
  std::mt19937_64 random(seed);
  Bytes changed = file;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string what = "flips";
    const std::uint64_t flips = 1 + random() % 4;
    std::vector<std::size_t> places;
    for (std::uint64_t k = 0; k < flips; ++k) {
      places.push_back(random() % file.size());
      changed[places.back()] ^= static_cast<std::byte>(1 + random() % 255);
      what += fmt::format(" {}", places.back());
    }
    examine(changed, what);
    for (const std::size_t place : places) changed[place] = file[place];
  }
}

}  // namespace kvasir::gguf::test
