// A conversation outlives its executor: it is saved to a file, everything is closed, and it goes on
// elsewhere, in pages of another size, to the bit and without computing anything again.

#include <cstdio>
#include <iostream>
#include <string>

#include "check.h"
#include "kvasir/executor.h"

namespace {

std::string go_on(kvasir::Conversation& talk) {
  return check(check(talk.generate({.max_tokens = 12, .ignore_end = true})).rest()).text;
}

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  const std::string file = std::string(arguments[0]) + ".kvar";
  std::string expected;
  {
    kvasir::Executor executor = check(kvasir::Executor::create(model));
    kvasir::Conversation talk = check(executor.conversation({.seed = 1}));
    check(talk.prompt("The dragon keeps three things in its cave:"));
    check(talk.wait());
    check(talk.save(file));
    expected = go_on(talk);
  }

  kvasir::Executor elsewhere = check(kvasir::Executor::create(model, {.page_cells = 64}));
  kvasir::Conversation talk = check(elsewhere.conversation());
  const kvasir::ArchiveReport report = check(talk.load(file));
  const bool same = go_on(talk) == expected;
  std::cout << report.tokens << " tokens came back in " << report.bytes << " bytes, "
            << report.tokens_recomputed
            << " were computed again; it goes on as it would have: " << (same ? "yes" : "no") << "\n";
  std::remove(file.c_str());
}
