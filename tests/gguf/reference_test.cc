// Files that other programs wrote: what is read and written again is the same, byte for byte.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/try.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "raw_gguf.h"
#include "support/paths.h"

namespace kvasir::gguf::test {
namespace {

constexpr std::size_t kChunk = 1 << 16;

Status copy_tensor(const File& from, const Tensor& tensor, Writer& into) {
  Bytes chunk;
  for (std::uint64_t offset = 0; offset < tensor.bytes; offset += chunk.size()) {
    chunk.resize(std::min<std::uint64_t>(kChunk, tensor.bytes - offset));
    KVASIR_TRY(from.read(tensor, offset, chunk));
    KVASIR_TRY(into.write(chunk));
  }
  return {};
}

Status copy(const std::string& from, const std::string& to) {
  KVASIR_ASSIGN(const File file, File::open(base::system_files(), from));
  Writer writer;
  for (const KeyValue& entry : file.metadata()) KVASIR_TRY(writer.add(entry.key, entry.value));
  for (const Tensor& tensor : file.tensors())
    KVASIR_TRY(writer.add_tensor(tensor.name, tensor.type, tensor.dims));
  KVASIR_ASSIGN(std::unique_ptr<base::ReplacingFile> target, base::system_files().replace(to));
  KVASIR_TRY(writer.begin(std::move(target)));
  for (const Tensor& tensor : file.tensors()) KVASIR_TRY(copy_tensor(file, tensor, writer));
  return writer.commit();
}

// Some writers leave out the padding behind metadata that no tensor follows.
bool same_but_for_padding(const Bytes& original, const Bytes& again) {
  if (again.size() < original.size() || again.size() - original.size() >= kDefaultAlignment) return false;
  const auto rest = again.begin() + static_cast<std::ptrdiff_t>(original.size());
  return std::equal(original.begin(), original.end(), again.begin()) &&
         std::all_of(rest, again.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

void expect_copies_identical(const std::string& folder) {
  const std::string to = kvasir::test::scratch_directory() + "/copy.gguf";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    ++files;
    const Status copied = copy(entry.path().string(), to);
    ASSERT_TRUE(copied) << entry.path() << ": " << copied.error().message();
    const auto original =
        base::read_whole(base::system_files(), entry.path().string(), std::uint64_t{1} << 30);
    const auto again = base::read_whole(base::system_files(), to, std::uint64_t{1} << 30);
    ASSERT_TRUE(original && again);
    EXPECT_TRUE(same_but_for_padding(*original, *again)) << entry.path();
  }
  EXPECT_GT(files, 0U);
}

TEST(GgufReference, ModelsComeOutOfTheWriterAsTheyWentIn) {
  KVASIR_NEEDS_REFERENCE(models, "models");
  expect_copies_identical(models);
}

TEST(GgufReference, VocabulariesComeOutOfTheWriterAsTheyWentIn) {
  KVASIR_NEEDS_REFERENCE(vocabularies, "vocabs");
  expect_copies_identical(vocabularies);
}

}  // namespace
}  // namespace kvasir::gguf::test
