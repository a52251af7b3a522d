#include "scheduler/cache/scheduler_cache.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/cache/filter.h"
#include "test/scheduler/cache/counted_resource.h"

namespace qrm::scheduler::scheduler_cache_test {
namespace {

using test::CountedHandles;
using test::kCountedObjects;
using test::MakeObject;
using test::MakePod;

void FillNode(ClusterCache& cache, int capacity, int pods) {
  cache.ReplaceNodes({{.name = "n1"}}, "1");
  cache.ReplaceObjects(kCountedObjects, {MakeObject("status", "n1", capacity)}, "1");
  std::vector<Pod> waiting;
  waiting.reserve(static_cast<std::size_t>(pods));
  for (int i = 0; i < pods; ++i) {
    waiting.push_back(MakePod(std::to_string(i), 1));
  }
  cache.ReplacePods({.pods = waiting, .version = "1"});
}

TEST(SchedulerCacheTest, BindsExactlyAsManyAsThereIsRoomFor) {
  constexpr int kRoom = 20;
  constexpr int kThreads = 8;
  constexpr int kPerThread = 10;
  const HandleRegistry handles = CountedHandles();
  const auto cache = *SchedulerCache::Make(handles);
  cache->Run([](ClusterCache& writer) { FillNode(writer, kRoom, kThreads * kPerThread); });

  std::atomic<int> bound = 0;
  std::vector<std::thread> binders;
  binders.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    binders.emplace_back([&, thread] {
      for (int i = 0; i < kPerThread; ++i) {
        bound += cache->Assume(std::to_string(thread * kPerThread + i), "n1").ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& binder : binders) {
    binder.join();
  }
  EXPECT_EQ(bound, kRoom);
  EXPECT_EQ(test::AvailableIn(cache->Dump(), "n1"), 0);
}

TEST(SchedulerCacheTest, AVersionIsWaitedForUntilTheDeadline) {
  using Clock = std::chrono::steady_clock;
  const HandleRegistry handles = CountedHandles();
  const auto cache = *SchedulerCache::Make(handles);
  EXPECT_FALSE(cache->AwaitVersion(kPods, "5", Clock::now()));
  cache->Post([](ClusterCache& writer) { writer.Reach(kPods, "5"); });
  EXPECT_TRUE(cache->AwaitVersion(kPods, "5", Clock::now() + std::chrono::seconds(10)));
  EXPECT_FALSE(cache->AwaitVersion(kPods, "6", Clock::now()));
}

TEST(SchedulerCacheTest, ASnapshotHasAllOfAChangeOrNothingOfIt) {
  const HandleRegistry handles = CountedHandles();
  const auto cache = *SchedulerCache::Make(handles);
  cache->Run([](ClusterCache& writer) { FillNode(writer, 10, 0); });
  const std::shared_ptr<const Snapshot> first = cache->Load();
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; i < 500; ++i) {  // one pod of ten leaves, another comes
      cache->Post([i](ClusterCache& all) {
        const std::string version = std::to_string(2 + i);
        all.ReplacePods({.pods = {MakePod(version, 10, "n1")}, .version = version});
      });
    }
    stop = true;
  });
  while (!stop) {
    const SnapshotPtr snapshot = cache->Load();
    ASSERT_NE(snapshot->Find("n1"), nullptr);
    const bool has_room = snapshot->versions.at(kPods) == "1";
    EXPECT_EQ(RefusalOf(*snapshot, handles, MakePod("x", 1), "n1").empty(), has_room);
  }
  writer.join();
  EXPECT_EQ(RefusalOf(*first, handles, MakePod("x", 1), "n1"), "");
}

TEST(SchedulerCacheTest, WhatWasPostedIsVisibleAfterRun) {
  const HandleRegistry handles = CountedHandles();
  const auto cache = *SchedulerCache::Make(handles);
  cache->Post([](ClusterCache& writer) { FillNode(writer, 10, 0); });
  cache->Run([](ClusterCache&) {});
  EXPECT_NE(cache->Load()->Find("n1"), nullptr);
}

}  // namespace
}  // namespace qrm::scheduler::scheduler_cache_test
