// The sections of an archive before its cells, and archives of an engine that one thread has to itself.
#pragma once

#include <span>
#include <vector>

#include "archive/reader.h"
#include "archive/stream.h"
#include "archive/writer.h"
#include "engine/engine.h"
#include "engine/saved.h"
#include "kvasir/archive.h"
#include "kvasir/result.h"

namespace kvasir::engine {

// What is in it, without bytes.
[[nodiscard]] ArchiveReport report_of(const Saved& saved);

// About how many bytes an archive will have whose cells have so many.
[[nodiscard]] std::uint64_t expected_bytes(std::uint64_t cells) noexcept;

// Errors of the sink. Throws std::bad_alloc.
[[nodiscard]] Status write_small_sections(const Saved& saved, archive::Writer& writer);

// Checked as far as can be without a model: check_saved(). kCorrupt; errors of the source; kOutOfMemory.
[[nodiscard]] Result<Saved> read_small_sections(archive::Reader& reader);

// As Executor::save(), of these conversations.
[[nodiscard]] Result<ArchiveReport> save(Engine& engine, std::span<const ConversationId> ids,
                                         archive::Sink& sink, const SaveOptions& options);

// As Executor::load() of new conversations; their ids, in the order in which they were saved.
struct LoadedIds {
  ArchiveReport report;
  std::vector<ConversationId> ids;
};
[[nodiscard]] Result<LoadedIds> load(Engine& engine, archive::Source& source);

}  // namespace kvasir::engine
