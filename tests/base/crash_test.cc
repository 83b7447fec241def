// A file that is replaced while the power fails: the calls that a replacement makes are written down, and for
// each of them it is asked what a disk would hold if that were the last, with all dropped that was not
// synced.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/paths.h"
#include "system_faults.h"

namespace kvasir::base {
namespace {

using test::CallRecord;
using Call = CallRecord::Call;

// A disk that keeps what was synced, and perhaps new names before that.
class Disk {
 public:
  // Holds one file, synced.
  Disk(const std::string& path, const std::string& content)
      : contents_{{content, content}}, names_{{path, 0}}, synced_names_(names_) {}

  void perform(const Call& call) {
    switch (call.kind) {
      case Call::Kind::kOpen:
        if (call.directory) {
          directories_[call.descriptor] = true;
        } else if (call.nameless) {
          directories_.erase(call.descriptor);
          open_[call.descriptor] = contents_.size();
          contents_.emplace_back();
        } else {
          directories_.erase(call.descriptor);
          if (!names_.contains(call.path)) {
            names_[call.path] = contents_.size();
            contents_.emplace_back();
          }
          open_[call.descriptor] = names_[call.path];
        }
        break;
      case Call::Kind::kWrite: {
        std::string& now = contents_[open_.at(call.descriptor)].now;
        if (now.size() < call.offset + call.bytes.size()) now.resize(call.offset + call.bytes.size());
        now.replace(call.offset, call.bytes.size(), call.bytes);
        break;
      }
      case Call::Kind::kSync:
        if (directories_.contains(call.descriptor)) {
          synced_names_ = names_;
        } else {
          Content& content = contents_[open_.at(call.descriptor)];
          content.synced = content.now;
        }
        break;
      case Call::Kind::kLink:
        names_[call.to] = open_.at(call.descriptor);
        break;
      case Call::Kind::kRename:
        names_[call.to] = names_.at(call.path);
        names_.erase(call.path);
        break;
    }
  }

  // What a path holds after the power has failed: with the names that were synced, or with those of now.
  [[nodiscard]] std::string after_failure(const std::string& path, bool names_of_now) const {
    const auto& names = names_of_now ? names_ : synced_names_;
    const auto found = names.find(path);
    return found == names.end() ? "nothing" : contents_[found->second].synced;
  }

 private:
  struct Content {
    std::string now;
    std::string synced;
  };
  std::vector<Content> contents_;
  std::map<std::string, std::size_t> names_;
  std::map<std::string, std::size_t> synced_names_;
  std::map<int, std::size_t> open_;
  std::map<int, bool> directories_;
};

struct Replacement {
  std::string path;
  std::vector<Call> calls;
  std::string before;
  std::string after;
};

Replacement replace() {
  Replacement done{.path = test::scratch_directory() + "/file", .before = "the old content"};
  std::ofstream(done.path) << done.before;
  const CallRecord record;
  const auto file = *system_files().replace(done.path);
  for (int i = 0; i < 5; ++i) {
    const std::string part = "part " + std::to_string(i) + " of the new content; ";
    EXPECT_TRUE(file->write(std::as_bytes(std::span(part))).has_value());
    done.after += part;
  }
  EXPECT_TRUE(file->write_at(0, std::as_bytes(std::span(std::string_view("PART")))).has_value());
  done.after.replace(0, 4, "PART");
  EXPECT_TRUE(file->commit().has_value());
  done.calls = record.calls();
  return done;
}

// How often a failure of the power leaves neither the old content nor the new one.
std::size_t losses(const Replacement& done, const std::vector<Call>& calls) {
  std::size_t losses = 0;
  Disk disk(done.path, done.before);
  for (std::size_t n = 0; n <= calls.size(); ++n) {
    for (const bool names_of_now : {false, true}) {
      const std::string left = disk.after_failure(done.path, names_of_now);
      losses += left != done.before && left != done.after ? 1 : 0;
    }
    if (n < calls.size()) disk.perform(calls[n]);
  }
  return losses;
}

// On file systems that know files without names, and on others.
void for_both_kinds(const std::function<void()>& test) {
  test();
  const test::NoNamelessFiles others;
  test();
}

// B1.
TEST(Crashes, LeaveTheOldFileOrTheNewOneWholeWhereverThePowerFails) {
  for_both_kinds([] {
    const Replacement done = replace();
    ASSERT_GE(done.calls.size(), 10U);
    EXPECT_EQ(losses(done, done.calls), 0U);
    Disk disk(done.path, done.before);
    for (const Call& call : done.calls) disk.perform(call);
    EXPECT_EQ(disk.after_failure(done.path, false), done.after) << "after commit() it stays";
  });
}

TEST(Crashes, WouldShowWithoutASync) {
  for_both_kinds([] {
    const Replacement done = replace();
    std::vector<Call> calls = done.calls;
    std::erase_if(calls, [](const Call& call) { return call.kind == Call::Kind::kSync; });
    EXPECT_GT(losses(done, calls), 0U);
  });
}

}  // namespace
}  // namespace kvasir::base
