#include "cli/bench_archives.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "archive/stream.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/try.h"
#include "cli/interrupt.h"
#include "engine/executor.h"

namespace kvasir::cli {
namespace {

using engine::ConversationId;
using engine::Engine;
using engine::Executor;

constexpr int kRepeats = 9;            // the best counts
constexpr int kFileRepeats = 3;        // the best counts
constexpr int kRounds = 4;             // of steps alone and meanwhile, alternating
constexpr int kSteps = 24;             // of a round, and as many meanwhile
constexpr std::uint64_t kOthers = 64;  // tokens that the other conversation begins with

double seconds_since(std::int64_t start) {
  return static_cast<double>(base::system_clock().now_ns() - start) * 1e-9;
}

// The best rate of several runs of what moves so many bytes.
template <class Move>
Result<double> best_rate(std::uint64_t bytes, int repeats, const Move& move) {
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
    KVASIR_ASSIGN(const double seconds, move());
    best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  return best;
}

class ArchiveBench {
 public:
  ArchiveBench(std::shared_ptr<Executor> executor, std::uint64_t depth)
      : executor_(std::move(executor)), depth_(depth) {}

  Result<ArchiveFigures> run(const std::string& directory) {
    KVASIR_ASSIGN(id_, open_at(depth_));
    KVASIR_ASSIGN(other_, open_at(kOthers));
    KVASIR_TRY(measure_memory());
    if (!directory.empty()) KVASIR_TRY(measure_files(directory));
    KVASIR_TRY(measure_others());
    return figures_;
  }

 private:
  Result<ConversationId> open_at(std::uint64_t tokens) {
    return executor_->change([&](Engine& engine) -> Result<ConversationId> {
      KVASIR_ASSIGN(const ConversationId id, engine.open());
      KVASIR_TRY(engine.fill(id, std::vector<Token>(tokens)));
      return id;
    });
  }

  // Seconds of a save, and of a load into the place of what was saved, which then has no cells.
  Result<double> save(archive::Sink& sink) {
    const std::int64_t start = base::system_clock().now_ns();
    KVASIR_TRY(executor_->save(id_, sink, {}));
    return seconds_since(start);
  }
  Result<double> load(archive::Source& source) {
    KVASIR_TRY(executor_->clear(id_));
    const std::int64_t start = base::system_clock().now_ns();
    KVASIR_TRY(executor_->load(source, {.into = id_, .prepare = {}, .loaded = {}}, {}));
    return seconds_since(start);
  }

  Status measure_memory() {
    const auto save_to_memory = [this]() -> Result<double> { return save(*archive::memory_sink(bytes_)); };
    KVASIR_TRY(save_to_memory());  // takes the memory that all others write over
    figures_.bytes = bytes_.size();
    KVASIR_ASSIGN(figures_.save, best_rate(figures_.bytes, kRepeats, save_to_memory));
    KVASIR_ASSIGN(figures_.load, best_rate(figures_.bytes, kRepeats,
                                           [this] { return load(*archive::memory_source(bytes_)); }));
    KVASIR_ASSIGN(base::Buffer copy, base::Buffer::allocate(bytes_.size()));
    KVASIR_ASSIGN(figures_.memcpy, best_rate(figures_.bytes, kRepeats, [&]() -> Result<double> {
                    const std::int64_t start = base::system_clock().now_ns();
                    std::memcpy(copy.data(), bytes_.data(), bytes_.size());
                    return seconds_since(start);
                  }));
    return measure_scattered();
  }

