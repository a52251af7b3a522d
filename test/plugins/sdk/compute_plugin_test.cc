// A compute driver in the SDK: its grants, through restarts and failures.
#include "plugins/sdk/compute_plugin.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>

#include "plugins/sdk/change_signal.h"
#include "plugins/sdk/plugin_state.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk::compute_plugin_test {
namespace {

using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// Gives the first CPUs, and remembers its requests.
class FirstCpus final : public ComputeDriver {
 public:
  Status Restore(const ComputeGrants& grants) override {
    restored = grants;
    return OkStatus();
  }
  StatusOr<ComputeGrant> Admit(const ComputeRequest& request) override {
    ++admissions;
    if (throws) {
      throw std::runtime_error("bad day");
    }
    CpuSet cpus;
    for (const int cpu : request.available) {
      if (cpus.Count() * int64_t{1000} < request.milli_cpus) {
        cpus.Add(cpu);
      }
    }
    ComputeGrant grant{.parts = {{.cpus = cpus, .name = "first"}},
                       .mems = {0},
                       .envs = {{"A", "1"}},
                       .unmet = {{"no-irq", "\"managed\""}}};
    grant.parts.insert(grant.parts.end(), more.begin(), more.end());
    return grant;
  }
  Status Remove(const ContainerKey& key) override {
    removed.push_back(key.pod_uid + "/" + key.container);
    if (throws) {
      throw std::runtime_error("bad day");
    }
    return removal;
  }
  bool GivesHints() const override { return true; }
  StatusOr<HintList> Hints(const ComputeRequest& request) override {
    return request.milli_cpus > 8000 ? HintList::Impossible()
                                     : HintList(std::vector<TopologyHint>{{.nodes = {1}}});
  }
  bool Resizes() const override { return true; }
  /// Keeps what it can of the former CPUs.
  StatusOr<ComputeGrant> Resize(const ComputeRequest& request, const ComputeGrant& now) override {
    former = now;
    CpuSet cpus;
    for (const CpuSet& from : {now.Cpus(), request.available}) {
      for (const int cpu : from) {
        if (cpus.Count() * int64_t{1000} < request.milli_cpus) {
          cpus.Add(cpu);
        }
      }
    }
    return ComputeGrant{.parts = {{.cpus = cpus, .name = "resized"}}};
  }
  Status Add(const ComputeInstance&) override {
    return throws ? throw std::runtime_error("bad day") : OkStatus();
  }

  int admissions = 0;
  bool throws = false;
  std::vector<ComputePart> more;  // beside those
  Status removal;
  std::vector<std::string> removed;
  ComputeGrants restored;
  ComputeGrant former;  // of the latest Resize
};

ComputeRequest Request(const std::string& pod, CpuSet available) {
  return {.key = {pod, "main"}, .available = std::move(available), .milli_cpus = 2000};
}

/// The container main of `pod` has `current`, and asks for `milli_cpus`.
ComputeRequest Resized(const std::string& pod, CpuSet current, int64_t milli_cpus) {
  return {.key = {pod, "main"},
          .available = CpuSet::Range(0, 7),
          .current = std::move(current),
          .milli_cpus = milli_cpus};
}

class ComputePluginTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }
  /// The same driver, as a new process.
  void Start() {
    host_.reset();
    plugin_.emplace(driver_);
    auto state = OpenPluginState(dir_ / "state.db");
    ASSERT_TRUE(IsOk(state.status()));
    host_ = std::make_unique<PluginDriver>(*plugin_, DriverResource("first"), *std::move(state));
    ASSERT_TRUE(IsOk(host_->Start()));
  }

  CpuSet Held(const std::string& pod) {
    return GrantOf(host_->grants().at({pod, "main"}).allocation).value_or(ComputeGrant()).Cpus();
  }

  const test::TempDir dir_;
  FirstCpus driver_;
  std::optional<ComputePlugin> plugin_;
  std::unique_ptr<PluginDriver> host_;
};

