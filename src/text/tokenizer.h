// Text to token ids and back, for every kind of vocabulary that GGUF files carry, from their metadata alone.
//
// The kinds (tokenizer.ggml.model): "llama" (SentencePiece-style pairs by score), "gpt2" and "gemma4"
// (byte-pair merges by rank behind a pre-tokenizer), "t5" (unigram), "bert" (WordPiece), "rwkv" (greedy
// longest match). Which ids a text gets is what llama.cpp gives for the same file, unless its documentation
// here says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"
#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir::text {

// The longest text one call takes, in bytes.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;

struct TokenizeOptions {
  bool add_begin_end = false;  // the begin and end tokens, wherever the vocabulary asks for them
  bool parse_special = false;  // text may name special tokens; else their spelling is ordinary text
};

struct DetokenizeOptions {
  // The ids go on from earlier ones, so a space that a vocabulary puts before a whole text is text here.
  bool continues = false;
};

// A vocabulary ready for use. Immutable; any thread may call, on a stack of 256 KiB or more.
class Tokenizer {
 public:
  // Reads the vocabulary of a file. The File may go afterwards. kNotFound where the file holds none;
  // kUnsupported names a kind or a pre-tokenizer that is not known, and those that are, or a vocabulary
  // beyond what is taken (16 MiB of token texts, 64 MiB of merges); kCorrupt says what is wrong with a
  // vocabulary (two tokens of one spelling, scores that are missing or no numbers, a begin token beyond its
  // end, ...); kOutOfMemory.
  [[nodiscard]] static Result<std::unique_ptr<const Tokenizer>> load(const gguf::File& file);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // The ids of any bytes. Bytes that are not UTF-8 become the vocabulary's tokens for bytes. What a
  // vocabulary has no token for becomes its unknown token, or where it has none (as in byte-pair
  // vocabularies) is left out; `left_out`, where given, receives how many bytes that were. Time is linear in
  // the text, but for a logarithm. kInvalidArgument beyond kMaxTextBytes, kOutOfMemory; kInternal if a
  // pattern of the pre-tokenizer gave up, which no text is known to cause.
  [[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text, const TokenizeOptions& options,
                                                    std::uint64_t* left_out = nullptr) const;

  // The bytes of ids, special tokens written out, nothing dropped but the space that the vocabulary put
  // before the text. Any bytes may come out: tokens may hold parts of characters. kInvalidArgument names an
  // id that is not in the vocabulary, and its size; kOutOfMemory.
  [[nodiscard]] Result<std::string> detokenize(std::span<const Token> ids,
                                               const DetokenizeOptions& options = {}) const;

  // The bytes one token stands for, wherever it is; of a special token its name. Lives as long as the
  // Tokenizer. kInvalidArgument as detokenize().
  [[nodiscard]] Result<std::string_view> piece(Token id) const;

  // Tokens in the vocabulary.
  [[nodiscard]] std::uint32_t size() const noexcept;

  // The token that the file spells exactly so (special tokens by their names), or nothing.
  [[nodiscard]] std::optional<Token> find(std::string_view spelling) const noexcept;

  // What stands before and after a whole text: end of sequence, and in WordPiece vocabularies the separator.
  // Nothing where the vocabulary has no such token.
  [[nodiscard]] std::optional<Token> begin_token() const noexcept;
  [[nodiscard]] std::optional<Token> end_token() const noexcept;

  // Whether the vocabulary asks for them. Where true, the token exists.
  [[nodiscard]] bool adds_begin() const noexcept;
  [[nodiscard]] bool adds_end() const noexcept;

  // Whether a model that says this token is done: end of sequence, of turn, of message, and what usually
  // means that by its name. False for ids outside the vocabulary.
  [[nodiscard]] bool ends_generation(Token id) const noexcept;

  // Whether it is a control token or the unknown one: a name rather than text. False for ids outside.
  [[nodiscard]] bool is_special(Token id) const noexcept;

  // The kind and pre-tokenizer as the file names them, such as "gpt2" and "llama-bpe" (empty where it names
  // none).
  [[nodiscard]] std::string_view kind() const noexcept;
  [[nodiscard]] std::string_view pre_tokenizer() const noexcept;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

struct StreamOptions {
  bool raw_bytes = false;   // pass bytes that can never become a character on as they are
  bool whole_text = false;  // the first token begins a text, as in detokenize() with continues = false
};

// Ids to text as they come, never splitting a character: bytes that may still become one are held back. What
// is delivered is valid UTF-8, with U+FFFD for each maximal part that can never become a character (lone
// continuation bytes, overlong forms, surrogates; the Unicode Standard, "U+FFFD Substitution of Maximal
// Subparts"); with raw_bytes it is, all together, exactly the tokens' bytes. By default the ids go on from a
// prompt. Copyable; one thread at a time. The Tokenizer must outlive it.
class StreamingDetokenizer {
 public:
  explicit StreamingDetokenizer(const Tokenizer& tokenizer, const StreamOptions& options = {});

  // The characters that are complete now, possibly none. kInvalidArgument as detokenize(), having changed
  // nothing; kOutOfMemory.
  [[nodiscard]] Result<std::string> feed(Token id);

  // What was held back, once: the next call answers nothing, and feed() starts anew. At most 3 bytes.
  [[nodiscard]] std::string finish();

 private:
  const Tokenizer* tokenizer_;
  StreamOptions options_;
  bool at_start_;
  std::string pending_;  // the beginning of a character: at most 3 bytes
};

}  // namespace kvasir::text
