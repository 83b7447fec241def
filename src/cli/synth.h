// A model with random weights, drawn straight into the blocks of a type.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "cli/synth_shapes.h"
#include "cli/weight_types.h"
#include "cli/work.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct SynthOptions {
  const Shape* shape = nullptr;  // not nullptr
  std::string output;            // "-" for standard output
  WeightTarget target;
  std::uint64_t seed = 0;
  std::string vocabulary;  // a GGUF file to copy the tokenizer of; empty: one is made
  int threads = 1;
};

struct SynthReport {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes_written = 0;
};

// Writes the model to options.output. The same options give the same bytes, whatever the threads. Matrices
// get the target's types, norms and biases stay F32; rows that do not divide into a type's blocks become
// Q8_0, or F16, and hooks.note says so. hooks.begin and hooks.progress count bytes of the output.
//
// All or nothing: on an error the output is as it was. As base::FileSystem::replace and copy_vocabulary;
// kCancelled where hooks.stop() says so. Any thread.
[[nodiscard]] Result<SynthReport> synthesize(base::FileSystem& files, const SynthOptions& options,
                                             const WorkHooks& hooks);

}  // namespace kvasir::cli
