// kvasir demo, as its users run it.

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "cli/village_people.h"
#include "support/paths.h"
#include "support/process.h"

namespace kvasir {
namespace {

using test::ProgramRun;
using test::run_program;

const std::string kProgram = KVASIR_PROGRAM;

TEST(Demonstration, EndsByItselfAndVerifiesThatEverybodyStayedThemselves) {
  const ProgramRun run = run_program(kProgram, {"demo", "--seconds", "5"});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("verified   all 24 stayed themselves"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("nothing has moved"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("so I will tell you: the map is behind the gate."), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("Those are not the words."), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("the same words and the same bits, in pages of another size"), std::string::npos)
      << run.out;
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos) << "no terminal, no colours";
  EXPECT_EQ(run.err, "");
}

// The alarm works: cells that change hands in silence are noticed.
TEST(Demonstration, FailsWhereOneCharacterIsHandedAnothersCells) {
  const ProgramRun run = run_program(kProgram, {"demo", "--seconds", "3", "--mix-up"});
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  EXPECT_EQ(run.out.find("verified"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("alone      22 of 24"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("not as promised: "), std::string::npos) << run.err;
}

TEST(Demonstration, LetsItsUserTalkToOneOfThem) {
  const cli::Person& person = cli::village_people()[2];
  const std::string lines = std::string(person.roll_call[0].question) + "\n\n" +
                            std::string(person.roll_call[1].question) + "\n<|end|>\n";
  const ProgramRun run = run_program(kProgram, {"demo", "--talk", std::string(person.name)}, lines);
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_NE(run.out.find(person.name), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(person.roll_call[1].facts), std::string::npos) << run.out;
  EXPECT_NE(run.err.find(person.block), std::string::npos) << run.err;
}

TEST(Demonstration, RefusesWhatCannotBe) {
  const ProgramRun nobody = run_program(kProgram, {"demo", "--talk", "Nobody"});
  EXPECT_EQ(nobody.status, 2);
  EXPECT_NE(nobody.err.find(cli::village_people().front().name), std::string::npos) << nobody.err;
  const ProgramRun stranger =
      run_program(kProgram, {"demo", "-m", test::data_path("models/llama/model.gguf")});
  EXPECT_EQ(stranger.status, 1);
  EXPECT_NE(stranger.err.find("no model of the village"), std::string::npos) << stranger.err;
  const ProgramRun no_model = run_program(kProgram, {"demo", "-m", "/no/such/file"});
  EXPECT_EQ(no_model.status, 1);
  EXPECT_NE(no_model.err.find("/no/such/file"), std::string::npos) << no_model.err;
  EXPECT_EQ(run_program(kProgram, {"demo", "--seconds", "0"}).status, 2);
}

TEST(Demonstration, IsNoSuccessWhereCtrlCBrokeItOff) {
  test::RunningProgram program(kProgram, {"demo"});
  EXPECT_TRUE(program.wait_until([&] { return program.out_so_far().find("market") != std::string::npos; }));
  program.send(SIGINT);
  const ProgramRun run = program.wait();
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_NE(run.err.find("nothing was verified"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace kvasir
