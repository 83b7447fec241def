// kvasir logits: the logits of every token of a sequence of ids, in any pieces and beside any number of
// others.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/json.h"
#include "cli/logits_run.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/streams.h"
#include "cli/token_file.h"
#include "cli/verbs.h"

namespace kvasir::cli {
namespace {

using engine::Engine;

struct Options {
  ModelFlags model;
  std::string tokens;
  std::string source;
  std::string output;
  std::vector<std::uint64_t> split;
  std::uint32_t beside = 0;
  std::string via;
  std::optional<std::uint64_t> at;
  bool json = false;
};

// One line that says what was done.
void print_report(const LogitsReport& done, const Options& options) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  json.member("steps", done.steps).member("passes", done.passes);
  json.member("page", options.model.page_cells).member("threads", options.model.threads);
  json.member("beside_in_same_pass", done.beside_in_same_pass).member("cells_shared", done.cells_shared);
  json.member("cells_dropped", done.cells_dropped).member("layers_undone", done.layers_undone);
  json.member("jobs_suspended", done.jobs_suspended).member("cells_moved", done.cells_moved);
  json.member("cells_reused", done.cells_reused).member("bytes_loaded", done.bytes_loaded);
  json.member("tokens_recomputed", done.tokens_recomputed);
  json.member("bytes_spilled", done.bytes_spilled).member("bytes_on_disk", done.bytes_on_disk);
  json.member("bytes_returned", done.bytes_returned);
  json.end_object();
  say(line);
}

// The digest of the last row, as `bench` prints it.
Status print_digest(const LogitsRun& run, std::span<const Token> ids) {
  KVASIR_ASSIGN(const std::span<const float> row, run.last_row());
  std::string line;
  JsonWriter json(line);
  json.begin_object().key("ids").begin_array();
  for (const Token id : ids) json.value(id);
  json.end_array()
      .member("digest", fmt::format("{:016x}", XXH3_64bits(row.data(), row.size_bytes())))
      .end_object();
  return print(line + "\n");
}

// The borders of the pieces: --split from the start, with one more border at `at`.
std::vector<std::size_t> piece_ends(const Options& options, std::size_t count, std::size_t at) {
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  for (std::size_t index = 0; begin < count; ++index) {
    std::uint64_t size = count;
    if (!options.split.empty()) size = options.split[std::min(index, options.split.size() - 1)];
    const std::size_t end = begin + std::min<std::uint64_t>(size, count - begin);
    if (begin < at && at < end) ends.push_back(at);
    ends.push_back(end);
    begin = end;
  }
  return ends;
}

// Tokens that the pool must hold: ours and the others', those of a rewind, keys rewritten by a division, the
// one that takes the memory of what is spilled, and for `compact` and `archive` the filler that takes every
// second cell.
std::uint64_t pool_tokens(const Options& options, const Via& via, std::uint64_t count, std::uint64_t at) {
  const std::uint64_t conversations = std::uint64_t{options.beside} + 1;
  const std::uint64_t slack = conversations * options.model.page_cells;
  switch (via.kind) {
    case Via::Kind::kFork:
      return (conversations + 1) * count + slack;
    case Via::Kind::kRewind:
      return conversations * (count + 40) + slack;
    case Via::Kind::kPrefix:
    case Via::Kind::kDivide:
      return conversations * count + at + slack;
    case Via::Kind::kCompact:
    case Via::Kind::kArchive:
      return 2 * (conversations * count + slack);
    case Via::Kind::kSpill:
      return conversations * count + slack + 2 * options.model.page_cells;
    default:
      return conversations * count + slack;
  }
}

Status logits(const Options& options) {
  Via via;
  if (!options.via.empty()) {
    KVASIR_ASSIGN(via, parse_via(options.via));
  }
  KVASIR_ASSIGN(const std::vector<Token> ids, read_ids(options.tokens));
  if (ids.empty()) return fail(Outcome::kInvalidArgument, "'" + options.tokens + "' holds no token id");
  const std::size_t at = options.at.value_or(ids.size() / 2);
  if (via.kind != Via::Kind::kNone && (at == 0 || at >= ids.size())) {
    return fail(
        Outcome::kInvalidArgument,
        fmt::format("--at {} must leave a token before it and one behind it, of {} in all", at, ids.size()));
  }
  std::vector<Token> source;
  if (!options.source.empty()) {
    KVASIR_ASSIGN(source, read_ids(options.source));
    if (source.empty()) return fail(Outcome::kInvalidArgument, "'" + options.source + "' holds no token id");
  }
  KVASIR_ASSIGN(Session session, load_session(options.model));
  if (!session.model->network().decodes()) return check_completes(*session.model);
  if (source.empty() && session.model->network().reads_source()) {
    return fail(Outcome::kInvalidArgument,
                "this model reads a source before it writes; --encode names the file of its ids");
  }
  session.options.share_prefixes = via.kind == Via::Kind::kPrefix;
  if (via.kind == Via::Kind::kSpill) session.spill = SpillTo::kDisk;
  const auto logit_rows = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options.model.pass_tokens, ids.size() + options.beside + 1));
  const std::uint64_t pool = pool_tokens(options, via, std::max(ids.size(), source.size()), at);
  const auto make = [&](std::uint32_t page_cells) {
    session.options.page_cells = page_cells;
    return make_engine(session, options.model, pool, logit_rows);
  };
  KVASIR_ASSIGN(std::unique_ptr<Engine> engine, make(options.model.page_cells));
  KVASIR_ASSIGN(const auto output, open_output(base::system_files(), options.output));
  LogitsRun run(std::move(engine), make, options.beside, std::move(source));
  KVASIR_TRY(run.open(via));
  std::size_t begin = 0;
  for (const std::size_t end : piece_ends(options, ids.size(), via.kind == Via::Kind::kNone ? 0 : at)) {
    if (via.kind != Via::Kind::kNone && begin == at) KVASIR_TRY(run.act(via, std::span(ids).first(begin)));
    KVASIR_TRY(run.piece(std::span(ids).subspan(begin, end - begin)));
    KVASIR_ASSIGN(const std::vector<float> rows, run.take_rows());
    KVASIR_TRY(output->write(std::as_bytes(std::span(rows))));
    begin = end;
  }
  KVASIR_TRY(output->commit());
  print_report(run.report(), options);
  return options.json ? print_digest(run, ids) : Status();
}

}  // namespace

