// The public API behind the flags that every verb with a model has.
#pragma once

#include <cstdint>

#include "cli/session.h"
#include "kvasir/executor.h"
#include "kvasir/model.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Loads with progress on standard error; kCancelled where the user interrupts.
[[nodiscard]] Result<Model> load_model(const ModelFlags& flags);

// What the flags say of an executor; its pool holds --pool tokens, or by default `wanted`.
[[nodiscard]] Result<ExecutorOptions> executor_options(const Model& model, const ModelFlags& flags,
                                                       std::uint64_t wanted);

// An executor of the flags' sizes; its pool holds --pool tokens, or by default `wanted`.
[[nodiscard]] Result<Executor> make_executor(const Model& model, const ModelFlags& flags,
                                             std::uint64_t wanted);

}  // namespace kvasir::cli
