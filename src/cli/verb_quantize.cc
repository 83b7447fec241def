// kvasir quantize: a model's weights in another type.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/quantize.h"
#include "cli/threads.h"
#include "cli/verbs.h"
#include "cli/weight_types.h"
#include "parallel/thread_pool.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  std::string type;
  int threads = default_threads();
};

Status run(const Options& options) {
  KVASIR_ASSIGN(const WeightTarget target, find_weight_target(options.type, true));
  // Standard input may keep a read waiting for ever; until the output is begun a signal may as well end the
  // program.
  if (options.input != "-") watch_interrupts();
  std::optional<Progress> progress(std::in_place, 0);
  const WorkHooks hooks{
      .begin =
          [&](std::uint64_t total) {
            watch_interrupts();
            progress.emplace(total);
          },
      .progress = [&](std::uint64_t done, std::string_view what) { progress->at(done, what); },
      .note = [&](std::string_view sentence) { progress->say(sentence); },
      .stop = interrupted,
  };
  auto done = quantize(base::system_files(), {options.input, options.output, target, options.threads}, hooks);
  if (!done && done.error().code() == Outcome::kCancelled) {
    return fail(Outcome::kCancelled, fmt::format("interrupted; '{}' was not written", options.output));
  }
  KVASIR_ASSIGN(const QuantizeReport report, std::move(done));
  progress->say(fmt::format("{} of {} tensors converted to {}, {} bytes to {} bytes", report.converted,
                            report.tensors, target.name, report.bytes_read, report.bytes_written));
  return {};
}

}  // namespace

void add_quantize(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("quantize", "Write a model with its weights in another type");
  verb->add_option("in", options->input, "A GGUF file, any shard of a split, or - for standard input")
      ->required();
  verb->add_option("out", options->output, "The file to write (may be the input), or - for standard output")
      ->required();
  verb->add_option("type", options->type, "One of: " + weight_target_names(true))
      ->required()
      ->check([](const std::string& name) { return known_weight_type(name, true); });
  verb->add_option("--threads", options->threads, "Threads that compute")
      ->check(whole_number(1, parallel::ThreadPool::kMaxThreads));
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli
