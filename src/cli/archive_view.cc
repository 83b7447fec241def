#include "cli/archive_view.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "archive/reader.h"
#include "archive/stream.h"
#include "base/try.h"
#include "base/utf8.h"
#include "cli/json.h"
#include "cli/streams.h"
#include "engine/archives.h"
#include "engine/cell_sections.h"
#include "engine/saved.h"

namespace kvasir::cli {
namespace {

using engine::Saved;
using engine::SavedConversation;

constexpr std::size_t kShownTextBytes = 72;

struct View {
  Saved saved;
  std::vector<std::uint64_t> cells;       // [group]
  std::vector<std::uint64_t> cell_bytes;  // [group]: of one
  std::uint64_t sections = 0;
  std::uint64_t bytes = 0;
};

// Whether the sections of cells bring every cell of every group once, in order.
Status check_cells(engine::CellSections cells, archive::Reader& reader) {
  while (true) {
    KVASIR_ASSIGN(const archive::Kind coming, reader.next());
    if (coming != engine::kCellsSection) return cells.check_complete();
    KVASIR_ASSIGN(const std::span<const std::byte> content, reader.take());
    KVASIR_ASSIGN(const engine::CellSection section, cells.read(content));
    cells.pass(section);
  }
}

Result<View> read(std::unique_ptr<base::ReadFile> file) {
  const auto source = archive::file_source(std::move(file));
  KVASIR_ASSIGN(archive::Reader reader, archive::Reader::begin(*source));
  View view;
  KVASIR_ASSIGN(view.saved, engine::read_small_sections(reader));
  for (const std::vector<pages::CellStretch>& stretches : view.saved.layout.cells) {
    KVASIR_ASSIGN(const std::uint64_t cells, pages::cells_in(stretches));
    view.cells.push_back(cells);
  }
  KVASIR_ASSIGN(engine::CellSections cells, engine::CellSections::of(view.saved.origin, view.cells));
  for (std::size_t group = 0; group < view.cells.size(); ++group)
    view.cell_bytes.push_back(cells.cell_bytes(group));
  KVASIR_TRY(check_cells(std::move(cells), reader));
  KVASIR_TRY(reader.end());
  view.sections = reader.sections();
  view.bytes = reader.bytes();
  return view;
}

std::string_view kind_name(pages::GroupKind kind) {
  switch (kind) {
    case pages::GroupKind::kFull:
      return "full";
    case pages::GroupKind::kWindow:
      return "window";
    case pages::GroupKind::kRecurrent:
      return "recurrent";
    case pages::GroupKind::kCross:
      break;
  }
  return "cross";
}

std::size_t layers_of(const engine::SavedGroup& group) {
  return group.layers.size() + group.states.size();
}

std::string weights_text(const Saved& saved) {
  return fmt::format("{:016x}{:016x}", saved.origin.model.weights[1], saved.origin.model.weights[0]);
}

Status print_text(const View& view) {
  const engine::Origin& origin = view.saved.origin;
  std::string text = fmt::format("Kvasir archive version {}, {} sections, {} bytes, all checksums agree\n",
                                 archive::kVersion, view.sections, view.bytes);
  text +=
      fmt::format("model: {}, weights {}, {} tokens\n", base::printable(origin.architecture, kShownTextBytes),
                  weights_text(view.saved), origin.vocabulary);
  text += fmt::format(
      "cache: keys {}, values {}, numerics {}\n", base::printable(origin.keys, kShownTextBytes),
      base::printable(origin.values, kShownTextBytes), base::printable(origin.numerics, kShownTextBytes));
  for (std::size_t group = 0; group < view.cells.size(); ++group) {
    text += fmt::format("  group {}, {}: {} cells of {} bytes in {} layers\n", group,
                        kind_name(origin.groups[group].kind), view.cells[group], view.cell_bytes[group],
                        layers_of(origin.groups[group]));
  }
  text += fmt::format("conversations: {}\n", view.saved.conversations.size());
  for (std::size_t i = 0; i < view.saved.conversations.size(); ++i) {
    const SavedConversation& one = view.saved.conversations[i];
    text += fmt::format("  {}: {} tokens, {} queued, {} behind, {} rows of logits, seed {}\n",
                        static_cast<std::uint64_t>(one.id), one.tokens.size(), one.queue.size(),
                        view.saved.layout.conversations[i].behind, one.kept.size() + (one.last_row ? 1U : 0U),
                        one.settings.seed);
  }
  return print(text);
}

Status print_json(const View& view) {
  const engine::Origin& origin = view.saved.origin;
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("format", "archive").member("version", archive::kVersion);
  json.member("architecture", origin.architecture).member("n_vocab", origin.vocabulary);
  json.member("weights", weights_text(view.saved)).member("numerics", origin.numerics);
  json.member("keys", origin.keys).member("values", origin.values);
  json.member("sections", view.sections).member("size_bytes", view.bytes);
  json.key("groups").begin_array();
  for (std::size_t group = 0; group < view.cells.size(); ++group) {
    json.begin_object().member("cells", view.cells[group]).member("cell_bytes", view.cell_bytes[group]);
    json.member("kind", kind_name(origin.groups[group].kind));
    json.member("layers", layers_of(origin.groups[group])).end_object();
  }
  json.end_array().key("conversations").begin_array();
  for (std::size_t i = 0; i < view.saved.conversations.size(); ++i) {
    const SavedConversation& one = view.saved.conversations[i];
    json.begin_object().member("id", static_cast<std::uint64_t>(one.id)).member("tokens", one.tokens.size());
    json.member("queued", one.queue.size()).member("behind", view.saved.layout.conversations[i].behind);
    json.member("rows", one.kept.size() + (one.last_row ? 1U : 0U)).member("seed", one.settings.seed);
    json.member("priority", one.settings.priority).member("pinned", one.settings.pinned).end_object();
  }
  json.end_array().end_object();
  return print(text + "\n");
}

}  // namespace

Status inspect_archive(std::unique_ptr<base::ReadFile> file, bool as_json) {
  KVASIR_ASSIGN(const View view, read(std::move(file)));
  return as_json ? print_json(view) : print_text(view);
}

}  // namespace kvasir::cli