void add_logits(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("logits", "Write the logits of every token of a sequence of ids");
  add_model_flags(*verb, options->model);
  verb->add_option("--tokens", options->tokens, "A file of token ids, or - for standard input")->required();
  verb->add_option("--encode", options->source,
                   "A file of token ids that the encoder reads first, where the model has one");
  verb->add_option(
          "--out", options->output,
          "Raw little-endian float32, a row of vocabulary size for each token; - for standard output")
      ->required();
  verb->add_option("--split", options->split, "Take the ids in pieces of these sizes; the last repeats")
      ->delimiter(',')
      ->check(whole_number(1, UINT32_MAX));
  verb->add_option("--beside", options->beside, "Other random conversations that run in the same passes")
      ->check(whole_number(0, 1U << 16));
  CLI::Option* via_option = verb->add_option("--via", options->via,
                                             "What happens on the way: fork, rewind, abort, suspend, "
                                             "compact, prefix, archive, spill, swap:A:B, shift:KEEP:COUNT, "
                                             "divide:D");
  via_option->check([](const std::string& text) {
    const auto via = parse_via(text);
    return via ? std::string() : via.error().message();
  });
  verb->add_option("--at", options->at, "After how many tokens it happens (default: half of them)")
      ->check(whole_number())
      ->needs(via_option);
  verb->add_flag("--json", options->json, "Print the ids and a digest of the last row's logits");
  verb->callback([options, &action] {
    if (options->json && options->output == "-")
      throw CLI::ValidationError("--json prints to standard output, where --out - writes rows; name a file");
    action = [options] { return logits(*options); };
  });
}

}  // namespace kvasir::cli
