#include "engine/archives.h"

#include <memory>
#include <utility>

#include "base/try.h"
#include "base/within_memory.h"
#include "engine/load_job.h"
#include "engine/save_job.h"

namespace kvasir::engine {
namespace {

constexpr std::uint64_t kOriginBytesMax = std::uint64_t{16} << 20;
// Of most archives, all but their cells and the heads of these.
constexpr std::uint64_t kSmallBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kContentsBytesMax = std::uint64_t{1} << 40;

}  // namespace

ArchiveReport report_of(const Saved& saved) {
  ArchiveReport about;
  about.conversations = saved.conversations.size();
  for (const SavedConversation& one : saved.conversations) about.tokens += one.tokens.size();
  for (const auto& stretches : saved.layout.cells) {
    for (const pages::CellStretch& stretch : stretches) about.cells += stretch.count;
  }
  return about;
}

std::uint64_t expected_bytes(std::uint64_t cells) noexcept {
  return cells + cells / 1024 + kSmallBytes;
}

Status write_small_sections(const Saved& saved, archive::Writer& writer) {
  std::vector<std::byte> bytes;
  append_origin(saved.origin, bytes);
  KVASIR_TRY(writer.contents(kOriginSection, bytes));
  bytes.clear();
  append_conversations(saved.conversations, bytes);
  KVASIR_TRY(writer.contents(kConversationsSection, bytes));
  for (const std::shared_ptr<const Row>& row : saved.rows)
    KVASIR_TRY(writer.contents(kRowsSection, std::as_bytes(std::span(*row))));
  bytes.clear();
  pages::append_layout(saved.layout, bytes);
  return writer.contents(kLayoutSection, bytes);
}

Result<Saved> read_small_sections(archive::Reader& reader) {
  Saved saved;
  KVASIR_ASSIGN(std::vector<std::byte> bytes, reader.contents(kOriginSection, kOriginBytesMax));
  KVASIR_ASSIGN(saved.origin, parse_origin(bytes));
  KVASIR_ASSIGN(bytes, reader.contents(kConversationsSection, kContentsBytesMax));
  KVASIR_ASSIGN(saved.conversations, parse_conversations(bytes));
  KVASIR_ASSIGN(bytes, reader.contents(kRowsSection, kContentsBytesMax));
  KVASIR_ASSIGN(saved.rows, parse_rows(bytes, saved.origin.vocabulary));
  KVASIR_ASSIGN(bytes, reader.contents(kLayoutSection, kContentsBytesMax));
  KVASIR_ASSIGN(saved.layout, pages::parse_layout(bytes));
  KVASIR_TRY(check_saved(saved));
  return saved;
}

Result<ArchiveReport> save(Engine& engine, std::span<const ConversationId> ids, archive::Sink& sink,
                           const SaveOptions& options) {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const std::unique_ptr<SaveJob> job, SaveJob::begin(engine, ids));
    KVASIR_ASSIGN(archive::Writer writer, archive::Writer::begin(sink, options.compression));
    ArchiveReport about = report_of(job->saved());
    about.cell_bytes = job->bytes_total();
    if (options.compression == 0) KVASIR_TRY(sink.expect(expected_bytes(job->bytes_total())));
    KVASIR_TRY(write_small_sections(job->saved(), writer));
    SaveJob::State state = SaveJob::State::kGoesOn;
    while (state != SaveJob::State::kEnd) {
      KVASIR_ASSIGN(state, job->advance());
      if (state == SaveJob::State::kSection) KVASIR_TRY(writer.section(kCellsSection, job->content()));
    }
    KVASIR_TRY(writer.end());
    about.bytes = writer.bytes();
    return about;
  });
}

Result<LoadedIds> load(Engine& engine, archive::Source& source) {
  return base::within_memory([&]() -> Result<LoadedIds> {
    KVASIR_ASSIGN(archive::Reader reader, archive::Reader::begin(source));
    KVASIR_ASSIGN(const Saved saved, read_small_sections(reader));
    LoadedIds loaded{.report = report_of(saved), .ids = {}};
    const Origin mine = origin_of(engine.model(), engine.options().types);
    KVASIR_TRY(check_model(saved.origin, mine));
    KVASIR_TRY(check_cache(saved.origin, mine));
    KVASIR_ASSIGN(const std::unique_ptr<LoadJob> job, LoadJob::begin(engine, saved, false));
    loaded.report.cell_bytes = job->bytes_total();
    loaded.ids.reserve(saved.conversations.size());
    while (true) {
      KVASIR_ASSIGN(const archive::Kind coming, reader.next());
      if (coming != kCellsSection) break;
      KVASIR_ASSIGN(const std::span<const std::byte> content, reader.take());
      KVASIR_TRY(job->open_section(content));
      while (job->fill()) {
      }
    }
    KVASIR_TRY(job->check_complete());
    KVASIR_TRY(reader.end());
    loaded.report.bytes = reader.bytes();
    const std::span<const ConversationId> ids = job->commit();
    loaded.ids.assign(ids.begin(), ids.end());
    return loaded;
  });
}

}  // namespace kvasir::engine
