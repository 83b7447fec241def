// The flags of every verb that draws tokens.
#pragma once

#include <CLI/CLI.hpp>

#include "sample/sampler.h"

namespace kvasir::cli {

// --temp, --top-k, --top-p, --min-p.
void add_sampler_flags(CLI::App& verb, sample::SamplerSettings& settings);

// Throws CLI::ValidationError for a setting that is not usable.
void check_sampler_flags(const sample::SamplerSettings& settings);

}  // namespace kvasir::cli
