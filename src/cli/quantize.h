// A model's weights in another type, streamed from file to file.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "cli/weight_types.h"
#include "cli/work.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct QuantizeOptions {
  std::string input;   // a file, any shard of a split, or "-" for standard input
  std::string output;  // may be the input; or "-" for standard output
  WeightTarget target;
  int threads = 1;
};

struct QuantizeReport {
  std::uint64_t tensors = 0;
  std::uint64_t converted = 0;  // the others were copied as they are
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
};

// Writes the model of `input` to `output` with its matrices in the target's types. Norms, biases and other
// small tensors are copied as they are, so is a tensor that already has its type; metadata is copied, but for
// general.file_type, general.quantization_version and the keys of a split. Rows that do not divide into a
// type's blocks become Q8_0, or F16 where not even 32 divides; hooks.note tells which, and what else its user
// should know. hooks.begin and hooks.progress count bytes of the output.
//
// All or nothing: on an error `output` is as it was. As gguf::File::open and base::FileSystem::replace;
// kUnsupported where a tensor that must change has a type that cannot be read, or the target cannot be
// written; kCancelled where hooks.stop() says so. Any thread.
[[nodiscard]] Result<QuantizeReport> quantize(base::FileSystem& files, const QuantizeOptions& options,
                                              const WorkHooks& hooks);

}  // namespace kvasir::cli
