#include "engine/cell_sections.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/try.h"
#include "base/within_memory.h"

namespace kvasir::engine {

Result<CellSections> CellSections::of(const Origin& origin, std::vector<std::uint64_t> cells) {
  return base::within_memory([&]() -> Result<CellSections> {
    if (cells.size() != origin.groups.size())
      return fail(Outcome::kCorrupt, "the layout is of another number of groups than the cache");
    CellSections sections;
    sections.cells_ = std::move(cells);
    for (std::size_t group = 0; group < origin.groups.size(); ++group) {
      KVASIR_ASSIGN(std::vector<std::uint64_t> bytes, engine::part_bytes(origin, group));
      if (bytes.empty() && sections.cells_[group] > 0)
        return fail(Outcome::kCorrupt, "cells of a group without layers");
      sections.part_bytes_.push_back(std::move(bytes));
      sections.states_.push_back(origin.groups[group].kind == pages::GroupKind::kRecurrent ? 1 : 0);
    }
    sections.skip_empty();
    return sections;
  });
}

void CellSections::skip_empty() noexcept {
  while (group_ < cells_.size() && first_ == cells_[group_]) {
    ++group_;
    first_ = 0;
  }
}

std::uint64_t CellSections::cell_bytes(std::size_t group) const noexcept {
  return std::reduce(part_bytes_[group].begin(), part_bytes_[group].end());
}

std::uint64_t CellSections::bytes_total() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < cells_.size(); ++group) bytes += cells_[group] * cell_bytes(group);
  return bytes;
}

CellSection CellSections::next(std::uint64_t bytes, std::uint64_t most) const noexcept {
  CellSection section{.group = static_cast<std::uint32_t>(group_), .first = first_};
  if (state(group_)) {
    section.count = 1;
    section.first_part = part_;
    section.parts = 1;
    section.bytes = part_bytes_[group_][part_];
    return section;
  }
  const std::uint64_t cell = std::max<std::uint64_t>(1, cell_bytes(group_));
  const std::uint64_t lanes = pages::kCellsStep * cell <= most ? pages::kCellsStep : 1;
  const std::uint64_t count = std::max<std::uint64_t>(1, bytes / cell / lanes) * lanes;
  section.count = std::min(cells_[group_] - first_, count);
  section.parts = static_cast<std::uint32_t>(part_bytes_[group_].size());
  section.bytes = section.count * cell_bytes(group_);
  return section;
}

Result<CellSection> CellSections::read(std::span<const std::byte> section) const {
  base::ByteReader in(section);
  KVASIR_ASSIGN(const auto group, in.number<std::uint32_t>());
  KVASIR_ASSIGN(const auto count, in.number<std::uint32_t>());
  KVASIR_ASSIGN(const auto first, in.number<std::uint64_t>());
  const auto is_not_next = [&] {
    return fail(Outcome::kCorrupt, "cells " + std::to_string(first) + " and " + std::to_string(count) +
                                       " more of group " + std::to_string(group) +
                                       " are not what comes next");
  };
  if (done() || group != group_ || first != first_) return is_not_next();
  CellSection expected = next(0);
  if (state(group_)) {
    if (count != expected.first_part) return is_not_next();
  } else {
    if (count == 0 || count > cells_[group_] - first_) return is_not_next();
    expected.count = count;
    expected.bytes = count * cell_bytes(group_);
  }
  if (in.left() != expected.bytes) return is_not_next();
  return expected;
}

void CellSections::pass(const CellSection& section) noexcept {
  if (state(group_) && section.first_part + 1 < part_bytes_[group_].size()) {
    part_ = section.first_part + 1;
    return;
  }
  part_ = 0;
  first_ += section.count;
  skip_empty();
}

Status CellSections::check_complete() const {
  if (done()) return {};
  return fail(
      Outcome::kCorrupt,
      "the archive brings " + std::to_string(first_) + " of " + std::to_string(cells_[group_]) + " cells",
      {.wanted = cells_[group_], .available = first_});
}

void CellSections::append_head(const CellSection& section, bool state, std::vector<std::byte>& out) {
  base::ByteWriter head(out);
  head.number(section.group);
  head.number(state ? section.first_part : static_cast<std::uint32_t>(section.count));
  head.number(section.first);
}

}  // namespace kvasir::engine
