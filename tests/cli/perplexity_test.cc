// kvasir perplexity, as its users run it.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/process.h"
#include "support/tiny_model.h"

namespace kvasir::cli {
namespace {

using test::ProgramRun;

const std::string kProgram = KVASIR_PROGRAM;

ProgramRun perplexity_of(const test::GgufDraft& draft) {
  const std::string path = test::scratch_directory() + "/model.gguf";
  draft.write(path);
  return test::run_program(kProgram, {"perplexity", "-m", path, "-f", "-", "--window", "8"},
                           "abababababababababababab");
}

TEST(PerplexityVerb, MeasuresFiniteLogitsAndRefusesOthers) {
  const test::TinyShape shape;
  const ProgramRun finite = perplexity_of(test::tiny_talker(shape));
  EXPECT_EQ(finite.status, 0) << finite.err;
  EXPECT_TRUE(finite.out.starts_with("perplexity ")) << finite.out;
  const std::vector<float> broken(shape.embedding, std::numeric_limits<float>::quiet_NaN());
  test::GgufDraft draft = test::tiny_talker(shape);
  draft.floats("output_norm.weight", {shape.embedding}, broken);
  const ProgramRun refused = perplexity_of(draft);
  EXPECT_EQ(refused.status, 1) << refused.out;
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("logits are not finite numbers"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace kvasir::cli
