// What is applied of a configuration that is read again, and what is rejected.
#include "manager/config/reload.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/config/read_config.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::reload_test {
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

class ReloadTest : public testing::Test {
 protected:
  Config Read(const std::string& text) {
    std::ofstream(path_) << text;
    return *ReadConfig(path_, {});
  }
  Status Reread(const std::string& text) {
    std::ofstream(path_) << text;
    return reload_.ReadAgain()(
        {.classes = [](const ClassesOptions&) { return OkStatus(); },
         .plugins =
             [this](const BuiltinOptions& options) {
               const auto cpu = options.sections.find("cpu");
               asked_.push_back(cpu == options.sections.end() ? "" : cpu->second.OneLine());
               plugins_ = options.plugins;
               return takes_;
             },
         .rules = [this](const placement::AdmissionOptions& options) { rules_ = options; },
         .note = [this](const std::string& change) { noted_.push_back(change); },
         .waiting = [this](std::vector<ChangedKey> keys) { waiting_ = std::move(keys); }});
  }

  const test::TempDir dir_;
  const std::string path_ = dir_ / "qrmd.yaml";
  Reload reload_{Read("builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n"),
                 [this] { return ReadConfig(path_, {}); }};
  Status takes_;
  std::vector<std::string> asked_;    // the cpu keys of each call that passes keys to plugins
  std::vector<std::string> plugins_;  // of the call
  placement::AdmissionOptions rules_;
  std::vector<std::string> noted_;  // changes
  std::vector<ChangedKey> waiting_;
};

TEST_F(ReloadTest, SectionsOfPluginsAreTakenOverOnce) {
  EXPECT_TRUE(Reread("builtin-plugins: [cpu]\nplugins: {cpu: {roles: {web: {}}}}\n").ok());
  EXPECT_TRUE(
      Reread("# no other\nbuiltin-plugins: [cpu]\nplugins: {cpu: {roles: {web: {}}}}\n").ok());
  EXPECT_THAT(asked_, ElementsAre("{roles: {web: {}}}"));
}

TEST_F(ReloadTest, EachChangeIsNotedAlsoOneThatIsNotApplied) {
  const std::string roles = "builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n";
  EXPECT_TRUE(Reread(roles + "log-level: warning\nreconcile-period: 9s\n").ok());
  EXPECT_FALSE(Reread("log-level: loud\n").ok());
  log::SetLevel(log::Level::kInfo);
  EXPECT_THAT(noted_, testing::UnorderedElementsAre(
                          "log-level: info -> warning",
                          HasSubstr("reconcile-period stays 3s instead of 9s: restart qrmd"),
                          HasSubstr("configuration rejected; the previous one stays in force: ")));
}

TEST_F(ReloadTest, PermissionsAndRulesOfDriversChangeAtOnce) {
  const std::string plugins = "builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n";
  EXPECT_TRUE(Reread(plugins + "compute-drivers: {fast: {namespaces: [db]}}\n").ok());
  EXPECT_THAT(rules_.drivers["fast"].namespaces, ElementsAre("db"));
  EXPECT_TRUE(Reread(plugins + "permissions: [{namespaces: [db], drivers: [fast]}]\n").ok());
  EXPECT_TRUE(rules_.drivers.empty());
  EXPECT_THAT(rules_.permissions.RuleFor("db").drivers, ElementsAre("fast"));
  EXPECT_THAT(waiting_, IsEmpty());
  EXPECT_TRUE(Reread(plugins + "admission-deadline: 900ms\n").ok());
  EXPECT_TRUE(rules_.permissions.RuleFor("db").drivers.empty());
  EXPECT_THAT(waiting_, testing::SizeIs(1)) << "other keys of admissions wait";
}

TEST_F(ReloadTest, PluginsThatComeOrGoWaitForAStart) {
  EXPECT_TRUE(Reread("builtin-plugins: [memory]\nplugins: {cpu: {}}\n").ok());
  EXPECT_THAT(plugins_, ElementsAre("cpu"));
}

TEST_F(ReloadTest, WhatAPluginRejectsChangesNothingAtAllAndIsTriedAgain) {
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

TEST_F(ReloadTest, KeysThatWaitForAStartAreNamedUntilTheFileHasThemAsInForce) {
  const std::string plugins = "builtin-plugins: [cpu]\nplugins: {cpu: {roles: {db: {}}}}\n";
  EXPECT_TRUE(Reread(plugins + "reconcile-period: 7s\nlog-level: error\n").ok());
  ASSERT_EQ(waiting_.size(), 1U);
  EXPECT_EQ(waiting_[0].key, "reconcile-period");
  EXPECT_EQ(waiting_[0].to, "7s");
  EXPECT_TRUE(Reread(plugins).ok());
  EXPECT_THAT(waiting_, IsEmpty());
  log::SetLevel(log::Level::kInfo);
}

TEST_F(ReloadTest, FileThatCannotBeReadAsksNoPlugin) {
  EXPECT_THAT(MessageOf(Reread("log-level: loud\nplugins: {cpu: {}}\n")),
              HasSubstr("qrmd.yaml:1: log-level"));
  EXPECT_THAT(asked_, IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::reload_test
