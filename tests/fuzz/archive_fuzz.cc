// Any bytes as an archive: refused with a sentence, with nothing changed, or taken in as sound conversations.
//
// Most bytes fail at the first checksum. So an input that begins with 1 is a list of sections, each a kind's
// number, 32 bits of length and so many bytes, to which the checksums and, where it is asked for, the origin
// of this model are added.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "archive/reader.h"
#include "archive/stream.h"
#include "archive/writer.h"
#include "engine/archives.h"
#include "engine/engine.h"
#include "engine/saved.h"
#include "support/engine_run.h"
#include "support/tiny_model.h"

namespace {

using kvasir::Token;
namespace archive = kvasir::archive;
namespace engine = kvasir::engine;
namespace test = kvasir::test;

using Bytes = std::vector<std::byte>;

// What must hold, or the fuzzer has found something.
void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::array kKinds = {engine::kOriginSection, engine::kConversationsSection, engine::kRowsSection,
                               engine::kLayoutSection, engine::kCellsSection};

struct Host {
  test::LoadedModel model = test::load(
      test::tiny_model({.layers = 1, .embedding = 16, .heads = 2, .kv_heads = 1, .vocabulary = 32}));
  test::EngineHost host =
      test::make_engine(model, {.context = 256, .pool = 256, .page_cells = 16, .pass_tokens = 64});
  std::uint64_t digest = host->digest().value();
};

Bytes with_checksums(const Host& host, std::span<const std::byte> input) {
  Bytes bytes;
  const auto sink = archive::memory_sink(bytes);
  auto writer = archive::Writer::begin(*sink, 0).value();
  while (input.size() >= 5) {
    const auto kind = std::to_integer<std::size_t>(input[0]) % (kKinds.size() + 1);
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size |= std::to_integer<std::size_t>(input[1 + i]) << (8 * i);
    input = input.subspan(5);
    const std::span<const std::byte> content = input.first(std::min(size, input.size()));
    input = input.subspan(content.size());
    Bytes origin;
    if (kind == kKinds.size()) engine::append_origin(engine::origin_of(*host.model.model, {}), origin);
    const bool own = kind == kKinds.size();
    require(writer.section(own ? kKinds[0] : kKinds[kind], own ? std::span<const std::byte>(origin) : content)
                .has_value());
  }
  require(writer.end().has_value());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Host host;
  const auto input = std::as_bytes(std::span(data, size));
  const bool as_sections = !input.empty() && input[0] == std::byte{1};
  const Bytes bytes =
      as_sections ? with_checksums(host, input.subspan(1)) : Bytes(input.begin(), input.end());
  const auto source = archive::memory_source(bytes);
  const auto loaded = engine::load(*host.host.engine, *source);
  if (!loaded) {
    require(!loaded.error().message().empty());
    require(host.host->digest().value() == host.digest);
    return 0;
  }
  for (const kvasir::ConversationId id : loaded->ids) {
    const std::array<Token, 2> tokens = {1, 2};
    static_cast<void>(host.host->prompt(id, tokens, engine::LogitsWanted::kLast));
    static_cast<void>(host.host->step());
    static_cast<void>(host.host->rewind(id, 0));
    require(host.host->close(id).has_value());
  }
  require(host.host->digest().value() == host.digest);
  return 0;
}
