// Tasks run in order, on one thread, all of them.
#include "api/base/task_thread.h"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace qrm {
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

TEST(TaskThreadTest, EndRunsWhatWasPosted) {
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
}  // namespace qrm
