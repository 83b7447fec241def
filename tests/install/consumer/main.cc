// A program of somebody else's, built with the installed library alone.

#include <iostream>
#include <vector>

#include "kvasir/executor.h"

namespace {

kvasir::Status run(const char* file) {
  const auto model = kvasir::Model::load(file);
  if (!model) return kvasir::fail(model.error());
  auto executor = kvasir::Executor::create(*model, {.keys = kvasir::CacheType::kF32});
  if (!executor) return kvasir::fail(executor.error());
  auto talk = executor->conversation({.seed = 1});
  if (!talk) return kvasir::fail(talk.error());
  const std::vector<kvasir::Token> prompt = {1, 2, 3};
  if (const auto queued = talk->prompt(prompt); !queued) return kvasir::fail(queued.error());
  auto story = talk->generate({.max_tokens = 4, .ignore_end = true});
  if (!story) return kvasir::fail(story.error());
  if (const auto step = executor->step({.whole_queue = true}); !step) return kvasir::fail(step.error());
  const auto told = story->rest();
  if (!told) return kvasir::fail(told.error());
  if (const auto computed = talk->wait(); !computed) return kvasir::fail(computed.error());
  std::cout << "drew " << told->tokens.size() << " tokens, the history has " << talk->length() << "\n";
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const kvasir::Status status = run(arguments[1]);
  if (status) return 0;
  std::cerr << status.error().message() << "\n";
  return 1;
}
