// Archives through the public API: where bytes go and come from, and handles for what comes back.

#include <utility>

#include "api/parts.h"
#include "archive/store.h"
#include "archive/stream.h"
#include "base/file.h"
#include "base/try.h"
#include "base/within_memory.h"
#include "kvasir/archive.h"
#include "kvasir/conversation.h"
#include "kvasir/executor.h"

namespace kvasir {

using api::in_public_words;
using api::Used;

namespace {

// A path for the operating system.
Status check_path(const std::string& path) {
  if (path.find('\0') == std::string::npos) return {};
  return fail(Outcome::kInvalidArgument, "a path cannot hold a byte of zero");
}

Result<std::unique_ptr<archive::Sink>> sink_of(const std::string& path) {
  KVASIR_TRY(check_path(path));
  return archive::file_sink(base::system_files(), path);
}

Result<std::unique_ptr<archive::Sink>> sink_of(const WriteBytes& write) {
  if (!write) return fail(Outcome::kInvalidArgument, "there is no function to take the archive");
  return archive::callback_sink(write);
}

Result<std::unique_ptr<archive::Source>> source_of(const std::string& path) {
  KVASIR_TRY(check_path(path));
  KVASIR_ASSIGN(auto file, base::system_files().open_read(path));
  return archive::file_source(std::move(file));
}

Result<std::unique_ptr<archive::Source>> source_of(const ReadBytes& read) {
  if (!read) return fail(Outcome::kInvalidArgument, "there is no function to read the archive");
  return archive::callback_source(read);
}

// An answer of the engine in public words. That something is not there may be said of where bytes go and come
// from, too: of the conversation only where that is closed.
Result<ArchiveReport> in_words(const engine::Executor& executor, std::optional<ConversationId> id,
                               Result<ArchiveReport> answer) {
  const bool not_there = !answer && answer.error().code() == Outcome::kNotFound;
  const bool open =
      !id || executor.look([&](const engine::Engine& engine) { return engine.peek(*id) != nullptr; });
  return not_there && open ? answer : in_public_words(std::move(answer));
}

// Every save and load: `open` answers the sink or source.
template <class Open>
Result<ArchiveReport> save_to(engine::Executor& executor, std::optional<ConversationId> only,
                              const Open& open, const SaveOptions& options) {
  KVASIR_ASSIGN(const std::unique_ptr<archive::Sink> sink, open());
  return in_words(executor, only, executor.save(only, *sink, options));
}

Result<ArchiveReport> save_over(engine::Executor& executor, std::optional<ConversationId> only,
                                std::vector<std::byte>& bytes, const SaveOptions& options) {
  const auto sink = archive::memory_sink(bytes);
  return in_public_words(executor.save(only, *sink, options));
}

Result<std::vector<std::byte>> save_to_new_memory(engine::Executor& executor,
                                                  std::optional<ConversationId> only,
                                                  const SaveOptions& options) {
  std::vector<std::byte> bytes;
  KVASIR_TRY(save_over(executor, only, bytes, options));
  return bytes;
}

template <class Open>
Result<ArchiveReport> load_into(const Used& used, const Open& open, const LoadOptions& options) {
  KVASIR_ASSIGN(const std::unique_ptr<archive::Source> source, open());
  return in_words(used.executor(), used.id, used.executor().load(*source, {.into = used.id}, options));
}

}  // namespace

// Handles are made before anything shows, and named when it does.
template <class Open>
Result<Loaded> Executor::load_all(const Open& open, const LoadOptions& options) {
  return base::within_memory([&]() -> Result<Loaded> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    KVASIR_ASSIGN(const std::unique_ptr<archive::Source> source, open());
    Loaded loaded;
    std::vector<ConversationId> saved_as;
    std::vector<Conversation::Handle::Unnamed> unnamed;
    engine::LoadTarget target;
    target.prepare = [&](std::span<const engine::SavedConversation> saved) -> Status {
      return base::within_memory([&]() -> Status {
        loaded.conversations.reserve(saved.size());
        for (const engine::SavedConversation& one : saved) {
          unnamed.emplace_back(core);
          saved_as.push_back(one.id);
        }
        return {};
      });
    };
    target.loaded = [&](std::span<const ConversationId> ids) {
      for (std::size_t i = 0; i < ids.size(); ++i)
        loaded.conversations.push_back({saved_as[i], std::move(unnamed[i]).named(ids[i])});
    };
    KVASIR_ASSIGN(loaded.report,
                  in_words(*core->executor, {}, core->executor->load(*source, target, options)));
    return loaded;
  });
}

Result<ArchiveReport> Conversation::save(const std::string& path, const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return save_to(used.executor(), used.id, [&] { return sink_of(path); }, options);
  });
}

Result<ArchiveReport> Conversation::save(const WriteBytes& write, const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return save_to(used.executor(), used.id, [&] { return sink_of(write); }, options);
  });
}

Result<ArchiveReport> Conversation::save(ArchiveStore& store, const std::string& name,
                                         const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(store));
    return save_to(used.executor(), used.id, [&] { return behind->write(name); }, options);
  });
}

Result<ArchiveReport> Conversation::save(std::vector<std::byte>& bytes, const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return save_over(used.executor(), used.id, bytes, options);
  });
}

