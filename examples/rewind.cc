// An answer that is taken back and given anew, three times. The question stays in the cache.

#include <iostream>

#include "check.h"
#include "kvasir/executor.h"

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model));
  kvasir::Conversation talk = check(executor.conversation({.seed = 1}));
  check(talk.prompt("What did the dragon keep in its cave?"));
  check(talk.wait());
  const std::uint64_t question = talk.length();
  for (int attempt = 0; attempt < 3; ++attempt) {
    const kvasir::GeneratedPiece answer =
        check(check(talk.generate({.max_tokens = 16, .ignore_end = true})).rest());
    std::cout << attempt + 1 << ": " << answer.text << "\n";
    check(talk.cancel());  // the last token of the answer is queued: it need not be computed
    check(talk.rewind(question));
    check(talk.refresh());  // the logits of the question's last token, to draw from again
    check(talk.wait());
  }
  std::cout << "the question's " << question << " tokens cost " << executor.metrics().prompted - question
            << " more to answer three times\n";
}
