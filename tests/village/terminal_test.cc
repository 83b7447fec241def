// kvasir demo on a terminal of 80 columns and 24 lines.

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <string>
#include <string_view>

namespace kvasir {
namespace {

struct TerminalRun {
  int status = -1;
  std::string out;
};

// Runs the demonstration on a terminal of its own, to its end.
TerminalRun run_on_terminal(unsigned short columns, unsigned short lines) {
  winsize size{.ws_row = lines, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    ::execl(KVASIR_PROGRAM, KVASIR_PROGRAM, "demo", "--seconds", "4", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  TerminalRun run;
  std::array<char, 4096> some{};
  while (true) {
    const ssize_t got = ::read(terminal, some.data(), some.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // EIO: the other side is closed
    run.out.append(some.data(), static_cast<std::size_t>(got));
  }
  int state = 0;
  while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  ::close(terminal);
  if (WIFEXITED(state)) run.status = WEXITSTATUS(state);
  return run;
}

// The most columns that anything takes between two ends of lines; escape sequences take none.
std::size_t widest(std::string_view text) {
  std::size_t most = 0;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\x1b') {
      while (i < text.size() && (std::isalpha(static_cast<unsigned char>(text[i])) == 0)) ++i;
    } else if (byte == '\n' || byte == '\r') {
      columns = 0;
    } else if ((byte & 0xC0) != 0x80) {
      most = std::max(most, ++columns);
    }
  }
  return most;
}

TEST(DemonstrationOnATerminal, DrawsInColourWithin80ColumnsAndLeavesTheCursorShown) {
  const TerminalRun run = run_on_terminal(80, 24);
  EXPECT_EQ(run.status, 0) << run.out;
  EXPECT_NE(run.out.find("\x1b[38;5;"), std::string::npos) << "colours";
  EXPECT_NE(run.out.find("■"), std::string::npos) << "the map of the pool";
  EXPECT_LE(widest(run.out), 80U);
  EXPECT_GT(run.out.rfind("\x1b[?25h"), run.out.rfind("\x1b[?25l")) << "the cursor stays hidden";
  EXPECT_NE(run.out.find("verified   all 24 stayed themselves"), std::string::npos);
}

TEST(DemonstrationOnATerminal, PrintsLinesWhereTheViewDoesNotFit) {
  const TerminalRun run = run_on_terminal(70, 24);
  EXPECT_EQ(run.status, 0) << run.out;
  EXPECT_EQ(run.out.find("\x1b[?25l"), std::string::npos);
  EXPECT_NE(run.out.find("verified   all 24 stayed themselves"), std::string::npos);
}

}  // namespace
}  // namespace kvasir
