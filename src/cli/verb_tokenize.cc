// kvasir tokenize: text to token ids and back, by a file's vocabulary. Needs no weights.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/try.h"
#include "cli/streams.h"
#include "cli/token_file.h"
#include "cli/verbs.h"
#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string model;
  bool begin_end = false;
  bool special = false;
  bool back = false;
};

Result<std::string> read_text() {
  KVASIR_ASSIGN(const std::vector<std::byte> bytes, read_input(text::kMaxTextBytes));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status print_ids(const text::Tokenizer& tokenizer, std::string_view input, const Options& options) {
  std::uint64_t left_out = 0;
  KVASIR_ASSIGN(
      const std::vector<Token> ids,
      tokenizer.tokenize(input, {.add_begin_end = options.begin_end, .parse_special = options.special},
                         &left_out));
  if (left_out > 0) {
    say(fmt::format("kvasir: the vocabulary has no token for {} of the text's {} bytes; they are left out",
                    left_out, input.size()));
  }
  std::string line;
  for (const Token id : ids) fmt::format_to(std::back_inserter(line), "{}{}", line.empty() ? "" : " ", id);
  return print(line + "\n");
}

Status tokenize(const Options& options) {
  if (options.model == "-") {
    return fail(Outcome::kInvalidArgument, "the model must be a file: standard input is what is tokenized");
  }
  KVASIR_ASSIGN(const gguf::File file, gguf::File::open(base::system_files(), options.model));
  KVASIR_ASSIGN(const std::unique_ptr<const text::Tokenizer> tokenizer, text::Tokenizer::load(file));
  KVASIR_ASSIGN(const std::string input, read_text());
  if (!options.back) return print_ids(*tokenizer, input, options);
  KVASIR_ASSIGN(const std::vector<Token> ids, parse_ids(input));
  KVASIR_ASSIGN(const std::string bytes, tokenizer->detokenize(ids));
  return print(bytes);
}

}  // namespace

void add_tokenize(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand(
      "tokenize", "Turn standard input into token ids on one line, or ids back into bytes");
  verb->add_option("-m,--model", options->model, "A GGUF file with a vocabulary; it needs no weights")
      ->required();
  CLI::Option* begin_end = verb->add_flag("--bos", options->begin_end,
                                          "Add begin and end tokens wherever the vocabulary asks for them");
  CLI::Option* special = verb->add_flag("--special", options->special,
                                        "The text may name special tokens; else it is plain text");
  verb->add_flag("--detokenize", options->back, "Standard input is ids: write the bytes they stand for")
      ->excludes(begin_end)
      ->excludes(special);
  verb->callback([options, &action] { action = [options] { return tokenize(*options); }; });
}

}  // namespace kvasir::cli
