// How fast conversations become archives and come back, against memcpy and the disk in the same run, and what
// that costs others meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/json.h"
#include "cli/session.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Bytes per second of one thread, the best of several.
struct FileRates {
  double save = 0;
  double load = 0;
  double write = 0;  // of a file of as many bytes, to the disk
  double read = 0;   // from the disk
};

struct ArchiveFigures {
  std::uint64_t bytes = 0;  // of the archive
  // To memory that is there already and back, and memcpy of as many bytes in one block.
  double save = 0;
  double load = 0;
  double load_scattered = 0;  // into a pool of which every second cell is free
  double memcpy = 0;
  std::optional<FileRates> files;
  // Mean steps of another conversation that generates: alone, and while this one is saved at the default
  // share of the time.
  double step_microseconds = 0;
  double step_meanwhile_microseconds = 0;
};

// Of a conversation of `depth` tokens, which are filled in without computing; as files where there is a
// directory for them. kNoSpace where two of them do not fit; errors of the directory; kCancelled.
[[nodiscard]] Result<ArchiveFigures> measure_archives(const Session& session, const ModelFlags& flags,
                                                      std::uint64_t depth, const std::string& directory);

void append_archives(const ArchiveFigures& figures, std::uint64_t depth, std::string& text);
void write_archives(const ArchiveFigures& figures, JsonWriter& json);

}  // namespace kvasir::cli
