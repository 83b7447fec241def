#include "quant/block_type.h"

#include <array>
#include <string>

#include "base/checked.h"
#include "base/try.h"
#include "quant/codec.h"
#include "quant/float_codec.h"

namespace kvasir::quant {
namespace {

using UnpackRun = void (*)(const std::uint8_t* blocks, std::size_t count, float* values);
using PackRun = void (*)(const float* values, std::size_t count, std::uint8_t* blocks);

struct Row {
  BlockTypeInfo info;
  UnpackRun unpack;
  PackRun pack;
};

template <std::uint32_t kValues, std::uint32_t kBytes, UnpackBlock kUnpack>
void unpack_run(const std::uint8_t* blocks, std::size_t count, float* values) {
  for (std::size_t i = 0; i < count; ++i) kUnpack(blocks + i * kBytes, values + i * kValues);
}

template <std::uint32_t kValues, std::uint32_t kBytes, PackBlock kPack>
void pack_run(const float* values, std::size_t count, std::uint8_t* blocks) {
  for (std::size_t i = 0; i < count; ++i) kPack(values + i * kValues, blocks + i * kBytes);
}

template <std::uint32_t kValues, std::uint32_t kBytes, UnpackBlock kUnpack = nullptr,
          PackBlock kPack = nullptr>
constexpr Row row(BlockType type, std::string_view name) {
  Row result{{type, name, kValues, kBytes, kUnpack != nullptr, kPack != nullptr}, nullptr, nullptr};
  if constexpr (kUnpack != nullptr) result.unpack = unpack_run<kValues, kBytes, kUnpack>;
  if constexpr (kPack != nullptr) result.pack = pack_run<kValues, kBytes, kPack>;
  return result;
}

using enum BlockType;

// Sizes: bits of the numbers, plus scales, as the specification lays them out.
constexpr std::array kRows = {
    row<1, 4, unpack_f32, pack_f32>(kF32, "F32"),
    row<1, 2, unpack_f16, pack_f16>(kF16, "F16"),
    row<32, 18, unpack_q4_0, pack_q4_0>(kQ4_0, "Q4_0"),
    row<32, 20, unpack_q4_1, pack_q4_1>(kQ4_1, "Q4_1"),
    row<32, 22, unpack_q5_0, pack_q5_0>(kQ5_0, "Q5_0"),
    row<32, 24, unpack_q5_1, pack_q5_1>(kQ5_1, "Q5_1"),
    row<32, 34, unpack_q8_0, pack_q8_0>(kQ8_0, "Q8_0"),
    row<32, 36>(kQ8_1, "Q8_1"),
    row<256, 84, unpack_q2_k, pack_q2_k>(kQ2_K, "Q2_K"),
    row<256, 110, unpack_q3_k, pack_q3_k>(kQ3_K, "Q3_K"),
    row<256, 144, unpack_q4_k, pack_q4_k>(kQ4_K, "Q4_K"),
    row<256, 176, unpack_q5_k, pack_q5_k>(kQ5_K, "Q5_K"),
    row<256, 210, unpack_q6_k, pack_q6_k>(kQ6_K, "Q6_K"),
    row<256, 292>(kQ8_K, "Q8_K"),
    row<256, 66>(kIQ2_XXS, "IQ2_XXS"),
    row<256, 74>(kIQ2_XS, "IQ2_XS"),
    row<256, 98, unpack_iq3_xxs>(kIQ3_XXS, "IQ3_XXS"),
    row<256, 50>(kIQ1_S, "IQ1_S"),
    row<32, 18, unpack_iq4_nl, pack_iq4_nl>(kIQ4_NL, "IQ4_NL"),
    row<256, 110, unpack_iq3_s>(kIQ3_S, "IQ3_S"),
    row<256, 82, unpack_iq2_s>(kIQ2_S, "IQ2_S"),
    row<256, 136, unpack_iq4_xs>(kIQ4_XS, "IQ4_XS"),
    row<1, 1>(kI8, "I8"),
    row<1, 2>(kI16, "I16"),
    row<1, 4>(kI32, "I32"),
    row<1, 8>(kI64, "I64"),
    row<1, 8>(kF64, "F64"),
    row<256, 56>(kIQ1_M, "IQ1_M"),
    row<1, 2, unpack_bf16, pack_bf16>(kBF16, "BF16"),
    row<256, 54, unpack_tq1_0>(kTQ1_0, "TQ1_0"),
    row<256, 66, unpack_tq2_0>(kTQ2_0, "TQ2_0"),
    row<32, 17, unpack_mxfp4, pack_mxfp4>(kMXFP4, "MXFP4"),
    row<64, 36, unpack_nvfp4>(kNVFP4, "NVFP4"),
};

constexpr auto kInfos = [] {
  std::array<BlockTypeInfo, kRows.size()> infos{};
  for (std::size_t i = 0; i < kRows.size(); ++i) infos[i] = kRows[i].info;
  return infos;
}();

std::size_t index_of(std::uint32_t number) noexcept {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::uint32_t>(kRows[i].info.type) == number) return i;
  }
  return kRows.size();
}

