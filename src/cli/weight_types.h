// Which weight type each tensor of a model gets when a file is made: all the same, or a mix by the field's
// convention.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/work.h"
#include "kvasir/result.h"
#include "quant/block_type.h"

namespace kvasir::cli {

// What a user asks for by name: a block type for every matrix, or a mix.
struct WeightTarget {
  std::string_view name;  // a string literal, as it is spelt
  quant::BlockType base;
  std::uint32_t file_type;  // the number of general.file_type (llama.cpp's llama_ftype)
  bool mixed = false;       // tensors that matter more get more bits than `base`
};

// The target of a name in any letter case: a block type that unpacks, or Q4_K_M or Q5_K_M. kInvalidArgument
// names those there are, only those that also pack with `packing`; kUnsupported a type that is known but not
// handled.
[[nodiscard]] Result<WeightTarget> find_weight_target(std::string_view name, bool packing = false);

// The names that can be asked for, separated by spaces; only those that also pack with `packing`.
[[nodiscard]] std::string weight_target_names(bool packing);

// A check of a flag: what is wrong with a name that no type has, in the words of find_weight_target, else
// nothing (also of a type that is not handled).
[[nodiscard]] std::string known_weight_type(const std::string& name, bool packing = false);

// A tensor as far as its type depends on it. `name` outlives what is made from it.
struct TensorOutline {
  std::string_view name;
  std::span<const std::uint64_t> dims;  // fastest first
};

enum class Reason : std::uint8_t {
  kAsAsked,    // the target's base type
  kMix,        // the target's convention gives this one another type
  kKept,       // a norm, a bias or another small tensor: not a matter of the target
  kRowLength,  // its rows do not divide into the blocks of the type that it would have got
};

struct TypeChoice {
  quant::BlockType type;    // F32 with kKept
  quant::BlockType wished;  // what it would be if its rows divided
  Reason reason;
};

// Chooses for the tensors of one model. Immutable; any thread.
class TypeChooser {
 public:
  // `architecture` as in general.architecture, `layers` its block_count (0: as many as the tensors' names
  // count) and `experts` its expert_count.
  struct Model {
    std::string architecture;
    std::uint64_t layers = 0;
    std::uint64_t experts = 0;
  };
  TypeChooser(WeightTarget target, Model model, std::span<const TensorOutline> tensors);

  [[nodiscard]] TypeChoice choose(const TensorOutline& tensor) const;

 private:
  [[nodiscard]] quant::BlockType mixed_type(std::string_view name) const;
  [[nodiscard]] bool more_bits_for_value(std::uint64_t block) const;

  WeightTarget target_;
  Model model_;
  bool tied_ = true;                         // there is no output matrix: the embedding serves
  std::vector<std::uint64_t> value_blocks_;  // numbers of the blocks that have a value matrix, ascending
};

// Collects the tensors whose rows do not divide, and says so in a sentence for each length and type.
class RowLengthNotes {
 public:
  // `name` outlives the notes.
  void add(std::string_view name, std::uint64_t row_length, const TypeChoice& choice);
  void tell(const WorkHooks& hooks) const;

 private:
  struct Kind {
    std::uint64_t row_length;
    quant::BlockType wished;
    quant::BlockType type;
    auto operator<=>(const Kind&) const = default;
  };
  std::map<Kind, std::vector<std::string_view>> tensors_;
};

}  // namespace kvasir::cli
