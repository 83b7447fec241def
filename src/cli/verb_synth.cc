// kvasir synth: a model with random weights.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/synth.h"
#include "cli/synth_shapes.h"
#include "cli/threads.h"
#include "cli/verbs.h"
#include "cli/weight_types.h"
#include "parallel/thread_pool.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string shape;
  std::string output;
  std::string type = "Q4_0";
  std::string vocabulary;
  std::uint64_t seed = 0;
  int threads = default_threads();
};

std::string shape_names() {
  std::string names;
  for (const Shape& shape : synth_shapes()) names += (names.empty() ? "" : " ") + std::string(shape.name);
  return names;
}

// A check of a flag: what is wrong with it, or nothing.
std::string known_shape(const std::string& name) {
  if (find_synth_shape(name) != nullptr) return {};
  return fmt::format("there is no shape '{}'; use one of: {}", name, shape_names());
}

Status run(const Options& options) {
  const Shape* shape = find_synth_shape(options.shape);  // known: the flag was checked
  KVASIR_ASSIGN(const WeightTarget target, find_weight_target(options.type, false));
  watch_interrupts();
  std::optional<Progress> progress(std::in_place, 0);
  const WorkHooks hooks{
      .begin = [&](std::uint64_t total) { progress.emplace(total); },
      .progress = [&](std::uint64_t done, std::string_view what) { progress->at(done, what); },
      .note = [&](std::string_view sentence) { progress->say(sentence); },
      .stop = interrupted,
  };
  auto done =
      synthesize(base::system_files(),
                 {shape, options.output, target, options.seed, options.vocabulary, options.threads}, hooks);
  if (!done && done.error().code() == Outcome::kCancelled) {
    return fail(Outcome::kCancelled, fmt::format("interrupted; '{}' was not written", options.output));
  }
  KVASIR_ASSIGN(const SynthReport report, std::move(done));
  progress->say(fmt::format("{} tensors, {} parameters, {} bytes", report.tensors, report.parameters,
                            report.bytes_written));
  return {};
}

}  // namespace

void add_synth(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("synth", "Make a model with random weights");
  verb->add_option("shape", options->shape, "One of: " + shape_names())->required()->check(known_shape);
  verb->add_option("out", options->output, "The file to write, or - for standard output")->required();
  verb->add_option("--type", options->type, "Type of the matrices, one of: " + weight_target_names(false))
      ->capture_default_str()
      ->check([](const std::string& name) { return known_weight_type(name, false); });
  verb->add_option("--seed", options->seed, "The same seed gives the same bytes")
      ->check(whole_number())
      ->capture_default_str();
  verb->add_option("--vocab", options->vocabulary, "A GGUF file to copy the tokenizer of, and its size");
  verb->add_option("--threads", options->threads, "Threads that compute")
      ->check(whole_number(1, parallel::ThreadPool::kMaxThreads));
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli
