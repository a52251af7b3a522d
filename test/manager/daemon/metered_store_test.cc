// The checkpoint's metrics.
#include "manager/daemon/metered_store.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include "test/checkpoint/sample_state.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::metered_store_test {
namespace {

using test::PutSample;
using test::TempDir;

TEST(MeteredStoreTest, CountsRepairsAtStartAndSince) {
  const TempDir dir = TempDir::InMemory();
  std::ofstream(dir / "checkpoint.db") << "another program's";
  Metrics metrics;

  const checkpoint::OpenedStore opened = MeterStore(test::OpenStore(dir.path()), metrics.store);
  EXPECT_EQ(metrics.store.repairs_total.Value(), 1);
  ASSERT_TRUE(opened.store->Commit(PutSample("a")).ok());
  EXPECT_EQ(metrics.store.repairs_total.Value(), 1);

  std::filesystem::remove(dir / "checkpoint.db");
  ASSERT_TRUE(opened.store->Commit(PutSample("b")).ok());
  EXPECT_GT(metrics.store.repairs_total.Value(), 1);
}

TEST(MeteredStoreTest, CountsWhatTheDiskRejects) {
  Metrics metrics;
  const checkpoint::OpenedStore opened = MeterStore(test::OpenStore("/proc/none"), metrics.store);
  EXPECT_FALSE(opened.store->Commit(PutSample("a")).ok());
  EXPECT_EQ(metrics.store.commit_errors_total.Value(), 1);
}

}  // namespace
}  // namespace qrm::manager::metered_store_test