Result<std::vector<std::byte>> Conversation::save_bytes(const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<std::vector<std::byte>> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return save_to_new_memory(used.executor(), used.id, options);
  });
}

Result<ArchiveReport> Conversation::load(const std::string& path, const LoadOptions& options) {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return load_into(used, [&] { return source_of(path); }, options);
  });
}

Result<ArchiveReport> Conversation::load(const ReadBytes& read, const LoadOptions& options) {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    return load_into(used, [&] { return source_of(read); }, options);
  });
}

Result<ArchiveReport> Conversation::load(ArchiveStore& store, const std::string& name,
                                         const LoadOptions& options) {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(store));
    return load_into(used, [&] { return behind->read(name); }, options);
  });
}

Result<ArchiveReport> Conversation::load(std::span<const std::byte> bytes, const LoadOptions& options) {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const Used used, Handle::use(handle_));
    const auto source = archive::memory_source(bytes);
    return in_public_words(used.executor().load(*source, {.into = used.id}, options));
  });
}

Result<ArchiveReport> Executor::save(const std::string& path, const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return save_to(*core->executor, {}, [&] { return sink_of(path); }, options);
  });
}

Result<ArchiveReport> Executor::save(const WriteBytes& write, const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return save_to(*core->executor, {}, [&] { return sink_of(write); }, options);
  });
}

Result<ArchiveReport> Executor::save(ArchiveStore& store, const std::string& name,
                                     const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(store));
    return save_to(*core->executor, {}, [&] { return behind->write(name); }, options);
  });
}

Result<ArchiveReport> Executor::save(std::vector<std::byte>& bytes, const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<ArchiveReport> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return save_over(*core->executor, {}, bytes, options);
  });
}

Result<std::vector<std::byte>> Executor::save_bytes(const SaveOptions& options) const {
  return base::within_memory([&]() -> Result<std::vector<std::byte>> {
    KVASIR_ASSIGN(const std::shared_ptr<api::Core> core, this->core());
    return save_to_new_memory(*core->executor, {}, options);
  });
}

Result<Loaded> Executor::load(const std::string& path, const LoadOptions& options) {
  return load_all([&] { return source_of(path); }, options);
}

Result<Loaded> Executor::load(const ReadBytes& read, const LoadOptions& options) {
  return load_all([&] { return source_of(read); }, options);
}

Result<Loaded> Executor::load(ArchiveStore& store, const std::string& name, const LoadOptions& options) {
  return load_all(
      [&]() -> Result<std::unique_ptr<archive::Source>> {
        KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(store));
        return behind->read(name);
      },
      options);
}

Result<Loaded> Executor::load(std::span<const std::byte> bytes, const LoadOptions& options) {
  return load_all([&]() -> Result<std::unique_ptr<archive::Source>> { return archive::memory_source(bytes); },
                  options);
}

ArchiveStore::ArchiveStore(std::unique_ptr<archive::Store> store) noexcept : store_(std::move(store)) {}
ArchiveStore::ArchiveStore(ArchiveStore&&) noexcept = default;
ArchiveStore& ArchiveStore::operator=(ArchiveStore&&) noexcept = default;
ArchiveStore::~ArchiveStore() = default;

Result<archive::Store*> api::Inside::store(const ArchiveStore& store) {
  if (store.store_ != nullptr) return store.store_.get();
  return fail(Outcome::kWrongState, "this store was moved away; call what it was moved to");
}

Result<ArchiveStore> ArchiveStore::in_directory(const std::string& path) {
  return base::within_memory([&]() -> Result<ArchiveStore> {
    KVASIR_TRY(check_path(path));
    if (path.empty()) return fail(Outcome::kInvalidArgument, "a store of archives needs a directory");
    auto store = archive::directory_store(base::system_files(), path);
    KVASIR_TRY(store->list());  // whether it is there
    return ArchiveStore(std::move(store));
  });
}

Result<ArchiveStore> ArchiveStore::in_memory() {
  return base::within_memory([&]() -> Result<ArchiveStore> { return ArchiveStore(archive::memory_store()); });
}

Result<std::vector<std::byte>> ArchiveStore::read(const std::string& name) const {
  return base::within_memory([&]() -> Result<std::vector<std::byte>> {
    KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(*this));
    KVASIR_ASSIGN(const std::unique_ptr<archive::Source> source, behind->read(name));
    std::vector<std::byte> bytes(source->left().value_or(0));
    KVASIR_TRY(source->read(bytes));
    return bytes;
  });
}

Status ArchiveStore::write(const std::string& name, std::span<const std::byte> bytes) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(*this));
    KVASIR_ASSIGN(const std::unique_ptr<archive::Sink> sink, behind->write(name));
    KVASIR_TRY(sink->write(bytes));
    return sink->commit();
  });
}

Result<std::vector<std::string>> ArchiveStore::list() const {
  return base::within_memory([&]() -> Result<std::vector<std::string>> {
    KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(*this));
    return behind->list();
  });
}

Status ArchiveStore::remove(const std::string& name) {
  return base::within_memory([&]() -> Status {
    KVASIR_ASSIGN(archive::Store* const behind, api::Inside::store(*this));
    return behind->remove(name);
  });
}

}  // namespace kvasir
