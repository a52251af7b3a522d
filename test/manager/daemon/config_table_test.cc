#include "manager/daemon/config_table.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"

namespace qrm::manager::config_table_test {
namespace {

using config::ConfigKey;
using config::Section;

/// The values of a configuration by key, in the form of its file.
std::map<std::string, std::string> ShownBy(const std::vector<ConfigKey>& keys) {
  std::map<std::string, std::string> shown;
  for (const ConfigKey& key : keys) {
    shown[key.name] = key.show();
  }
  return shown;
}

Status Read(const ConfigKey& key, const std::string& value) {
  const auto section = Section::Parse(key.name + ": " + value, "test");
  return section.ok() ? key.read(*section, key.name) : section.status();
}

/// Values of every kind. A new key takes one of these; if it takes none, add a value.
const char* const kValues[] = {
    "true",
    "false",
    "/nowhere/at-all",
    "7s",
    "17s",
    "900ms",
    "7",
    "\"07\"",
    "restricted",
    "pod",
    "fail",
    "debug",
    "json",
    "synthetic:numa:2",
    "https://nowhere:1/pods",
    ":7",
    "-7",
    "[cpu]",
    "[7, 8]",
    "[{resource: NIC, roles: [a, b], annotation: x/y}]",
    // NOLINTBEGIN(bugprone-suspicious-missing-comma): each of these is one value on two lines.
    "[{namespaces: [a], allow: [opt-out], pools: [b], roles: [c], resources: [NIC], classes: "
    "[d/e], drivers: [f]}]",
    "{fast: {namespaces: [a], default-namespaces: [b], runtime-classes: [c], spec: \"x\", "
    "when-missing: fallback, reject-as: fail}}",
    // NOLINTEND(bugprone-suspicious-missing-comma)
    "{0: 1024}",
    "{0: hbm}",
    "{a: cpu}",
    "{cpu: {a: 1, b: [x, y]}}",
    "{blockio: {config-file: /b, default: \"x\", namespace-defaults: {a: x}, qos-defaults: "
    "{Burstable: y}, classes: {x: {capacity: 2, namespaces: [a], service-accounts: [\"*/b\"], "
    "namespace-labels: [\"c=d\"]}}}}",
};

/// A value that the key takes and that is not its default; empty when there is none.
std::string OtherValueOf(const std::string& name) {
  for (const char* const value : kValues) {
    Config config;
    for (const ConfigKey& key : ConfigKeys(config)) {
      if (key.name == name && key.show() != value && Read(key, value).ok()) {
        return value;
      }
    }
  }
  return {};
}

std::vector<std::string> AllNames() {
  Config config;
  std::vector<std::string> names;
  for (const ConfigKey& key : ConfigKeys(config)) {
    names.push_back(key.name);
  }
  return names;
}

class ConfigKeyTest : public testing::TestWithParam<std::string> {};

TEST_P(ConfigKeyTest, IsReadIntoItsFieldAndShownAsWritten) {
  const std::string value = OtherValueOf(GetParam());
  ASSERT_NE(value, "") << "no value of kValues suits " << GetParam() << "; add one that does";
  Config config;
  const std::vector<ConfigKey> keys = ConfigKeys(config);
  std::map<std::string, std::string> want = ShownBy(keys);
  want[GetParam()] = value;
  for (const ConfigKey& key : keys) {
    if (key.name == GetParam()) {
      ASSERT_TRUE(Read(key, value).ok());
    }
  }
  EXPECT_EQ(ShownBy(keys), want);
}

INSTANTIATE_TEST_SUITE_P(Keys, ConfigKeyTest, testing::ValuesIn(AllNames()),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ConfigTableTest, PodsThatEndNeedTheApiServer) {
  for (const char* const text : {"reject-as: fail", "compute-drivers: {fast: {reject-as: fail}}"}) {
    EXPECT_THAT(MessageOf(ReadConfigText(text, "test", {}).status()),
                testing::HasSubstr("add pod-failures to publish"))
        << text;
    EXPECT_TRUE(ReadConfigText(std::string(text) + "\npublish: [pod-failures]", "test", {}).ok());
  }
  EXPECT_TRUE(ReadConfigText("compute-drivers: {fast: {reject-as: retry}}", "test", {}).ok());
  EXPECT_THAT(
      MessageOf(ReadConfigText("compute-drivers: {fast: {reject-as: later}}", "test", {}).status()),
      testing::HasSubstr("choose from retry and fail"));
}

TEST(ConfigTableTest, NamesEveryKeyOnce) {
  const std::vector<std::string> names = AllNames();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(ConfigTableTest, HasADefaultInRangeForEveryKey) {
  Config config;
  for (const ConfigKey& key : ConfigKeys(config)) {
    if (key.name == "pod-resources-group") {
      continue;  // unset is not a value of it
    }
    const std::string shown = key.show();
    EXPECT_TRUE(Read(key, shown).ok()) << key.name << ": " << shown;
    EXPECT_EQ(key.show(), shown) << key.name;
  }
}

TEST(ConfigTableTest, ReferenceIsThePageThatIsCommitted) {
  std::ifstream file("docs/configuration.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), ConfigReference())
      << "run: qrmd --print-config-reference > docs/configuration.md";
}

TEST(ConfigTableTest, ReferenceHasNoLongLinesOutsideItsTables) {
  std::istringstream page(ConfigReference());
  for (std::string line; std::getline(page, line);) {
    EXPECT_TRUE(line.starts_with('|') || line.size() <= 120) << line;
  }
}

}  // namespace
}  // namespace qrm::manager::config_table_test