  // Another conversation holds every second cell of the pool. What is measured next lies side by side again.
  Status measure_scattered() {
    KVASIR_TRY(executor_->clear(id_));
    KVASIR_ASSIGN(const ConversationId filler, open_at(2 * depth_));
    std::vector<pages::EditOperation> holes;
    holes.reserve(depth_);
    for (std::uint64_t i = depth_; i-- > 0;)
      holes.push_back({pages::EditOperation::Kind::kRemove, 2 * i, 1, 0});
    KVASIR_TRY(executor_->change([&](Engine& engine) { return engine.edit(filler, holes); }));
    KVASIR_ASSIGN(figures_.load_scattered, best_rate(figures_.bytes, kRepeats, [this] {
                    return load(*archive::memory_source(bytes_));
                  }));
    KVASIR_TRY(executor_->change([&](Engine& engine) { return engine.close(filler); }));
    KVASIR_TRY(load(*archive::memory_source(bytes_)));
    return {};
  }

  // Nothing of what is read is left in memory from when it was written, and nothing is replaced by what is
  // written: to give back what an old file held takes its time, too.
  Status measure_files(const std::string& directory) {
    base::FileSystem& files = base::system_files();
    const std::string path = fmt::format("{}/kvasir-bench-{}.kvar", directory, ::getpid());
    const base::RemoveAtEnd removed(files, path);
    FileRates rates;
    const auto measure = [&](double& rate, const std::function<Result<double>()>& move) -> Status {
      KVASIR_ASSIGN(rate, best_rate(figures_.bytes, kFileRepeats, [&]() -> Result<double> {
                      base::forget_cached(path);
                      return move();
                    }));
      return {};
    };
    const auto write = [&](double& rate, const std::function<Result<double>()>& move) {
      return measure(rate, [&] {
        static_cast<void>(files.remove(path));  // there may be none
        return move();
      });
    };
    KVASIR_TRY(write(rates.write, [&] { return write_plainly(files, path); }));
    KVASIR_TRY(measure(rates.read, [&] { return read_plainly(files, path); }));
    KVASIR_TRY(write(rates.save, [&] { return save_to_file(files, path); }));
    KVASIR_TRY(measure(rates.load, [&] { return load_from_file(files, path); }));
    figures_.files = rates;
    return {};
  }

  Result<double> save_to_file(base::FileSystem& files, const std::string& path) {
    const std::int64_t start = base::system_clock().now_ns();
    KVASIR_ASSIGN(const auto sink, archive::file_sink(files, path));
    KVASIR_TRY(save(*sink));
    return seconds_since(start);
  }
  Result<double> load_from_file(base::FileSystem& files, const std::string& path) {
    KVASIR_ASSIGN(auto file, files.open_read(path));
    return load(*archive::file_source(std::move(file)));
  }
  Result<double> write_plainly(base::FileSystem& files, const std::string& path) {
    const std::int64_t start = base::system_clock().now_ns();
    KVASIR_ASSIGN(const auto file, files.replace(path));
    KVASIR_TRY(file->write(bytes_));
    KVASIR_TRY(file->commit());
    return seconds_since(start);
  }
  Result<double> read_plainly(base::FileSystem& files, const std::string& path) {
    const std::int64_t start = base::system_clock().now_ns();
    KVASIR_ASSIGN(const auto file, files.open_read(path));
    KVASIR_TRY(file->read_at(0, bytes_));
    return seconds_since(start);
  }

  // Seconds of some steps of the other conversation.
  Result<double> step_some() {
    double seconds = 0;
    for (int i = 0; i < kSteps; ++i) {
      if (interrupted()) return fail(Outcome::kCancelled, "interrupted");
      const Token token = 0;
      KVASIR_TRY(executor_->change(
          [&](Engine& engine) { return engine.prompt(other_, {&token, 1}, engine::LogitsWanted::kLast); }));
      const std::int64_t start = base::system_clock().now_ns();
      KVASIR_TRY(executor_->step({}));
      seconds += seconds_since(start);
    }
    return seconds;
  }

  // Saves again and again until it is told to stop.
  void save_until(const std::atomic<bool>& stops, Status& status) {
    std::vector<std::byte> bytes;
    SaveOptions options;
    options.progress = [&](const ArchiveProgress&) { return !stops.load(); };
    while (!stops.load()) {
      const auto saved = executor_->save(id_, *archive::memory_sink(bytes), options);
      if (saved || saved.error().code() == Outcome::kCancelled) continue;
      status = fail(saved.error());
      return;
    }
  }

