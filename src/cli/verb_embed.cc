// kvasir embed: what an encoder makes of a text, as one vector or one for each token.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/token_file.h"
#include "cli/verbs.h"
#include "engine/texts.h"

namespace kvasir::cli {
namespace {

struct Options {
  ModelFlags model;
  std::string tokens;
  std::string output;
  std::string pooling;
};

struct PoolingName {
  std::string_view name;
  model::Pooling pooling;
};
constexpr std::array kPoolings = {
    PoolingName{"none", model::Pooling::kNone}, PoolingName{"mean", model::Pooling::kMean},
    PoolingName{"cls", model::Pooling::kFirst}, PoolingName{"last", model::Pooling::kLast},
    PoolingName{"rank", model::Pooling::kRank},
};

Status embed(const Options& options) {
  KVASIR_ASSIGN(const std::vector<Token> ids, read_ids(options.tokens));
  if (ids.empty()) return fail(Outcome::kInvalidArgument, "'" + options.tokens + "' holds no token id");
  KVASIR_ASSIGN(const Session session, load_session(options.model));
  engine::EmbedWishes wishes{.context = session.options.context,
                             .pass_tokens = options.model.pass_tokens,
                             .goes_on = [](std::uint64_t) { return !interrupted(); }};
  const auto* const named = std::ranges::find(kPoolings, options.pooling, &PoolingName::name);
  if (named != kPoolings.end()) wishes.pooling = named->pooling;
  const std::span<const Token> text = ids;
  auto vectors = engine::embed(*session.model, *session.pool, {&text, 1}, wishes);
  if (!vectors && interrupted()) return fail(Outcome::kCancelled, "interrupted; no vector was written");
  if (!vectors) return fail(std::move(vectors).error());
  KVASIR_ASSIGN(const auto output, open_output(base::system_files(), options.output));
  KVASIR_TRY(output->write(std::as_bytes(std::span(vectors->front()))));
  return output->commit();
}

}  // namespace

void add_embed(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("embed", "Write what a model makes of a text, as vectors");
  add_model_flags(*verb, options->model);
  verb->add_option("--tokens", options->tokens,
                   "A file of token ids, or - for standard input; none is added to them")
      ->required();
  verb->add_option("--out", options->output,
                   "Raw little-endian float32: a vector, or one for each token; - for standard output")
      ->required();
  std::vector<std::string> names;
  names.reserve(std::size(kPoolings));
  for (const PoolingName& known : kPoolings) names.emplace_back(known.name);
  verb->add_option(
          "--pooling", options->pooling,
          "How tokens' vectors become one: none, mean, cls, last or rank (default: as the file says)")
      ->check(CLI::IsMember(names));
  verb->callback([options, &action] { action = [options] { return embed(*options); }; });
}

}  // namespace kvasir::cli
