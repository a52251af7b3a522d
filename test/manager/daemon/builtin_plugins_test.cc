// Which plugins are required by the names that the configuration gives.
#include "manager/daemon/builtin_plugins.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Required(const BuiltinOptions& options) {
  std::vector<BuiltinPlugin> builtins;
  for (const char* resource : {"cpu", "example.com/nic"}) {
    builtins.push_back({.resource = resource, .plugin = nullptr});
  }
  return RequiredResources(options, builtins);
}

TEST(RequiredResourcesTest, AreThoseOfTheBuiltInPluginsByDefault) {
  EXPECT_THAT(Required({}), ElementsAre("cpu", "example.com/nic"));
}

TEST(RequiredResourcesTest, AreThoseOfOthersWhereTheyAreNamed) {
  EXPECT_THAT(Required({.required = {"gpu", "builtin"}}),
              ElementsAre("gpu", "cpu", "example.com/nic"));
  EXPECT_THAT(Required({.required = {}}), ElementsAre());
}

}  // namespace
}  // namespace qrm::manager
