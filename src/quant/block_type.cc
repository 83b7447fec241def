#include "quant/block_type.h"

#include <array>
#include <string>

#include "base/checked.h"
#include "base/try.h"
#include "quant/codec.h"

namespace kvasir::quant {
namespace {

struct Codec {
  UnpackBlock unpack = nullptr;
  PackBlock pack = nullptr;
};

struct Row {
  BlockType type;
  std::string_view name;
  std::uint32_t values;
  std::uint32_t bytes;
  Codec codec;
};

using enum BlockType;

// Sizes: bits of the numbers, plus scales, as the specification lays them out.
constexpr std::array kRows = std::to_array<Row>({
    {kF32, "F32", 1, 4, {unpack_f32, pack_f32}},
    {kF16, "F16", 1, 2, {unpack_f16, pack_f16}},
    {kQ4_0, "Q4_0", 32, 18, {unpack_q4_0, pack_q4_0}},
    {kQ4_1, "Q4_1", 32, 20, {unpack_q4_1, pack_q4_1}},
    {kQ5_0, "Q5_0", 32, 22, {unpack_q5_0, pack_q5_0}},
    {kQ5_1, "Q5_1", 32, 24, {unpack_q5_1, pack_q5_1}},
    {kQ8_0, "Q8_0", 32, 34, {unpack_q8_0, pack_q8_0}},
    {kQ8_1, "Q8_1", 32, 36, {}},
    {kQ2_K, "Q2_K", 256, 84, {unpack_q2_k, pack_q2_k}},
    {kQ3_K, "Q3_K", 256, 110, {unpack_q3_k, pack_q3_k}},
    {kQ4_K, "Q4_K", 256, 144, {unpack_q4_k, pack_q4_k}},
    {kQ5_K, "Q5_K", 256, 176, {unpack_q5_k, pack_q5_k}},
    {kQ6_K, "Q6_K", 256, 210, {unpack_q6_k, pack_q6_k}},
    {kQ8_K, "Q8_K", 256, 292, {}},
    {kIQ2_XXS, "IQ2_XXS", 256, 66, {}},
    {kIQ2_XS, "IQ2_XS", 256, 74, {}},
    {kIQ3_XXS, "IQ3_XXS", 256, 98, {unpack_iq3_xxs, nullptr}},
    {kIQ1_S, "IQ1_S", 256, 50, {}},
    {kIQ4_NL, "IQ4_NL", 32, 18, {unpack_iq4_nl, pack_iq4_nl}},
    {kIQ3_S, "IQ3_S", 256, 110, {unpack_iq3_s, nullptr}},
    {kIQ2_S, "IQ2_S", 256, 82, {unpack_iq2_s, nullptr}},
    {kIQ4_XS, "IQ4_XS", 256, 136, {unpack_iq4_xs, nullptr}},
    {kI8, "I8", 1, 1, {}},
    {kI16, "I16", 1, 2, {}},
    {kI32, "I32", 1, 4, {}},
    {kI64, "I64", 1, 8, {}},
    {kF64, "F64", 1, 8, {}},
    {kIQ1_M, "IQ1_M", 256, 56, {}},
    {kBF16, "BF16", 1, 2, {unpack_bf16, pack_bf16}},
    {kTQ1_0, "TQ1_0", 256, 54, {unpack_tq1_0, nullptr}},
    {kTQ2_0, "TQ2_0", 256, 66, {unpack_tq2_0, nullptr}},
    {kMXFP4, "MXFP4", 32, 17, {unpack_mxfp4, pack_mxfp4}},
    {kNVFP4, "NVFP4", 64, 36, {unpack_nvfp4, nullptr}},
});

constexpr auto kInfos = [] {
  std::array<BlockTypeInfo, kRows.size()> infos{};
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const Row& row = kRows[i];
    infos[i] = {
        row.type, row.name, row.values, row.bytes, row.codec.unpack != nullptr, row.codec.pack != nullptr};
  }
  return infos;
}();

std::size_t index_of(std::uint32_t number) noexcept {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::uint32_t>(kRows[i].type) == number) return i;
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
  const std::size_t blocks = bytes / row.bytes;
  const auto held = base::checked_mul<std::size_t>(blocks, row.values);
  if (bytes % row.bytes != 0 || !held || *held != values) {
    return fail(Outcome::kInvalidArgument,
                std::to_string(bytes) + " bytes of " + std::string(row.name) + " (blocks of " +
                    std::to_string(row.bytes) + " bytes, " + std::to_string(row.values) +
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
  if (row->codec.unpack == nullptr) {
    return fail(Outcome::kUnsupported,
                "weights of type " + std::string(row->name) + " cannot be read by this version");
  }
  KVASIR_ASSIGN(const std::size_t count, count_blocks(*row, blocks.size(), values.size()));
  const auto* block = reinterpret_cast<const std::uint8_t*>(blocks.data());
  float* into = values.data();
  for (std::size_t i = 0; i < count; ++i) {
    row->codec.unpack(block, into);
    block += row->bytes;
    into += row->values;
  }
  return {};
}

Status pack(BlockType type, std::span<const float> values, std::span<std::byte> blocks) {
  KVASIR_ASSIGN(const Row* row, row_of(type));
  if (row->codec.pack == nullptr) {
    return fail(Outcome::kUnsupported,
                "weights of type " + std::string(row->name) + " cannot be written by this version");
  }
  KVASIR_ASSIGN(const std::size_t count, count_blocks(*row, blocks.size(), values.size()));
  auto* block = reinterpret_cast<std::uint8_t*>(blocks.data());
  const float* from = values.data();
  for (std::size_t i = 0; i < count; ++i) {
    row->codec.pack(from, block);
    block += row->bytes;
    from += row->values;
  }
  return {};
}

}  // namespace kvasir::quant
