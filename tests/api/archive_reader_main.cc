// Takes an archive back in a process that knows nothing of the one that wrote it:
// archive_reader ARCHIVE PAGE_CELLS prints what each conversation goes on with, a line for each.

#include <cstdio>
#include <exception>
#include <string>

#include "api/api_run.h"
#include "api/future.h"

namespace {

using kvasir::test::must;

void read_back(const std::string& path, std::uint32_t page_cells) {
  kvasir::ExecutorOptions options = kvasir::test::options_of(4096, 64);
  options.page_cells = page_cells;
  kvasir::Executor executor = kvasir::test::make_executor(options);
  kvasir::Loaded loaded = must(executor.load(path));
  std::printf("%llu computed again\n", static_cast<unsigned long long>(loaded.report.tokens_recomputed));
  for (kvasir::LoadedConversation& each : loaded.conversations) {
    std::printf("%s\n", kvasir::test::printed(kvasir::test::future_of(each.conversation, 10)).c_str());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    read_back(arguments[1], static_cast<std::uint32_t>(std::stoul(arguments[2])));
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
