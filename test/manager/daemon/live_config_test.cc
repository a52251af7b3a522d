// What is applied of a configuration that is read again, and what is rejected.
#include "manager/daemon/live_config.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/daemon/config_table.h"
#include "manager/registry/calls/local_plugin.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::live_config_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool InfoIsLogged() {
  bool heard = false;
  log::SetSink([&](log::Level, const std::string&) { heard = true; });
  log::Info("line of the test that looks for the level");
  log::SetSink({});
  return heard;
}

class LiveConfigTest : public testing::Test, public ConfigTaker {
 protected:
  Config ReadFrom(const std::string& text) {
    std::ofstream(path_) << text;
    return *ReadConfig(path_, {});
  }
  Status Reread(const std::string& text) {
    std::ofstream(path_) << text;
    return live_.Follow(live_.Read(), *this);
  }

  Status TakeClasses(const ClassesOptions& /*options*/) override { return OkStatus(); }
  Status TakePlugins(const BuiltinOptions& options) override {
    const auto cpu = options.sections.find("cpu");
    asked_.push_back(cpu == options.sections.end() ? "" : cpu->second.OneLine());
    plugins_ = options.plugins;
    return takes_;
  }
  void TakeRules(const placement::AdmissionOptions& options) override { rules_ = options; }
  void NoteChange(const std::string& change) override { noted_.push_back(change); }

  const test::TempDir dir_;
  const std::string path_ = dir_ / "qrmd.yaml";
  const Machine machine_ = test::SampleMachine();
  const Config config_ = ReadFrom("builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n");
  const LocalPlugins none_;
  LiveConfig live_{{machine_, config_, none_}, config_, {.file = path_}};
  Status takes_;
  std::vector<std::string> asked_;    // the cpu keys of each call that passes keys to plugins
  std::vector<std::string> plugins_;  // of the call
  placement::AdmissionOptions rules_;
  std::vector<std::string> noted_;  // changes
};

TEST_F(LiveConfigTest, SectionsOfPluginsAreTakenOverOnce) {
  EXPECT_TRUE(Reread("builtin-plugins: [cpu]\nplugins: {cpu: {roles: {web: {}}}}\n").ok());
  EXPECT_TRUE(
      Reread("# no other\nbuiltin-plugins: [cpu]\nplugins: {cpu: {roles: {web: {}}}}\n").ok());
  EXPECT_THAT(asked_, ElementsAre("{roles: {web: {}}}"));
}

TEST_F(LiveConfigTest, EachChangeIsNotedAlsoOneThatIsNotApplied) {
  const std::string roles = "builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n";
  EXPECT_TRUE(Reread(roles + "log-level: warning\nreconcile-period: 9s\n").ok());
  EXPECT_FALSE(Reread("log-level: loud\n").ok());
  log::SetLevel(log::Level::kInfo);
  EXPECT_THAT(noted_, testing::UnorderedElementsAre(
                          "log-level: info -> warning",
                          HasSubstr("reconcile-period stays 3s instead of 9s: restart qrmd"),
                          HasSubstr("configuration rejected; the previous one stays in force: ")));
}

TEST_F(LiveConfigTest, PermissionsAndRulesOfDriversChangeAtOnce) {
  const std::string plugins = "builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n";
  EXPECT_TRUE(Reread(plugins + "compute-drivers: {fast: {namespaces: [db]}}\n").ok());
  EXPECT_THAT(rules_.drivers["fast"].namespaces, ElementsAre("db"));
  EXPECT_TRUE(Reread(plugins + "permissions: [{namespaces: [db], drivers: [fast]}]\n").ok());
  EXPECT_TRUE(rules_.drivers.empty());
  EXPECT_THAT(rules_.permissions.RuleFor("db").drivers, ElementsAre("fast"));
  EXPECT_THAT(live_.waiting(), IsEmpty());
  EXPECT_TRUE(Reread(plugins + "admission-deadline: 900ms\n").ok());
  EXPECT_TRUE(rules_.permissions.RuleFor("db").drivers.empty());
  EXPECT_THAT(live_.waiting(), testing::SizeIs(1)) << "other keys of admissions wait";
}

TEST_F(LiveConfigTest, PluginsThatComeOrGoWaitForAStart) {
  EXPECT_TRUE(Reread("builtin-plugins: [memory]\nplugins: {cpu: {}}\n").ok());
  EXPECT_THAT(plugins_, ElementsAre("cpu"));
}

TEST_F(LiveConfigTest, WhatAPluginRejectsChangesNothingAtAllAndIsTriedAgain) {
  const std::string wrong = "builtin-plugins: [cpu]\nlog-level: error\nplugins: {cpu: {}}\n";
  log::SetLevel(log::Level::kInfo);
  takes_ = Errorf(StatusCode::kInvalidArgument, "cannot fit");
  EXPECT_THAT(MessageOf(Reread(wrong)), HasSubstr("cannot fit"));
  EXPECT_TRUE(InfoIsLogged());
  takes_ = OkStatus();
  EXPECT_TRUE(Reread(wrong).ok());
  EXPECT_FALSE(InfoIsLogged());
  EXPECT_EQ(asked_.size(), 2U);
  log::SetLevel(log::Level::kInfo);
}

TEST_F(LiveConfigTest, KeysThatWaitForAStartAreNamedUntilTheFileHasThemAsInForce) {
  const std::string plugins = "builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n";
  EXPECT_TRUE(Reread(plugins + "reconcile-period: 7s\nlog-level: error\n").ok());
  const std::vector<ChangedKey> waiting = live_.waiting();
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].key, "reconcile-period");
  EXPECT_EQ(waiting[0].to, "7s");
  EXPECT_TRUE(Reread(plugins).ok());
  EXPECT_THAT(live_.waiting(), IsEmpty());
  log::SetLevel(log::Level::kInfo);
}

TEST_F(LiveConfigTest, FileThatCannotBeReadAsksNoPlugin) {
  EXPECT_THAT(MessageOf(Reread("log-level: loud\nplugins: {cpu: {}}\n")),
              HasSubstr("qrmd.yaml:1: log-level"));
  EXPECT_THAT(asked_, IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::live_config_test
