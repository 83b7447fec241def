// How often the village's characters answer right: held-out questions to held-out characters, greedily, each
// character alone and then many of them at once, who come and go as their talks end.
//
//   village MODEL.gguf QUESTIONS.tsv [COMPANY]
//
// QUESTIONS.tsv is what `tools/train/evaluate.py questions` writes. The exit status is 1 where anybody
// answers in company otherwise than alone.

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/executor.h"
#include "measuring.h"

namespace {

using kvasir::bench::must;

constexpr std::uint64_t kLongestAnswer = 48;
constexpr std::uint64_t kLongestTalk = 768;

struct Question {
  std::string kind;
  std::string text;
  std::vector<std::string> facts;  // what a right answer contains
};

struct Character {
  std::string block;
  std::vector<Question> questions;
};

std::vector<std::string> split(const std::string& line, char mark) {
  std::vector<std::string> fields;
  std::size_t from = 0;
  for (std::size_t at = line.find(mark); at != std::string::npos; at = line.find(mark, from)) {
    fields.push_back(line.substr(from, at - from));
    from = at + 1;
  }
  fields.push_back(line.substr(from));
  return fields;
}

std::vector<Character> read_questions(const char* path) {
  std::vector<Character> characters;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = split(line, '\t');
    if (fields.size() == 2 && fields[0] == "persona") {
      characters.push_back({fields[1], {}});
    } else if (fields.size() == 4 && fields[0] == "ask" && !characters.empty()) {
      characters.back().questions.push_back({fields[1], fields[2], split(fields[3], '|')});
    } else {
      std::fprintf(stderr, "village: %s has a line of another kind: %s\n", path, line.c_str());
      std::exit(1);
    }
  }
  return characters;
}

// Whether `fact` is in `text` as whole words.
bool contains(std::string_view text, std::string_view fact) {
  const auto word = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = text.find(fact); at != std::string_view::npos; at = text.find(fact, at + 1)) {
    const std::size_t end = at + fact.size();
    // "coin" may go on as "coins".
    const bool begins = at == 0 || !word(at) || !word(at - 1);
    const bool ends = !word(end) || (text[end] == 's' && !word(end + 1));
    if (begins && ends) return true;
  }
  return false;
}

bool is_right(const Question& question, const std::string& answer) {
  return std::ranges::all_of(question.facts, [&](const std::string& fact) { return contains(answer, fact); });
}

using Answers = std::vector<std::vector<std::string>>;  // [character][question]

// A character who is being asked one question after another.
class Talk {
 public:
  Talk(kvasir::Executor& executor, const Character& character, std::vector<std::string>& answers)
      : conversation_(must(executor.conversation())), character_(&character), answers_(&answers) {
    ask("<|persona|>" + character.block);
  }

  // Reads what has come; false once the last answer is there.
  bool go_on() {
    if (!answer_) return false;
    while (auto piece = must(answer_->poll())) answers_->back() += piece->text;
    if (!answer_->finish()) return true;
    answer_.reset();
    if (answers_->size() == character_->questions.size()) return false;
    ask("");
    return true;
  }

 private:
  void ask(const std::string& before) {
    const std::string& question = character_->questions[answers_->size()].text;
    must(conversation_.prompt(before + "<|end|><|visitor|>" + question + "<|end|><|reply|>",
                              {.parse_special = true}));
    answer_ =
        must(conversation_.generate({.max_tokens = kLongestAnswer, .sampler = kvasir::Sampler::greedy()}));
    answers_->emplace_back();
  }

  kvasir::Conversation conversation_;
  std::optional<kvasir::Generation> answer_;
  const Character* character_;
  std::vector<std::string>* answers_;
};

// Everybody's answers, `company` characters at a time.
Answers ask_all(const kvasir::Model& model, const std::vector<Character>& characters, std::size_t company) {
  kvasir::Executor executor =
      must(kvasir::Executor::create(model, {.context = kLongestTalk, .pool = company * kLongestTalk}));
  Answers answers(characters.size());
  std::vector<Talk> talks;
  std::size_t next = 0;
  const auto start = std::chrono::steady_clock::now();
  while (next < characters.size() || !talks.empty()) {
    while (talks.size() < company && next < characters.size()) {
      talks.emplace_back(executor, characters[next], answers[next]);
      ++next;
    }
    must(executor.step());
    std::erase_if(talks, [](Talk& talk) { return !talk.go_on(); });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const kvasir::Metrics counted = executor.metrics();
  std::printf("%zu at a time: %.1f s, %.0f tokens of questions and %.0f of answers per second\n", company,
              seconds, static_cast<double>(counted.prompted) / seconds,
              static_cast<double>(counted.generated) / seconds);
  return answers;
}

struct Score {
  int right = 0;
  int asked = 0;
};

void print_score(const char* kind, const Score& score) {
  std::printf("  %-10s %5.1f %%  %d of %d\n", kind, 100.0 * score.right / std::max(1, score.asked),
              score.right, score.asked);
}

void print_scores(const std::vector<Character>& characters, const Answers& answers) {
  std::map<std::string, Score> kinds;
  Score all;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    for (std::size_t j = 0; j < characters[i].questions.size(); ++j) {
      const Question& question = characters[i].questions[j];
      const int right = is_right(question, answers[i][j]) ? 1 : 0;
      if (right == 0) std::fprintf(stderr, "wrong: %s -> %s\n", question.text.c_str(), answers[i][j].c_str());
      for (Score* score : {&kinds[question.kind], &all}) {
        score->right += right;
        ++score->asked;
      }
    }
  }
  for (const auto& [kind, score] : kinds) print_score(kind.c_str(), score);
  print_score("all", all);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: village MODEL.gguf QUESTIONS.tsv [COMPANY]\n");
    return 2;
  }
  const kvasir::Model model = must(kvasir::Model::load(arguments[1]));
  const std::vector<Character> characters = read_questions(arguments[2]);
  const std::size_t company = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 24;
  const Answers alone = ask_all(model, characters, 1);
  print_scores(characters, alone);
  const Answers beside = ask_all(model, characters, std::max<std::size_t>(1, company));
  print_scores(characters, beside);
  std::printf("%s in company is what was said alone\n",
              alone == beside ? "everything said" : "NOT everything said");
  return alone == beside ? 0 : 1;
}
