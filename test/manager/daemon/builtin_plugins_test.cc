// Which plugins are required by the names that the configuration gives.
#include "manager/daemon/builtin_plugins.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/config/machine_config.h"
#include "topology/discovery.h"

namespace qrm::manager::builtin_plugins_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Required(const BuiltinOptions& options) {
  std::vector<BuiltinPlugin> builtins;
  for (const char* resource : {"cpu", "example.com/nic"}) {
    builtins.push_back({.resource = resource, .plugin = nullptr});
  }
  return RequiredResources(options, builtins);
}

TEST(NetnsAnnotationsTest, AreThatOfTheNicPluginAsItIsConfigured) {
  EXPECT_THAT(*NetnsAnnotations({}), ElementsAre("kubernetes.io/host-netns-path"));
  EXPECT_THAT(*NetnsAnnotations({.plugins = {"cpu"}}), ElementsAre());
  BuiltinOptions options;
  options.sections.emplace(
      "nic", *config::Section::Parse("names: {netns-annotation: example.com/netns}", "q.yaml"));
  EXPECT_THAT(*NetnsAnnotations(options), ElementsAre("example.com/netns"));
  BuiltinOptions mistaken;
  mistaken.sections.emplace("nic", *config::Section::Parse("names: {a: b}", "q.yaml"));
  EXPECT_FALSE(NetnsAnnotations(mistaken).ok());
}

TEST(RequiredResourcesTest, AreOfTheBuiltInPluginsByDefault) {
  EXPECT_THAT(Required({}), ElementsAre("cpu", "example.com/nic"));
}

TEST(RequiredResourcesTest, AreOfOtherPluginsWhereTheyAreNamed) {
  EXPECT_THAT(Required({.required = {"gpu", "builtin"}}),
              ElementsAre("gpu", "cpu", "example.com/nic"));
  EXPECT_THAT(Required({.required = {}}), ElementsAre());
}

BuiltinOptions WithPools(const std::string& keys) {
  BuiltinOptions options{.plugins = {"cpu"}};
  options.sections.emplace("cpu", *config::Section::Parse(keys, "cpu.yaml"));
  return options;
}

Machine FourCpus() {
  return *Discover(*MachineSource::Parse("synthetic:package:1 [numa] core:4 pu:1"));
}

TEST(ChangedPluginsTest, AreOfTheFormerPluginWhenItsKeysChange) {
  BuiltinOptions former = WithPools("pools: {a: {cpus: 0-1}}");
  former.plugins = {"cpu", "memory"};
  const auto resources = [&](const BuiltinOptions& next) {
    std::vector<std::string> made;
    const auto changed = MakeChangedPlugins(former, next, FourCpus());
    for (const BuiltinPlugin& plugin : *changed) {
      made.push_back(plugin.resource);
    }
    return made;
  };
  EXPECT_THAT(resources(WithPools("# the same\npools: {a: {cpus: 0-1}}")), ElementsAre());
  EXPECT_THAT(resources(WithPools("pools: {a: {cpus: 0-2}}")), ElementsAre("cpu"));
  EXPECT_THAT(resources({}), ElementsAre("cpu")) << "its section is gone";
}

TEST(ChangedPluginsTest, KeepTheAnnotationThatPermissionsAreAskedAbout) {
  const auto with_nic = [](const std::string& keys) {
    BuiltinOptions options{.plugins = {"nic"}};
    options.sections.emplace("nic", *config::Section::Parse(keys, "nic.yaml"));
    return options;
  };
  const auto made = MakeChangedPlugins(
      with_nic("follow: none"),
      with_nic("{follow: none, names: {netns-annotation: example.com/netns}}"), FourCpus());
  EXPECT_THAT(MessageOf(made.status()),
              ::testing::HasSubstr("from kubernetes.io/host-netns-path to example.com/netns"));
}

TEST(ChangedPluginsTest, ThatDoNotFitNameTheirLineInTheFile) {
  const auto made =
      MakeChangedPlugins(WithPools(""), WithPools("pools: {a: {cpus: 0-3}}"), FourCpus());
  EXPECT_THAT(MessageOf(made.status()), ::testing::StartsWith("cpu.yaml:1: cannot "));
}

TEST(ReservedCpusTest, ThatDoNotFitNameTheirLineInTheFile) {
  const auto reserved =
      ReservedCpus(WithPools("reserved-cpus: 9"), config::MachineConfig(), FourCpus());
  EXPECT_THAT(MessageOf(reserved.status()), ::testing::StartsWith("cpu.yaml:1: cannot reserve"));
}

}  // namespace
}  // namespace qrm::manager::builtin_plugins_test