TEST_F(ComputePluginTest, ARepeatedRequestGetsTheSameWithoutTheDriver) {
  const auto first = ComputePlugin::Admit(*host_, Request("a", CpuSet::Range(0, 7)));
  ASSERT_TRUE(IsOk(first.status()));
  const auto again = ComputePlugin::Admit(*host_, Request("a", CpuSet::Range(2, 7)));
  ASSERT_TRUE(IsOk(again.status()));
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(driver_.admissions, 1);
}

TEST_F(ComputePluginTest, GrantsComeBackWholeAfterARestart) {
  const auto given = ComputePlugin::Admit(*host_, Request("a", CpuSet::Range(0, 7)));
  ASSERT_TRUE(IsOk(given.status()));
  Start();
  EXPECT_THAT(driver_.restored, ElementsAre(Pair(ContainerKey{"a", "main"}, *given)));
}

TEST_F(ComputePluginTest, GrantsOfEarlierAndLaterVersionsAreRead) {
  ResourceAllocation recorded;
  recorded.annotations["cci.qrm.io/answer"] = R"({"rset":{"cpuset":"2-3","exclusive":true}})";
  EXPECT_EQ(GrantOf(recorded)->Cpus(), CpuSet::Range(2, 3)) << "before there were parts";
  recorded.annotations["cci.qrm.io/answer"] =
      R"({"rset":{"cpuset":"2-3","exclusive":true,"color":"red"},"weather":{"rain":[1]}})";
  EXPECT_EQ(GrantOf(recorded)->Cpus(), CpuSet::Range(2, 3)) << "after a downgrade";
}

TEST_F(ComputePluginTest, SharedPartsComeBackAsTheyWereGiven) {
  driver_.more = {{.name = "pool", .shared = true}, {.cpus = {6}, .shared = true}};
  const auto given = ComputePlugin::Admit(*host_, Request("a", CpuSet::Range(0, 7)));
  ASSERT_TRUE(IsOk(given.status()));
  EXPECT_EQ(given->Cpus(), CpuSet::Range(0, 1));
  EXPECT_EQ(given->parts.size(), 3U);
  EXPECT_TRUE(given->parts[1].shared);
  Start();
  EXPECT_THAT(driver_.restored, ElementsAre(Pair(ContainerKey{"a", "main"}, *given)));
}

TEST_F(ComputePluginTest, AGrantWhoseCpusAreOfferedAgainIsOver) {
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("lost", {0, 1, 2})).status()));
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("next", {1, 2, 3})).status()));
  EXPECT_THAT(driver_.removed, ElementsAre("lost/main"));
  EXPECT_EQ(host_->grants().size(), 1u);
}

TEST_F(ComputePluginTest, WhatTheDriverDoesNotGiveBackStays) {
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("a", {0, 1})).status()));
  driver_.removal = Status(StatusCode::kUnavailable, "a file is busy");
  EXPECT_THAT(MessageOf(ComputePlugin::Remove(*host_, {.key = {"a", "main"}})),
              HasSubstr("a file is busy"));
  EXPECT_EQ(host_->grants().size(), 1u);
  driver_.removal = OkStatus();
  EXPECT_TRUE(IsOk(ComputePlugin::Remove(*host_, {.key = {"a", ""}})));
  EXPECT_TRUE(host_->grants().empty());
}

TEST_F(ComputePluginTest, AnExceptionFailsOnlyItsCallAndOtherContainersKeepTheirs) {
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("a", CpuSet::Range(0, 7))).status()));
  driver_.throws = true;
  EXPECT_THAT(MessageOf(ComputePlugin::Admit(*host_, Request("b", CpuSet::Range(2, 7))).status()),
              HasSubstr("bad day"));
  EXPECT_THAT(MessageOf(ComputePlugin::Add(*host_, {.key = {"a", "main"}})), HasSubstr("bad day"));
  EXPECT_THAT(MessageOf(ComputePlugin::Remove(*host_, {.key = {"a", "main"}})),
              HasSubstr("bad day"));
  driver_.throws = false;
  EXPECT_THAT(host_->grants(), testing::SizeIs(1)) << "the removal did not happen";
  EXPECT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("b", CpuSet::Range(2, 7))).status()));
  EXPECT_TRUE(IsOk(ComputePlugin::Add(*host_, {.key = {"a", "main"}})));
}

