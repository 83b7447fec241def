// The smallest whole program: a model, a conversation, a story.
//
//   simple MODEL.gguf [PROMPT]

#include <iostream>

#include "kvasir/executor.h"

namespace {

kvasir::Status tell(const char* file, const char* prompt) {
  auto model = kvasir::Model::load(file);
  if (!model) return kvasir::fail(model.error());
  auto executor = kvasir::Executor::create(*model);
  if (!executor) return kvasir::fail(executor.error());
  auto talk = executor->conversation();
  if (!talk) return kvasir::fail(talk.error());
  if (const auto queued = talk->prompt(prompt); !queued) return kvasir::fail(queued.error());
  std::cout << prompt;
  auto story = talk->generate({.max_tokens = 48});
  if (!story) return kvasir::fail(story.error());
  while (true) {
    const auto next = story->next();
    if (!next) return kvasir::fail(next.error());
    const auto& piece = *next;
    if (!piece) return {};  // the end
    std::cout << piece->text << std::flush;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: simple MODEL.gguf [PROMPT]\n";
    return 2;
  }
  const kvasir::Status told = tell(arguments[1], count > 2 ? arguments[2] : "Once upon a time");
  std::cout << "\n";
  if (!told) std::cerr << "simple: " << told.error().message() << "\n";
  return told ? 0 : 1;
}