constexpr char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool same_name(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

// The number of blocks in `bytes`, if `values` floats are exactly what they hold.
Result<std::size_t> count_blocks(const Row& row, std::size_t bytes, std::size_t values) {
  const std::size_t blocks = bytes / row.info.bytes;
  const auto held = base::checked_mul<std::size_t>(blocks, row.info.values);
  if (bytes % row.info.bytes != 0 || !held || *held != values) {
    return fail(Outcome::kInvalidArgument,
                std::to_string(bytes) + " bytes of " + std::string(row.info.name) + " (blocks of " +
                    std::to_string(row.info.bytes) + " bytes, " + std::to_string(row.info.values) +
                    " values) do not hold exactly " + std::to_string(values) + " values",
                {.wanted = values, .available = held, .limit = {}, .setting = {}});
  }
  return blocks;
}

Result<const Row*> row_of(BlockType type) {
  const std::size_t index = index_of(static_cast<std::uint32_t>(type));
  if (index == kRows.size()) {
    return fail(Outcome::kUnsupported,
                "block type " + std::to_string(static_cast<std::uint32_t>(type)) + " is not known");
  }
  return &kRows[index];
}

}  // namespace

std::span<const BlockTypeInfo> block_types() noexcept {
  return kInfos;
}

const BlockTypeInfo* find_block_type(std::uint32_t number) noexcept {
  const std::size_t index = index_of(number);
  return index < kInfos.size() ? &kInfos[index] : nullptr;
}

const BlockTypeInfo* find_block_type(std::string_view name) noexcept {
  for (const BlockTypeInfo& info : kInfos) {
    if (same_name(info.name, name)) return &info;
  }
  return nullptr;
}

const BlockTypeInfo& block_type_info(BlockType type) noexcept {
  const BlockTypeInfo* info = find_block_type(static_cast<std::uint32_t>(type));
  static constexpr BlockTypeInfo kUnknown{kF32, "unknown", 1, 1, false, false};
  return info != nullptr ? *info : kUnknown;
}

Status unpack(BlockType type, std::span<const std::byte> blocks, std::span<float> values) {
  KVASIR_ASSIGN(const Row* row, row_of(type));
  if (row->unpack == nullptr) {
    return fail(Outcome::kUnsupported,
                "weights of type " + std::string(row->info.name) + " cannot be read by this version");
  }
  KVASIR_ASSIGN(const std::size_t count, count_blocks(*row, blocks.size(), values.size()));
  row->unpack(reinterpret_cast<const std::uint8_t*>(blocks.data()), count, values.data());
  return {};
}

Status pack(BlockType type, std::span<const float> values, std::span<std::byte> blocks) {
  KVASIR_ASSIGN(const Row* row, row_of(type));
  if (row->pack == nullptr) {
    return fail(Outcome::kUnsupported,
                "weights of type " + std::string(row->info.name) + " cannot be written by this version");
  }
  KVASIR_ASSIGN(const std::size_t count, count_blocks(*row, blocks.size(), values.size()));
  row->pack(values.data(), count, reinterpret_cast<std::uint8_t*>(blocks.data()));
  return {};
}

}  // namespace kvasir::quant
