#include "text/special_tokens.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/try.h"
#include "base/utf8.h"

namespace kvasir::text {
namespace {

using NameList = std::initializer_list<std::string_view>;

// Tokens that say "done", in the files of the families in use.
constexpr std::string_view kEndNames[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|flush|>",
                                          "<|calls|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "</s>",
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<|end_of_text|>",
                                          "<end_of_utterance>",
                                          "<eos>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<｜end▁of▁sentence｜>",
                                          "[e~["};

// Text a model writes around its answers rather than commands to stop: shown, and never ends anything.
constexpr std::string_view kShownNames[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

// Tokens for filling in the middle. The first name of a row that the vocabulary has is it, unless a key says.
// All are control tokens; some end what is being filled in.
struct FillRow {
  NameList keys;
  NameList names;
  bool ends = false;
};
const std::array<FillRow, 6>& fill_rows() {
  static const std::array<FillRow, 6> rows = {{
      {{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
       {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
        "<|code_prefix|>", "<|prefix|>"},
       false},
      {{"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
       {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
        "<|code_suffix|>", "<|suffix|>"},
       false},
      {{"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
       {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
        "<|code_middle|>", "<|middle|>"},
       false},
      {{"tokenizer.ggml.fim_pad_token_id"},
       {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"},
       true},
      {{"tokenizer.ggml.fim_rep_token_id"},
       {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"},
       true},
      {{"tokenizer.ggml.fim_sep_token_id"}, {"<|file_sep|>"}, true},
  }};
  return rows;
}

class Completion {
 public:
  Completion(const gguf::File& file, Vocabulary& vocabulary) : file_(file), vocabulary_(vocabulary) {}

  Status run() {
    KVASIR_TRY(mark_fill_tokens());
    mark_end_names();
    for (const std::string_view name : kShownNames) show(name);
    KVASIR_TRY(mark_end_keys());
    settle_contradictions();
    mark_stripping();
    return {};
  }

 private:
  TokenTraits& traits(Token id) { return vocabulary_.traits[static_cast<std::size_t>(id)]; }

  void make_end(Token id) { vocabulary_.ends[static_cast<std::size_t>(id)] = true; }

  bool ends(std::string_view name) const {
    const std::optional<Token> id = vocabulary_.find(name);
    return id && vocabulary_.ends[static_cast<std::size_t>(*id)];
  }

  void show(std::string_view name) {
    if (const std::optional<Token> id = vocabulary_.find(name)) traits(*id) = {.user_defined = true};
  }

  Status mark_fill_tokens() {
    for (const FillRow& row : fill_rows()) {
      std::optional<Token> id;
      for (const std::string_view key : row.keys) {
        if (id) break;
        KVASIR_ASSIGN(id, read_token_id(file_, key, vocabulary_.size()));
      }
      for (const std::string_view name : row.names) {
        if (id) break;
        id = vocabulary_.find(name);
        if (id) traits(*id).control = true;
      }
      if (id && row.ends) make_end(*id);
    }
    return {};
  }

  void mark_end_names() {
    for (const std::string_view name : kEndNames) {
      if (const std::optional<Token> id = vocabulary_.find(name)) {
        traits(*id).control = true;
        make_end(*id);
      }
    }
  }

  Status mark_end_keys() {
    if (vocabulary_.end) make_end(*vocabulary_.end);
    for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
      KVASIR_ASSIGN(const std::optional<Token> id, read_token_id(file_, key, vocabulary_.size()));
      if (id) make_end(*id);
    }
    return {};
  }

  // Families that use an end name of another family for something else.
  void settle_contradictions() {
    const bool calls = ends("<|call|>") || ends("<|calls|>");
    if (calls && ends("<|end|>") && (ends("<|return|>") || ends("<|flush|>")))
      unmark("<|end|>", {.user_defined = true});
    if (ends("<|tool_response>") && ends("</s>")) unmark("</s>", {.normal = true});
  }

  void unmark(std::string_view name, TokenTraits becomes) {
    if (const std::optional<Token> id = vocabulary_.find(name)) {
      vocabulary_.ends[static_cast<std::size_t>(*id)] = false;
      traits(*id) = becomes;
    }
  }

  std::string lower_case_text(std::string_view key) const {
    const gguf::Value* value = file_.find(key);
    std::string text(value == nullptr ? "" : value->as_string().value_or(""));
    for (char& c : text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
  }

  // Which tokens take white space along is told in no key, but known of these models.
  void mark_stripping() {
    const auto contains = [](std::string_view text, NameList parts) {
      return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
    };
    const std::string name = lower_case_text("general.name");
    const std::string architecture = lower_case_text("general.architecture");
    if (contains(vocabulary_.pre_name, {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
        contains(architecture, {"nomic-bert-moe", "jina-bert-v3"})) {
      strip_left("<mask>");
    } else if (contains(name, {"phi-3", "phi3"})) {
      mark_phi3();
    } else if (contains(name, {"modern-bert"})) {
      strip_left("[MASK]");
    }
  }

  void strip_left(std::string_view name) {
    if (const std::optional<Token> id = vocabulary_.find(name)) traits(*id).strips_left = true;
  }

  void mark_phi3() {
    for (TokenTraits& token : vocabulary_.traits) {
      token.strips_right = token.control || token.user_defined || token.unknown;
    }
    if (const std::optional<Token> id = vocabulary_.find("</s>")) traits(*id).strips_right = true;
    for (const std::string_view name : {"<unk>", "<s>", "<|endoftext|>"}) {
      if (const std::optional<Token> id = vocabulary_.find(name)) traits(*id).strips_right = false;
    }
  }

  const gguf::File& file_;
  Vocabulary& vocabulary_;
};

}  // namespace

Status apply_special_names(const gguf::File& file, Vocabulary& vocabulary) {
  return Completion(file, vocabulary).run();
}

Result<std::optional<Token>> read_token_id(const gguf::File& file, std::string_view key, std::uint32_t size) {
  const gguf::Value* value = file.find(key);
  if (value == nullptr || value->as_int() == -1 || value->as_uint() == UINT32_MAX) return std::nullopt;
  const std::optional<std::uint64_t> id = value->as_uint();
  if (!id) return fail(Outcome::kCorrupt, "'" + std::string(key) + "' is not a token id");
  if (*id >= size) {
    return fail(Outcome::kCorrupt,
                "'" + std::string(key) + "' is " + std::to_string(*id) + ", but the vocabulary has " +
                    std::to_string(size) + " tokens",
                {.wanted = id, .available = {}, .limit = size, .setting = {}});
  }
  return static_cast<Token>(*id);
}

}  // namespace kvasir::text
