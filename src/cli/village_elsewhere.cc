#include "cli/village_elsewhere.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/try.h"
#include "cli/child.h"
#include "cli/village.h"
#include "cli/village_day.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kSaved = 1;  // who is saved
constexpr std::uint32_t kOtherPage = 2 * kVillagePage;
constexpr double kChildSeconds = 120;  // that the other process may take
constexpr double kShown = 0.11;        // of all of the demonstration's time

// Removes a file whatever happens.
class FileRemover {
 public:
  explicit FileRemover(std::string path) : path_(std::move(path)) {}
  FileRemover(const FileRemover&) = delete;
  FileRemover& operator=(const FileRemover&) = delete;
  ~FileRemover() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

 private:
  std::string path_;
};

}  // namespace

Result<std::string> recall(const Model& model, ExecutorOptions options, const std::string& file,
                           const std::string& question) {
  options.context = kVillagePool;
  options.pool = kVillagePool;
  options.page_cells = kOtherPage;
  KVASIR_ASSIGN(Executor executor, Executor::create(model, options));
  KVASIR_ASSIGN(Conversation talk, executor.conversation());
  const auto loaded = talk.load(file);
  if (!loaded) return fail(loaded.error());
  KVASIR_TRY(prompt_question(talk, question));
  KVASIR_ASSIGN(Generation answer, start_answer(talk));
  KVASIR_ASSIGN(const GeneratedPiece said, answer.rest());
  KVASIR_ASSIGN(const std::uint64_t digest, logits_digest(talk));
  return fmt::format("{:016x} {}", digest, said.text);
}

Status VillageDay::act_other_process() {
  Villager& villager = village_.all()[kSaved];
  const auto free_to_go = [this]() -> Result<bool> { return village_.idle(kSaved); };
  const auto waited = frames(free_to_go, kLongestWait);
  if (!waited) return fail(waited.error());
  KVASIR_TRY(view_.act(fmt::format("{} is saved, and wakes in another process", villager.person->name)));
  const std::string file = fmt::format("{}/kvasir-demo-{}.kvar", options_.scratch, ::getpid());
  const FileRemover remover(file);
  std::optional<ArchiveReport> saved;
  const auto save = [&]() -> Result<bool> {
    const auto report = villager.conversation.save(file, {.background = 1});
    // What is promised may count on cells that a save keeps: then a frame later.
    if (!report && report.error().code() == Outcome::kNoSpace) return false;
    if (!report) return fail(report.error());
    saved = *report;
    return true;
  };
  const auto tried = frames(save, kLongestWait);
  if (!tried) return fail(tried.error());
  if (!saved) return fail(Outcome::kNoSpace, "there was never room to save anybody");
  KVASIR_TRY(view_.line(fmt::format("{} tokens, with all that was computed of them: {} bytes in a file",
                                    saved->tokens, saved->bytes)));
  return recall_elsewhere(villager, file);
}

// Asks the one in the other process and a fork of the one here the same.
Status VillageDay::recall_elsewhere(Villager& villager, const std::string& file) {
  const Line& line = villager.person->roll_call.front();
  KVASIR_ASSIGN(Conversation here, villager.conversation.fork());
  KVASIR_ASSIGN(Child child, Child::start({"demo", "-m", options_.model, "--kv", options_.types, "--recall",
                                           file, "--ask", std::string(line.question)}));
  KVASIR_ASSIGN(const auto said, ask_beside({&here}, {std::string(line.question)}));
  KVASIR_ASSIGN(const std::uint64_t digest, logits_digest(here));
  const std::string wanted = fmt::format("{:016x} {}", digest, said.front());
  KVASIR_TRY(view_.line(fmt::format("here:         {}", wanted)));
  const auto ended = [&]() -> Result<bool> { return child.finished(); };
  KVASIR_ASSIGN(const bool done, frames(ended, kChildSeconds));
  std::string_view answer = child.out();
  if (answer.ends_with('\n')) answer.remove_suffix(1);
  KVASIR_TRY(view_.line(fmt::format("process {}: {}", child.id(), answer)));
  const bool same = done && child.status() == 0 && answer == wanted && is_right(line, said.front());
  if (!same) {
    wrong(fmt::format("{} answered '{}' in another process and '{}' here", villager.person->name, answer,
                      wanted));
  }
  KVASIR_TRY(view_.line(same ? "the same words and the same bits, in pages of another size" : "DIFFERENT"));
  show(same, fmt::format("elsewhere  process {} woke {} from a file: {}", child.id(), villager.person->name,
                         same ? "the same words, the same bits" : "DIFFERENT"));
  return frames_for(kShown * options_.seconds);
}

}  // namespace kvasir::cli
