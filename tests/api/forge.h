// Archives taken apart and put together again with checksums that agree: what a hostile file would look like.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "archive/format.h"
#include "archive/reader.h"
#include "archive/writer.h"

namespace kvasir::test {

struct Section {
  archive::Kind kind{};
  std::vector<std::byte> content;
};

// The sections of a sound archive, without its end.
[[nodiscard]] inline std::vector<Section> sections_of(std::span<const std::byte> bytes) {
  const auto source = archive::memory_source(bytes);
  auto reader = archive::Reader::begin(*source).value();
  std::vector<Section> sections;
  while (reader.next().value() != archive::kEnd) {
    const archive::Kind kind = reader.next().value();
    const auto content = reader.take().value();
    sections.push_back({kind, {content.begin(), content.end()}});
  }
  return sections;
}

[[nodiscard]] inline std::vector<std::byte> forged(const std::vector<Section>& sections) {
  std::vector<std::byte> bytes;
  const auto sink = archive::memory_sink(bytes);
  auto writer = archive::Writer::begin(*sink, 0).value();
  for (const Section& section : sections) writer.section(section.kind, section.content).value();
  writer.end().value();
  return bytes;
}

}  // namespace kvasir::test
