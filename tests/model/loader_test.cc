// Loading: progress, stopping, and every read and allocation that fails.

#include "model/loader.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "support/allocations.h"
#include "support/faults.h"
#include "support/tiny_model.h"

namespace kvasir::model {
namespace {

using kvasir::test::AllocationFault;
using kvasir::test::Fault;
using kvasir::test::FaultyReadFile;
using kvasir::test::FileOperation;
using kvasir::test::GgufDraft;
using kvasir::test::tiny_model;

std::vector<GgufDraft> drafts() {
  return {tiny_model({.biases = true}), tiny_model({.fused = true, .biases = true, .tied = true}),
          tiny_model({.experts = 3, .experts_used = 2, .rope_factors = std::vector<float>(8, 2)})};
}

TEST(Loading, ReportsHowFarItIsUpToAllBytes) {
  const auto pool = *parallel::ThreadPool::create(2);
  for (const GgufDraft& draft : drafts()) {
    const gguf::File file = draft.open();
    std::uint64_t total_bytes = 0;
    for (const gguf::Tensor& tensor : file.tensors()) total_bytes += tensor.bytes;
    std::uint64_t last = 0;
    std::uint64_t calls = 0;
    const auto model = Model::load(file, *pool, [&](std::uint64_t done, std::uint64_t total) {
      EXPECT_GE(done, last);
      EXPECT_EQ(total, total_bytes);
      last = done;
      ++calls;
      return true;
    });
    ASSERT_TRUE(model);
    EXPECT_GT(calls, 10U);
    EXPECT_EQ(last, total_bytes);
  }
}

TEST(Loading, CanBeStoppedAtEveryReport) {
  const auto pool = *parallel::ThreadPool::create(2);
  const gguf::File file = drafts()[0].open();
  for (std::uint64_t n = 0;; ++n) {
    std::uint64_t calls = 0;
    const auto model = Model::load(file, *pool, [&](std::uint64_t, std::uint64_t) { return calls++ != n; });
    if (model) {
      EXPECT_GT(n, 10U);
      return;
    }
    ASSERT_EQ(model.error().code(), Outcome::kCancelled);
    ASSERT_EQ(calls, n + 1) << "it stops at once";
  }
}

// The file whose reads meet the fault.
Result<gguf::File> open_with(const std::vector<std::byte>& bytes, const std::shared_ptr<Fault>& fault) {
  std::vector<std::unique_ptr<base::ReadFile>> shards;
  shards.push_back(std::make_unique<FaultyReadFile>(base::memory_file(bytes), fault));
  return gguf::File::parse(std::move(shards));
}

TEST(Loading, EveryReadThatFailsShowsAsIo) {
  const auto pool = *parallel::ThreadPool::create(2);
  for (const GgufDraft& draft : drafts()) {
    const auto bytes = draft.bytes();
    const auto none = std::make_shared<Fault>(FileOperation::kRead, UINT64_MAX);
    ASSERT_TRUE(open_with(bytes, none));
    const std::uint64_t opening = none->seen();
    for (std::uint64_t n = opening;; ++n) {
      const auto fault = std::make_shared<Fault>(FileOperation::kRead, n);
      const auto file = open_with(bytes, fault);
      ASSERT_TRUE(file);
      const auto model = Model::load(*file, *pool);
      if (model) {
        EXPECT_FALSE(fault->fired());
        EXPECT_GT(n - opening, 20U);
        break;
      }
      ASSERT_TRUE(fault->fired());
      ASSERT_EQ(model.error().code(), Outcome::kIo) << model.error().message();
      ASSERT_NE(model.error().message().find("tensor '"), std::string::npos)
          << "the tensor is not named: " << model.error().message();
    }
  }
}

class LoadingWithoutMemory : public testing::TestWithParam<AllocationFault::Lasting> {};

TEST_P(LoadingWithoutMemory, ShowsAsOutOfMemoryAndLeavesNothing) {
  const auto pool = *parallel::ThreadPool::create(1);
  for (const GgufDraft& draft : drafts()) {
    const gguf::File file = draft.open();
    for (std::uint64_t n = 0;; ++n) {
      const kvasir::test::AllocationMeter meter;
      bool fired = false;
      {
        const AllocationFault fault(n, GetParam());
        const auto model = Model::load(file, *pool);
        fired = fault.fired();
        ASSERT_NE(model.has_value(), fired) << "allocation " << n;
        if (fired) {
          ASSERT_EQ(model.error().code(), Outcome::kOutOfMemory) << model.error().message();
        }
      }
      ASSERT_LE(meter.now(), 0) << "allocation " << n;
      if (!fired) {
        EXPECT_GT(n, 50U);
        break;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, LoadingWithoutMemory,
                         testing::Values(AllocationFault::Lasting::kOnce,
                                         AllocationFault::Lasting::kFromThenOn),
                         [](const auto& instance) {
                           return instance.param == AllocationFault::Lasting::kOnce ? "Once" : "FromThenOn";
                         });

}  // namespace
}  // namespace kvasir::model
