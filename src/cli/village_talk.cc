#include "cli/village_talk.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/try.h"
#include "cli/streams.h"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kForgetsAt = 700;  // tokens: about as long as the talks it learned from
constexpr std::size_t kBeside = 6;         // others that are asked with each of the user's lines

Status wake(Village& village) {
  for (std::size_t who = 0; who < village.all().size();) {
    if (village.idle(who)) {
      ++who;
      continue;
    }
    const auto heard = village.frame();
    if (!heard) return fail(heard.error());
  }
  return {};
}

// Frames until the user's character has answered, which is printed as it comes.
Status answer(Village& village, std::size_t who) {
  std::size_t printed = 0;
  while (true) {
    const auto heard = village.frame();
    if (!heard) return fail(heard.error());
    const Villager& villager = village.all()[who];
    KVASIR_TRY(print(std::string_view(villager.said).substr(printed)));
    printed = villager.said.size();
    if (!villager.answer) return print("\n");
  }
}

}  // namespace

Status talk_to(Village& village, std::size_t who) {
  KVASIR_TRY(wake(village));
  Villager& villager = village.all()[who];
  show(
      fmt::format("You meet {}. Ask about name, work, home, mood, goods, prices and family. What the "
                  "character knows:\n{}\nThe end of the input, or Ctrl-C, ends the talk.\n",
                  villager.person->name, villager.person->block));
  Lines lines;
  std::size_t next = who;
  while (true) {
    show("> ");
    KVASIR_ASSIGN(const std::optional<std::string> line, lines.next());
    if (!line) return {};
    if (line->empty()) continue;
    if (villager.conversation.length() > kForgetsAt) {
      KVASIR_TRY(villager.conversation.rewind(villager.told));
      show("(A new day: what was said before is forgotten.)\n");
    }
    for (std::size_t i = 0; i < kBeside; ++i) {
      next = (next + 1) % village.all().size();
      if (next != who && village.idle(next)) KVASIR_TRY(village.ask_next(next));
    }
    if (const Status asked = village.ask(who, {"", *line, ""}); !asked) {
      say("kvasir: " + asked.error().message());
      continue;
    }
    KVASIR_TRY(answer(village, who));
  }
}

}  // namespace kvasir::cli
