// A text longer than the positions that a model was trained for, in the manner of Self-Extend (Jin et al.,
// 2024): the older part's positions are divided, so that several tokens share one, and the newer part moves
// up behind it. Nothing is forgotten, and no position is beyond the window.

#include <iostream>
#include <string>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

namespace {

constexpr std::int64_t kWindow = 512;
constexpr std::uint64_t kNear = 128;   // tokens that keep positions of their own
constexpr std::uint64_t kPool = 8192;  // tokens: keys that move are written anew beside those that others see

// Makes room for `more` positions.
void squeeze(kvasir::Conversation& talk, std::int64_t more) {
  while (talk.info().position + more > kWindow) {
    const std::uint64_t far = talk.length() - kNear;
    const std::int64_t far_positions = talk.info().position - static_cast<std::int64_t>(kNear);
    const std::int64_t squeezed = (far_positions + 1) / 2;
    using Kind = kvasir::EditOperation::Kind;
    const std::vector<kvasir::EditOperation> edit = {{Kind::kDivide, 0, far, 2},
                                                     {Kind::kMove, far, kNear, squeezed - far_positions}};
    check(talk.edit(edit));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model, {.pool = kPool}));
  kvasir::Conversation talk = check(executor.conversation({.seed = 1}));
  for (int chapter = 1; chapter <= 60; ++chapter) {
    const std::string text = "Chapter " + std::to_string(chapter) + ". The road went on over the hills. ";
    const std::vector<kvasir::Token> tokens =
        check(model.tokenize(text, {.add_begin = kvasir::AddBegin::kNo}));
    squeeze(talk, static_cast<std::int64_t>(tokens.size()));
    check(talk.prompt(tokens));
    check(talk.wait());
  }
  squeeze(talk, 16);
  check(talk.refresh());
  std::cout << check(check(talk.generate({.max_tokens = 16, .ignore_end = true})).rest()).text << "\n";
  check(talk.wait());
  const std::int64_t position = talk.info().position;
  std::cout << talk.length() << " tokens at positions below " << kWindow << ": "
            << (position <= kWindow ? "yes" : "no") << "\n";
}
