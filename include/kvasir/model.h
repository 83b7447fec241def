// A loaded model: weights, numbers and vocabulary of one GGUF file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/token.h"

namespace kvasir {

namespace api {
struct ModelParts;
}

struct ModelOptions {
  // Threads that load it and compute with it, at most 1024; 0: as many as this process may use processors.
  int threads = 0;

  // Called now and then while loading, from the calling thread, with the share that is done (0 to 1). To
  // answer false cancels.
  std::function<bool(double)> progress = nullptr;

  // Tokens of the longest conversation it will be used for; 0: those it was trained for. It matters to models
  // that turn their keys otherwise in long contexts (LongRoPE): which way, is fixed here.
  std::uint64_t context = 0;
};

// Whether the tokens that begin (and end) a text in this vocabulary are added to it.
enum class AddBegin : std::uint8_t {
  kAuto,  // where the vocabulary asks for it, and only at the start of a conversation
  kYes,
  kNo,
};

struct TextOptions {
  AddBegin add_begin = AddBegin::kAuto;
  bool parse_special = false;  // text may name special tokens such as "<|im_end|>"; else it is plain text
};

// A handle on an immutable model; copies share it, and moving copies. Any thread may call. Executors keep
// what they need of it.
class Model {
 public:
  Model(const Model&) noexcept = default;
  Model& operator=(const Model&) noexcept = default;
  ~Model() = default;

  // Reads a GGUF file (of a split one, any part's name). kNotFound, kIo; kUnsupported names what does not
  // run; kCorrupt says what is wrong with the file; kOutOfMemory; kCancelled where `progress` answered false
  // or threw; kInvalidArgument for what is no file, and for a number of threads that cannot be.
  [[nodiscard]] static Result<Model> load(const std::string& path, const ModelOptions& options = {});

  // The ids of a text that stands alone (AddBegin::kAuto: the begin token is added). kInvalidArgument beyond
  // 256 MiB, for options that cannot be, or where the begin token is wanted and there is none; kOutOfMemory.
  [[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view text,
                                                    const TextOptions& options = {}) const;

  // The bytes of ids, special tokens by their names. They may end inside a character. kInvalidArgument names
  // an id that is not in the vocabulary; kOutOfMemory.
  [[nodiscard]] Result<std::string> detokenize(std::span<const Token> ids) const;

  // The token that is spelled exactly so, special ones by their names.
  [[nodiscard]] std::optional<Token> find(std::string_view spelling) const noexcept;
  [[nodiscard]] std::optional<Token> begin_token() const noexcept;
  // What a decoder that reads a source begins with; nothing in other models.
  [[nodiscard]] std::optional<Token> start_token() const noexcept;
  // Whether a model that says this token is done. False for ids outside the vocabulary.
  [[nodiscard]] bool ends_generation(Token id) const noexcept;

  [[nodiscard]] std::uint32_t vocabulary() const noexcept;       // tokens, and floats in a row of logits
  [[nodiscard]] std::uint32_t embedding_size() const noexcept;   // floats in an embedding
  [[nodiscard]] std::uint64_t trained_context() const noexcept;  // tokens it was trained for
  [[nodiscard]] std::string_view architecture() const noexcept;  // as the file names it, owned by the model

  // The vector that a token enters the model as: embedding_size() floats. kInvalidArgument as detokenize();
  // kOutOfMemory.
  [[nodiscard]] Result<std::vector<float>> embedding(Token id) const;

 private:
  friend class Executor;
  explicit Model(std::shared_ptr<const api::ModelParts> parts) noexcept : parts_(std::move(parts)) {}
  std::shared_ptr<const api::ModelParts> parts_;
};

}  // namespace kvasir