TEST_F(ComputePluginTest, AResizeCountsOnceTheManagerSaysThatTheContainerHasTheCpus) {
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("a", {2, 3, 4})).status()));
  const auto grown = ComputePlugin::Admit(*host_, Resized("a", {2, 3}, 3000));
  ASSERT_TRUE(IsOk(grown.status()));
  EXPECT_EQ(grown->Cpus(), (CpuSet{0, 2, 3}));
  EXPECT_EQ(Held("a"), (CpuSet{2, 3}));
  ASSERT_TRUE(IsOk(ComputePlugin::Add(*host_, {.key = {"a", "main"}, .cpus = {0, 2, 3}})));
  EXPECT_EQ(Held("a"), (CpuSet{0, 2, 3}));
  EXPECT_EQ(driver_.restored.at({"a", "main"}), *grown);
  Start();
  EXPECT_THAT(driver_.restored, ElementsAre(Pair(ContainerKey{"a", "main"}, *grown)));
}

TEST_F(ComputePluginTest, AResizeThatTheManagerDropsChangesNothing) {
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("a", {2, 3})).status()));
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Resized("a", {2, 3}, 3000)).status()));
  ASSERT_TRUE(IsOk(ComputePlugin::Add(*host_, {.key = {"a", "main"}, .cpus = {2, 3}})));
  EXPECT_EQ(Held("a"), (CpuSet{2, 3}));
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Resized("a", {2, 3}, 1000)).status()));
  EXPECT_EQ(driver_.former.parts.front().name, "first");
}

TEST_F(ComputePluginTest, ADriverThatWasKilledInBetweenTakesTheManagersCpus) {
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Request("a", {2, 3})).status()));
  ASSERT_TRUE(IsOk(ComputePlugin::Admit(*host_, Resized("a", {2, 3}, 3000)).status()));
  Start();
  ASSERT_TRUE(IsOk(ComputePlugin::Add(*host_, {.key = {"a", "main"}, .cpus = {0, 2, 3}})));
  EXPECT_EQ(Held("a"), (CpuSet{0, 2, 3}));
  EXPECT_EQ(driver_.restored.at({"a", "main"}).parts.front().name, "first");
}

TEST_F(ComputePluginTest, ADriverRequestsChangesThroughTheHostsSignal) {
  int raised = 0;
  if (!plugin_.has_value()) {
    FAIL() << "there is no plugin";
  }
  ComputePlugin& plugin = *plugin_;
  plugin.changes().Connect([&] { ++raised; });
  driver_.RequestChanges();
  EXPECT_EQ(raised, 1);
  plugin.changes().Connect({});
}

TEST_F(ComputePluginTest, HintsAreTheDriversAndReserveNothing) {
  EXPECT_TRUE(host_->options().with_topology_alignment);
  const auto hints = ComputePlugin::GetHints(*host_, Request("a", CpuSet::Range(0, 7)));
  ASSERT_TRUE(IsOk(hints.status()));
  EXPECT_EQ(*hints, HintList(std::vector<TopologyHint>{{.nodes = {1}}}));
  EXPECT_TRUE(host_->grants().empty());
}

TEST_F(ComputePluginTest, RemovingUnknownContainersSucceeds) {
  EXPECT_TRUE(IsOk(ComputePlugin::Remove(*host_, {.key = {"never", "main"}})));
  EXPECT_TRUE(driver_.removed.empty());
}

TEST_F(ComputePluginTest, AResourcePluginsCallsAreRejected) {
  EXPECT_EQ(
      host_->Allocate({.key = {"a", "main"}, .resource = DriverResource("first")}).status().code(),
      StatusCode::kUnimplemented);
}

TEST(ComputeDriverNameTest, IsADnsLabel) {
  EXPECT_TRUE(IsOk(CheckDriverName("round-robin-2")));
  for (const char* name : {"", "-a", "a-", "A", "a.b", "a/b"}) {
    EXPECT_EQ(CheckDriverName(name).code(), StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(DriverNameOf(DriverResource("fast")), "fast");
  EXPECT_FALSE(IsDriverResource("cpu"));
}

}  // namespace
}  // namespace qrm::sdk::compute_plugin_test
