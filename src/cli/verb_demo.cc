// kvasir demo: twenty-four characters at once on the shipped model, for half a minute, and the check that
// each stayed itself.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/api_session.h"
#include "cli/child.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/session.h"
#include "cli/streams.h"
#include "cli/verbs.h"
#include "cli/village.h"
#include "cli/village_day.h"
#include "cli/village_elsewhere.h"
#include "cli/village_talk.h"
#include "cli/village_view.h"

namespace kvasir::cli {
namespace {

struct Options {
  ModelFlags model;
  std::string talk;
  double seconds = 30;
  bool plain = false;
  bool mix_up = false;
  std::string recall;  // for the process that the demonstration starts
  std::string question;
};

// The shipped model: in the tree that the program was built in, or where it was installed beside it.
Result<std::string> shipped_model() {
  KVASIR_ASSIGN(const std::string program, own_path());
  std::error_code ignored;
  for (std::filesystem::path folder = std::filesystem::path(program).parent_path();;
       folder = folder.parent_path()) {
    for (const char* const name : {"models/village.gguf", "share/kvasir/village.gguf"}) {
      if (std::filesystem::is_regular_file(folder / name, ignored)) return (folder / name).string();
    }
    if (folder == folder.parent_path()) break;
  }
  return fail(Outcome::kNotFound,
              "models/village.gguf is in no folder above '" + program + "'; give the model with -m");
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Person& person : village_people()) all.emplace_back(person.name);
  return all;
}

// Its characters are told who they are behind a mark of its own.
Status check_village(const Model& model) {
  const auto mark = model.tokenize("<|persona|>", {.add_begin = AddBegin::kNo, .parse_special = true});
  if (mark && mark->size() == 1) return {};
  return fail(Outcome::kUnsupported,
              "this is no model of the village: its vocabulary has no <|persona|>; leave --model out");
}

Status demo(Options options) {
  if (options.model.model.empty()) {
    KVASIR_ASSIGN(options.model.model, shipped_model());
  }
  watch_interrupts();
  KVASIR_ASSIGN(const Model model,
                Model::load(options.model.model, {.threads = options.model.threads,
                                                  .progress = [](double) { return !interrupted(); },
                                                  .context = options.model.context.value_or(0)}));
  KVASIR_ASSIGN(ExecutorOptions executor, executor_options(model, options.model, kVillagePool));
  if (!options.model.context) executor.context = kLongestTalk;
  if (!options.recall.empty()) {
    KVASIR_ASSIGN(const std::string line, recall(model, executor, options.recall, options.question));
    return print(line + "\n");
  }
  KVASIR_TRY(check_village(model));
  const std::string scratch(kTemporaryDirectory);
  KVASIR_ASSIGN(Village village, Village::create(model, executor, scratch));
  if (!options.talk.empty()) {
    const std::vector<std::string> all = names();
    const auto who = std::ranges::find(all, options.talk);
    return talk_to(village, static_cast<std::size_t>(who - all.begin()));
  }
  VillageView view(!options.plain && live_view_fits());
  VillageDay day(model, village, view,
                 {.model = options.model.model,
                  .types = options.model.types,
                  .executor = executor,
                  .scratch = scratch,
                  .seconds = options.seconds,
                  .mix_up = options.mix_up});
  return day.run();
}

// Ctrl-C is an ordinary way to end a talk; of the day it breaks off nothing was verified.
Status run(const Options& options) {
  Status done = demo(options);
  const bool broken_off = !done && done.error().code() == Outcome::kCancelled && interrupted();
  if (!broken_off) return done;
  if (options.talk.empty()) return fail(Outcome::kCancelled, "interrupted; nothing was verified");
  say("kvasir: interrupted");
  return {};
}

}  // namespace

void add_demo(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      program.add_subcommand("demo", "A village of characters at once, and a check that each stays itself");
  verb->footer(
      "It ends by itself. The exit status is 0 only if at the end everybody knows who they are, and says it "
      "with\n"
      "the bits of a run alone.");
  CLI::Option* talk = verb->add_option("--talk", options->talk, "Talk to one of them, by lines")
                          ->check(CLI::IsMember(names()));
  verb->add_option("--seconds", options->seconds, "How long it takes, about")
      ->excludes(talk)
      ->check(CLI::Range(2.0, 3600.0))  // which takes what is no number
      ->check([](const std::string& text) {
        const bool number = !std::isnan(std::strtod(text.c_str(), nullptr));
        return number ? std::string() : "'" + text + "' is no number of seconds";
      })
      ->capture_default_str();
  verb->add_flag("--plain", options->plain, "Print lines on a terminal too")->excludes(talk);
  verb->add_flag("--mix-up", options->mix_up,
                 "Hand one character another's cells on purpose, to see that it is noticed")
      ->excludes(talk);
  options->model.page_cells = kVillagePage;
  add_model_flags(*verb, options->model);
  verb->get_option("--model")->required(false)->description(
      "Another model of the village: a GGUF file (default: the shipped one)");
  verb->get_option("--ctx")->description("The longest one talk may get, in tokens (default: 1024)");
  verb->get_option("--pool")->description(
      "Tokens that the cache holds, rounded up to whole pages (default: 2048, which is too few for all)");
  verb->add_option("--recall", options->recall)->group("");
  verb->add_option("--ask", options->question)->group("");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli
