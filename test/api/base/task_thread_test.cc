// Tasks run in order, one at a time, all of them.
#include "api/base/task_thread.h"

#include <algorithm>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace qrm::task_thread_test {
namespace {

TEST(TaskThreadTest, TasksOfOnePosterRunInOrder) {
  std::vector<int> ran;
  TaskThread thread;
  for (int i = 0; i < 100; ++i) {
    thread.Post([&ran, i] { ran.push_back(i); });
  }
  thread.Run([] {});
  ASSERT_EQ(ran.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(ran));
}

TEST(TaskThreadTest, TasksOfManyPostersRunOnOneThread) {
  std::set<std::thread::id> ids;
  int count = 0;
  TaskThread thread;
  std::vector<std::thread> posters;
  posters.reserve(4);
  for (int i = 0; i < 4; ++i) {
    posters.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        thread.Post([&] {
          ids.insert(std::this_thread::get_id());
          ++count;
        });
      }
    });
  }
  for (std::thread& poster : posters) {
    poster.join();
  }
  thread.Run([] {});
  EXPECT_EQ(count, 400);
  EXPECT_EQ(ids.size(), 1U);
}

TEST(TaskThreadTest, RunsTasksAtOnceOnTheCallersThreadWhileItIsIdle) {
  std::thread::id ran;
  TaskThread thread;
  thread.Dispatch([&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(TaskThreadTest, RunsTasksAfterTheCurrentTask) {
  std::vector<int> ran;
  std::promise<void> go;
  TaskThread thread;
  thread.Post([&] {
    go.get_future().wait();
    ran.push_back(1);
  });
  thread.Dispatch([&] { ran.push_back(2); });
  go.set_value();
  thread.Run([] {});
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST(TaskThreadTest, RunsOneTaskAtATimeFromAnyDispatcher) {
  int unguarded = 0;  // a sanitizer reports two at once
  TaskThread thread;
  std::vector<std::thread> dispatchers;
  dispatchers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    dispatchers.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        thread.Dispatch([&] { ++unguarded; });
      }
    });
  }
  for (std::thread& dispatcher : dispatchers) {
    dispatcher.join();
  }
  thread.Run([] {});
  EXPECT_EQ(unguarded, 4000);
}

TEST(TaskThreadTest, EndRunsPostedTasks) {
  int count = 0;
  {
    TaskThread thread;
    for (int i = 0; i < 100; ++i) {
      thread.Post([&] { ++count; });
    }
  }
  EXPECT_EQ(count, 100);
}

}  // namespace
}  // namespace qrm::task_thread_test
