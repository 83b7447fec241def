// Any bytes as a GGUF file: refused with a sentence, or read as a whole and consistent with itself.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/utf8.h"
#include "gguf/gguf.h"

namespace {

using kvasir::gguf::File;
using kvasir::gguf::Tensor;
using kvasir::gguf::Value;

// What must hold, or the fuzzer has found something.
void require(bool holds) {
  if (!holds) std::abort();
}

// Goes over every element by every accessor: exactly those of its type answer.
void visit(const Value& value) {
  for (std::uint64_t i = 0; i < value.size(); ++i) {
    if (const Value* array = value.array_at(i)) visit(*array);
    const bool number = value.float_at(i).has_value();
    require(number || (!value.int_at(i) && !value.uint_at(i)));
    const int kinds = (number ? 1 : 0) + (value.bool_at(i) ? 1 : 0) + (value.string_at(i) ? 1 : 0) +
                      (value.array_at(i) != nullptr ? 1 : 0);
    require(kinds == 1);
  }
  require(!value.float_at(value.size()) && !value.string_at(value.size()) && !value.bool_at(value.size()));
}

void visit(const File& file) {
  for (const kvasir::gguf::KeyValue& entry : file.metadata()) {
    require(file.find(entry.key) == &entry.value);
    visit(entry.value);
    (void)file.get_uint(entry.key);
    (void)file.get_float_array(entry.key);
    (void)file.get_string_array(entry.key);
  }
  std::vector<std::byte> bytes;
  for (const Tensor& tensor : file.tensors()) {
    require(file.find_tensor(tensor.name) == &tensor && tensor.elements() > 0);
    bytes.resize(tensor.bytes);
    require(file.read(tensor, 0, bytes).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::unique_ptr<kvasir::base::ReadFile>> files;
  files.push_back(kvasir::base::memory_file({bytes.begin(), bytes.end()}));
  const auto file = File::parse(std::move(files));
  if (file) {
    visit(*file);
  } else {
    require(!file.error().message().empty() && kvasir::base::is_utf8(file.error().message()));
  }
  return 0;
}