  Status measure_others() {
    double alone = 0;
    double meanwhile = 0;
    for (int round = 0; round < kRounds; ++round) {
      KVASIR_ASSIGN(const double first, step_some());
      std::atomic<bool> stops{false};
      Status status;
      std::thread saver([&] { save_until(stops, status); });
      const Result<double> second = step_some();
      stops.store(true);
      saver.join();
      KVASIR_TRY(status);
      if (!second) return fail(second.error());
      alone += first;
      meanwhile += *second;
    }
    const double steps = kRounds * kSteps;
    figures_.step_microseconds = alone * 1e6 / steps;
    figures_.step_meanwhile_microseconds = meanwhile * 1e6 / steps;
    return {};
  }

  std::shared_ptr<Executor> executor_;
  std::uint64_t depth_;
  ConversationId id_{};
  ConversationId other_{};
  std::vector<std::byte> bytes_;
  ArchiveFigures figures_;
};

}  // namespace

Result<ArchiveFigures> measure_archives(const Session& session, const ModelFlags& flags, std::uint64_t depth,
                                        const std::string& directory) {
  engine::ExecutorSettings settings;
  settings.engine = session.options;
  settings.engine.logit_rows = 1;
  const std::uint64_t steps = std::uint64_t{2} * kRounds * kSteps;
  settings.engine.pool = 2 * depth + kOthers + steps + std::uint64_t{4} * flags.page_cells;
  // The session outlives what is made here.
  const std::shared_ptr<parallel::ThreadPool> pool(std::shared_ptr<void>(), session.pool.get());
  KVASIR_ASSIGN(std::shared_ptr<Executor> executor, Executor::create(session.model, pool, settings));
  return ArchiveBench(std::move(executor), depth).run(directory);
}

void append_archives(const ArchiveFigures& figures, std::uint64_t depth, std::string& text) {
  const auto out = std::back_inserter(text);
  const auto line = [&](const char* what, double rate, double ceiling, const char* of) {
    fmt::format_to(out, "{} at depth {}, one thread: {} bytes at {:.2f} GB/s, {:.0f} % of {} {:.2f} GB/s\n",
                   what, depth, figures.bytes, rate * 1e-9, rate / ceiling * 100, of, ceiling * 1e-9);
  };
  line("save to memory", figures.save, figures.memcpy, "memcpy's");
  line("load from memory", figures.load, figures.memcpy, "memcpy's");
  line("load into every second cell", figures.load_scattered, figures.load, "that into an empty pool's");
  if (figures.files) {
    line("save to a file", figures.files->save, figures.files->write, "a plain write's");
    line("load from a file", figures.files->load, figures.files->read, "a plain read's");
  }
  fmt::format_to(out, "a step of another conversation: {:.0f} us, while one is saved {:.0f} us ({:+.1f} %)\n",
                 figures.step_microseconds, figures.step_meanwhile_microseconds,
                 (figures.step_meanwhile_microseconds / figures.step_microseconds - 1) * 100);
}

void write_archives(const ArchiveFigures& figures, JsonWriter& json) {
  json.key("archives").begin_object().member("bytes", figures.bytes);
  json.member("save_bytes_per_second", figures.save).member("load_bytes_per_second", figures.load);
  json.member("load_scattered_bytes_per_second", figures.load_scattered);
  json.member("memcpy_bytes_per_second", figures.memcpy);
  if (figures.files) {
    json.key("files").begin_object();
    json.member("save_bytes_per_second", figures.files->save);
    json.member("load_bytes_per_second", figures.files->load);
    json.member("write_bytes_per_second", figures.files->write);
    json.member("read_bytes_per_second", figures.files->read).end_object();
  }
  json.member("step_us", figures.step_microseconds);
  json.member("step_meanwhile_us", figures.step_meanwhile_microseconds).end_object();
}

}  // namespace kvasir::cli
