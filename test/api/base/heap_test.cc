// The allocator of the programs: which memory it gives back, and which threads share a heap.
#include "api/base/heap.h"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/temp_dir.h"

#ifdef QRM_JEMALLOC
#include <jemalloc/jemalloc.h>

namespace qrm::heap_test {
namespace {

/// Resident memory that is not of files. Units: KiB.
long Anonymous() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == "RssAnon:") {
      long amount = 0;
      file >> amount;
      return amount;
    }
  }
  return 0;
}

unsigned ArenaOfThread() {
  unsigned arena = 0;
  std::size_t size = sizeof(arena);
  EXPECT_EQ(::mallctl("thread.arena", &arena, &size, nullptr, 0), 0);
  return arena;
}

TEST(HeapTest, GivesBackWhatLiesFree) {
  std::vector<std::unique_ptr<std::string>> texts;
  texts.reserve(16384);
  for (int i = 0; i < 16384; ++i) {
    texts.push_back(std::make_unique<std::string>(4000, 'x'));
  }
  const long held = Anonymous();
  texts.clear();
  GiveBackFreeMemory();
  EXPECT_LT(Anonymous(), held - 51200);
}

TEST(HeapTest, IsOneForAllThreadsButThoseThatWantOneApart) {
  const unsigned shared = ArenaOfThread();
  unsigned ordinary = 0;
  unsigned first = 0;
  unsigned second = 0;
  std::thread([&] { ordinary = ArenaOfThread(); }).join();
  std::thread([&] {
    EXPECT_TRUE(UseHeapApart());
    first = ArenaOfThread();
  }).join();
  std::thread([&] {
    EXPECT_TRUE(UseHeapApart());
    second = ArenaOfThread();
  }).join();
  EXPECT_EQ(ordinary, shared);
  EXPECT_NE(first, shared);
  EXPECT_NE(second, shared);
  EXPECT_NE(first, second);
}

// A program without this allocator would only be slow.
TEST(HeapTest, IsThatOfTheProgramsThatKeepContainers) {
  ASSERT_EQ(::setenv("MALLOC_CONF", "confirm_conf:true", 1), 0);
  for (const std::string program :
       {"qrmd", "qrm-plugin-cpu", "qrm-plugin-memory", "qrm-plugin-nic"}) {
    const test::TempDir dir;
    test::ChildProcess child({std::string(QRM_BIN) + "/" + program, "--help"}, dir / "output");
    EXPECT_EQ(child.Wait(), 0) << program << ": " << child.Output();
    EXPECT_THAT(child.Output(), testing::HasSubstr("\"narenas:1\"")) << program;
  }
  ::unsetenv("MALLOC_CONF");
}

}  // namespace
}  // namespace qrm::heap_test

#endif
