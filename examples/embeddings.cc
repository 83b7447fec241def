// Vectors between texts, as an image encoder would make them. Here they are those of words, so that the
// result can be told: the same bits as the words themselves.

#include <iostream>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model));
  const std::vector<kvasir::Token> words =
      check(model.tokenize(" a lake, two boats, a heron", {.add_begin = kvasir::AddBegin::kNo}));
  std::vector<float> image;
  for (const kvasir::Token word : words) {
    const std::vector<float> row = check(model.embedding(word));
    image.insert(image.end(), row.begin(), row.end());
  }

  kvasir::Conversation seeing = check(executor.conversation());
  check(seeing.prompt(std::vector<kvasir::PromptPart>{kvasir::Text{"In this picture:", {}},
                                                      kvasir::Embeddings{image},
                                                      kvasir::Text{"What do you see?", {}}}));
  kvasir::Conversation reading = check(executor.conversation());
  check(reading.prompt(std::vector<kvasir::PromptPart>{kvasir::Text{"In this picture:", {}},
                                                       std::span<const kvasir::Token>(words),
                                                       kvasir::Text{"What do you see?", {}}}));
  const kvasir::StepReport report = check(executor.step());  // both in one pass
  for (const kvasir::ConversationReport& each : report.conversations)
    std::cout << each.tokens << " tokens, of which " << each.embeddings << " are vectors\n";
  const bool same = *check(seeing.logits()) == *check(reading.logits());
  std::cout << "the vectors of words have the bits of the words: " << (same ? "yes" : "no") << "\n";
}
