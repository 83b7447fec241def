// Runs a fuzzer's entry point over files: what a fuzz build finds by search, every other build repeats as a
// test.
//
// usage: NAME_fuzz FILE-OR-FOLDER...; exit status 0 when every input returned, 2 for wrong usage, as when
// there is no input at all. A fault ends the process, after the name of its input was printed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs_of(int argc, char** argv) {
  std::vector<fs::path> inputs;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      inputs.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argv[i])) inputs.push_back(entry.path());
  }
  std::ranges::sort(inputs);
  return inputs;
}

int replay(const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs) {
    std::printf("%s\n", input.c_str());
    std::fflush(stdout);
    std::ifstream file(input, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot open '%s'\n", input.c_str());
      return 2;
    }
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<fs::path> inputs = inputs_of(argc, argv);
    if (inputs.empty()) {
      std::fprintf(stderr, "usage: %s FILE-OR-FOLDER...: no input was found\n", argv[0]);
      return 2;
    }
    return replay(inputs);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "an exception left the fuzzed code: %s\n", error.what());
    return 1;
  }
}
