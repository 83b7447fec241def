#include "village/village_run.h"

namespace kvasir::test {

const Model& village_model() {
  static const Model loaded = must(Model::load(KVASIR_VILLAGE, {.threads = 2}));
  return loaded;
}

Executor roomy_executor(std::uint64_t pool) {
  ExecutorOptions options;
  options.context = 1024;
  options.pool = pool;
  options.share_prefixes = false;
  return must(Executor::create(village_model(), options));
}

Conversation wake(Executor& executor, const cli::Person& person) {
  Conversation talk = must(executor.conversation());
  must(talk.prompt(cli::opening(person), {.parse_special = true}));
  must(talk.wait());
  return talk;
}

std::vector<std::string> ask(const std::vector<Conversation*>& talks,
                             const std::vector<std::string>& questions) {
  std::vector<Generation> answers;
  for (std::size_t i = 0; i < talks.size(); ++i) {
    must(cli::prompt_question(*talks[i], questions[i]));
    answers.push_back(must(cli::start_answer(*talks[i])));
  }
  std::vector<std::string> said;
  for (Generation& answer : answers) said.push_back(must(answer.rest()).text);
  return said;
}

std::string ask(Conversation& talk, std::string_view question) {
  return ask({&talk}, {std::string(question)}).front();
}

}  // namespace kvasir::test
