#include "cli/sampler_flags.h"

#include "cli/numbers.h"

namespace kvasir::cli {
namespace {

// Settings of which only the flag's own differs from what is usable.
void check_flag(const char* flag, const sample::SamplerSettings& settings) {
  if (const Status usable = sample::check(settings); !usable) {
    throw CLI::ValidationError(flag, usable.error().message());
  }
}

}  // namespace

void add_sampler_flags(CLI::App& verb, sample::SamplerSettings& settings) {
  verb.add_option("--temp", settings.temperature, "Temperature; 0 takes the most likely token")
      ->capture_default_str();
  verb.add_option("--top-k", settings.top_k, "Draw from the k most likely tokens; 0 from all")
      ->check(whole_number(0, UINT32_MAX))
      ->capture_default_str();
  verb.add_option("--top-p", settings.top_p, "Draw from the most likely tokens that reach this probability")
      ->capture_default_str();
  verb.add_option("--min-p", settings.min_p, "Draw from tokens at least this likely beside the most likely")
      ->capture_default_str();
}

void check_sampler_flags(const sample::SamplerSettings& settings) {
  check_flag("--temp", {.temperature = settings.temperature});
  check_flag("--top-p", {.top_p = settings.top_p});
  check_flag("--min-p", {.min_p = settings.min_p});
}

}  // namespace kvasir::cli
