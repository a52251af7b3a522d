// What the SDK passes to plugins without a request of the manager.
#include "plugins/sdk/plugin.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace qrm::sdk::plugin_test {
namespace {

TEST(OnlineNumaNodesTest, AreTheKernelsList) {
  const test::TempDir sysfs;
  std::filesystem::create_directories(sysfs / "devices/system/node");
  std::ofstream(sysfs / "devices/system/node/online") << "0,2-3\n";
  EXPECT_EQ(OnlineNumaNodes(sysfs.path()), (NumaMask{0, 2, 3}));
}

TEST(OnlineNumaNodesTest, AreNodeZeroWithoutNuma) {
  const test::TempDir sysfs;
  EXPECT_EQ(OnlineNumaNodes(sysfs.path()), NumaMask{0});
}

}  // namespace
}  // namespace qrm::sdk::plugin_test
