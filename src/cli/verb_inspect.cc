// kvasir inspect: what a GGUF file or an archive holds. Reads all of it, so that what it prints is true of a
// whole file.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "base/file.h"
#include "base/try.h"
#include "base/utf8.h"
#include "cli/archive_view.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/streams.h"
#include "cli/verbs.h"
#include "gguf/gguf.h"
#include "quant/block_type.h"

namespace kvasir::cli {
namespace {

using gguf::Value;
using gguf::ValueType;

constexpr std::string_view kArchiveMagic{"KVASIR\0", 7};
constexpr std::uint64_t kChunkValues = std::uint64_t{256} << 10;
constexpr std::uint64_t kShownElements = 8;   // of a long array
constexpr std::uint64_t kWholeElements = 16;  // of an array that is shown whole
constexpr std::size_t kShownTextBytes = 72;

// What a whole read of the tensor data found.
struct Findings {
  std::vector<std::uint64_t> non_finite;  // a tensor's infinities and NaNs
  std::uint64_t all_non_finite = 0;
};

struct TypeTotals {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
};

struct Summary {
  std::optional<std::string_view> architecture;
  std::optional<std::uint64_t> n_vocab;
  std::uint64_t parameters = 0;
  std::map<quant::BlockType, TypeTotals> types;
};

Status print_and_clear(std::string& text) {
  const Status printed = print(text);
  text.clear();
  return printed;
}

// Whether a file begins as archives do.
Result<bool> is_archive(const base::ReadFile& file) {
  std::array<char, kArchiveMagic.size()> beginning{};
  if (file.size() < beginning.size()) return false;
  KVASIR_TRY(file.read_at(0, std::as_writable_bytes(std::span(beginning))));
  return std::string_view(beginning.data(), beginning.size()) == kArchiveMagic;
}

std::optional<std::uint64_t> vocabulary_size(const gguf::File& file,
                                             std::optional<std::string_view> architecture) {
  const Value* tokens = file.find("tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->is_array()) return tokens->size();
  if (architecture) {
    if (const auto size = file.get_uint(std::string(*architecture) + ".vocab_size")) return *size;
  }
  const gguf::Tensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding != nullptr && embedding->dims.size() > 1) return embedding->dims[1];
  return std::nullopt;
}

Summary summarize(const gguf::File& file) {
  Summary summary;
  if (const auto architecture = file.get_string("general.architecture")) summary.architecture = *architecture;
  summary.n_vocab = vocabulary_size(file, summary.architecture);
  for (const gguf::Tensor& tensor : file.tensors()) {
    TypeTotals& totals = summary.types[tensor.type];
    totals.tensors += 1;
    totals.parameters += tensor.elements();
    totals.bytes += tensor.bytes;
    summary.parameters += tensor.elements();
  }
  return summary;
}

// Reads a whole tensor and counts its values that are not finite; types without floats are only read.
Result<std::uint64_t> check_tensor(const gguf::File& file, const gguf::Tensor& tensor,
                                   std::vector<std::byte>& bytes, std::vector<float>& values) {
  const quant::BlockTypeInfo& type = quant::block_type_info(tensor.type);
  const std::uint64_t chunk_bytes = kChunkValues / type.values * type.bytes;
  std::uint64_t non_finite = 0;
  for (std::uint64_t offset = 0; offset < tensor.bytes; offset += chunk_bytes) {
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    bytes.resize(std::min(chunk_bytes, tensor.bytes - offset));
    KVASIR_TRY(file.read(tensor, offset, bytes));
    if (!type.unpacks) continue;
    values.resize(bytes.size() / type.bytes * type.values);
    KVASIR_TRY(quant::unpack(tensor.type, bytes, values));
    non_finite += static_cast<std::uint64_t>(
        std::ranges::count_if(values, [](float value) { return !std::isfinite(value); }));
  }
  return non_finite;
}

Result<Findings> check_data(const gguf::File& file) {
  Findings findings;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  for (const gguf::Tensor& tensor : file.tensors()) {
    KVASIR_ASSIGN(const std::uint64_t non_finite, check_tensor(file, tensor, bytes, values));
    findings.non_finite.push_back(non_finite);
    findings.all_non_finite += non_finite;
  }
  return findings;
}

// "string", or "int32[5]" of an array.
std::string type_text(const Value& value) {
  if (!value.is_array()) return std::string(value_type_name(value.type()));
  return fmt::format("{}[{}]", value_type_name(value.element_type()), value.size());
}

std::string element_text(const Value& value, std::uint64_t index);

std::string value_text(const Value& value) {
  if (!value.is_array()) return element_text(value, 0);
  std::string text = "[";
  const std::uint64_t shown = std::min(value.size(), kShownElements);
  for (std::uint64_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + element_text(value, i);
  return text + (shown < value.size() ? ", ...]" : "]");
}

std::string element_text(const Value& value, std::uint64_t index) {
  if (const Value* array = value.array_at(index)) return value_text(*array);
  if (const auto text = value.string_at(index)) return "\"" + base::printable(*text, kShownTextBytes) + "\"";
  if (const auto truth = value.bool_at(index)) return *truth ? "true" : "false";
  if (const auto number = value.int_at(index)) return std::to_string(*number);
  if (const auto number = value.uint_at(index)) return std::to_string(*number);
  const double number = value.float_at(index).value_or(0);
  return value.element_type() == ValueType::kFloat32 ? fmt::format("{}", static_cast<float>(number))
                                                     : fmt::format("{}", number);
}

std::string dims_text(const gguf::Tensor& tensor) {
  std::string text;
  for (const std::uint64_t dim : tensor.dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

Status print_metadata(const gguf::File& file) {
  std::string text = fmt::format("metadata: {} keys\n", file.metadata().size());
  for (const gguf::KeyValue& entry : file.metadata()) {
    text += fmt::format("  {} ({}): {}\n", base::printable(entry.key, kShownTextBytes),
                        type_text(entry.value), value_text(entry.value));
    KVASIR_TRY(print_and_clear(text));
  }
  return print_and_clear(text);
}

Status print_tensors(const gguf::File& file, const Findings& findings) {
  std::string text = fmt::format("tensors: {}\n", file.tensors().size());
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const gguf::Tensor& tensor = file.tensors()[i];
    text +=
        fmt::format("  {}: {} {}, {} bytes at {}", base::printable(tensor.name, kShownTextBytes),
                    quant::block_type_info(tensor.type).name, dims_text(tensor), tensor.bytes, tensor.offset);
    if (file.shard_count() > 1) text += fmt::format(" of shard {}", tensor.shard + 1);
    if (findings.non_finite[i] > 0) text += fmt::format(", {} values not finite", findings.non_finite[i]);
    text += '\n';
    KVASIR_TRY(print_and_clear(text));
  }
  return print_and_clear(text);
}

Status print_text(const gguf::File& file, const Findings& findings) {
  const Summary summary = summarize(file);
  std::string text =
      fmt::format("GGUF version {}, {} {}, alignment {}, {} bytes\n", file.version(), file.shard_count(),
                  file.shard_count() == 1 ? "file" : "shards", file.alignment(), file.size_bytes());
  text += fmt::format("architecture: {}\n", summary.architecture
                                                ? base::printable(*summary.architecture, kShownTextBytes)
                                                : "not given");
  text += fmt::format("n_vocab: {}\n", summary.n_vocab ? std::to_string(*summary.n_vocab) : "not given");
  text += fmt::format("parameters: {}\n", summary.parameters);
  for (const auto& [type, totals] : summary.types) {
    text += fmt::format("  {}: {} in {} tensors, {} bytes\n", quant::block_type_info(type).name,
                        totals.parameters, totals.tensors, totals.bytes);
  }
  text += fmt::format("checked: all data of {} tensors was read, {} values are not finite\n",
                      file.tensors().size(), findings.all_non_finite);
  KVASIR_TRY(print_and_clear(text));
  KVASIR_TRY(print_metadata(file));
  return print_tensors(file, findings);
}

void write_value(JsonWriter& json, const Value& value);

void write_element(JsonWriter& json, const Value& value, std::uint64_t index) {
  if (const Value* array = value.array_at(index)) return write_value(json, *array);
  if (const auto text = value.string_at(index)) return (void)json.value(*text);
  if (const auto truth = value.bool_at(index)) return (void)json.value(*truth);
  if (const auto number = value.int_at(index)) return (void)json.value(*number);
  if (const auto number = value.uint_at(index)) return (void)json.value(*number);
  const double number = value.float_at(index).value_or(0);
  if (value.element_type() == ValueType::kFloat32) return (void)json.value(static_cast<float>(number));
  json.value(number);
}

// A long array is an object of its type, its length and its first elements.
void write_value(JsonWriter& json, const Value& value) {
  if (!value.is_array()) return write_element(json, value, 0);
  const bool whole = value.size() <= kWholeElements;
  if (!whole) {
    json.begin_object().member("type", value_type_name(value.element_type())).member("length", value.size());
    json.key("first");
  }
  json.begin_array();
  for (std::uint64_t i = 0; i < (whole ? value.size() : kShownElements); ++i) write_element(json, value, i);
  json.end_array();
  if (!whole) json.end_object();
}

void write_summary(JsonWriter& json, const gguf::File& file, const Findings& findings) {
  const Summary summary = summarize(file);
  json.member("format", "gguf").member("version", file.version());
  json.key("architecture");
  summary.architecture ? json.value(*summary.architecture) : json.null();
  json.key("n_vocab");
  summary.n_vocab ? json.value(*summary.n_vocab) : json.null();
  json.member("parameters", summary.parameters).member("size_bytes", file.size_bytes());
  json.member("alignment", file.alignment()).member("shards", file.shard_count());
  json.member("non_finite", findings.all_non_finite);
  json.key("types").begin_object();
  for (const auto& [type, totals] : summary.types) {
    json.key(quant::block_type_info(type).name).begin_object();
    json.member("tensors", totals.tensors)
        .member("parameters", totals.parameters)
        .member("bytes", totals.bytes);
    json.end_object();
  }
  json.end_object();
}

void write_tensor(JsonWriter& json, const gguf::Tensor& tensor, std::uint64_t non_finite) {
  json.begin_object().member("name", tensor.name).member("type", quant::block_type_info(tensor.type).name);
  json.key("dims").begin_array();
  for (const std::uint64_t dim : tensor.dims) json.value(dim);
  json.end_array();
  json.member("shard", tensor.shard).member("offset", tensor.offset).member("bytes", tensor.bytes);
  json.member("non_finite", non_finite).end_object();
}

Status print_json(const gguf::File& file, const Findings& findings) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  write_summary(json, file, findings);
  json.key("metadata").begin_object();
  for (const gguf::KeyValue& entry : file.metadata()) {
    json.key(entry.key);
    write_value(json, entry.value);
    KVASIR_TRY(print_and_clear(text));
  }
  json.end_object().key("tensors").begin_array();
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    write_tensor(json, file.tensors()[i], findings.non_finite[i]);
    KVASIR_TRY(print_and_clear(text));
  }
  json.end_array().end_object();
  text += '\n';
  return print_and_clear(text);
}

Status inspect_model(const gguf::File& file, bool as_json) {
  KVASIR_ASSIGN(const Findings findings, check_data(file));
  return as_json ? print_json(file, findings) : print_text(file, findings);
}

Status inspect(const std::string& path, bool as_json) {
  if (path == "-") {
    KVASIR_ASSIGN(std::vector<std::byte> bytes, read_input(base::available_memory() / 2));
    std::unique_ptr<base::ReadFile> file = base::memory_file(std::move(bytes));
    KVASIR_ASSIGN(const bool archive, is_archive(*file));
    if (archive) return inspect_archive(std::move(file), as_json);
    std::vector<std::unique_ptr<base::ReadFile>> files;
    files.push_back(std::move(file));
    KVASIR_ASSIGN(const gguf::File model, gguf::File::parse(std::move(files)));
    return inspect_model(model, as_json);
  }
  watch_interrupts();
  KVASIR_ASSIGN(std::unique_ptr<base::ReadFile> file, base::system_files().open_read(path));
  KVASIR_ASSIGN(const bool archive, is_archive(*file));
  if (archive) return inspect_archive(std::move(file), as_json);
  KVASIR_ASSIGN(const gguf::File model, gguf::File::open(base::system_files(), path));
  return inspect_model(model, as_json);
}

struct Options {
  std::string path;
  bool json = false;
};

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      program.add_subcommand("inspect", "Show what a GGUF file or an archive holds, and check it whole");
  verb->add_option("file", options->path,
                   "A GGUF file, any shard of a split, an archive, or - for standard input")
      ->required();
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback(
      [options, &action] { action = [options] { return inspect(options->path, options->json); }; });
}

}  // namespace kvasir::cli
