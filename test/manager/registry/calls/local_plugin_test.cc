// A plugin inside the process answers as a plugin behind a socket does.
#include "manager/registry/calls/local_plugin.h"

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "api/base/errorf.h"
#include "manager/registry/calls/grpc_plugin_client.h"
#include "manager/registry/endpoint_set.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "plugins/sdk/host.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::local_plugin_test {
namespace {

using test::CountingPlugin;
using test::CpuRequest;
using testing::ElementsAre;

constexpr std::chrono::seconds kLong{10};

/// The answer to the call that `C` describes.
template <typename C>
StatusOr<typename C::Answer> AnswerOf(PluginClient& plugin, const typename C::Request& request) {
  using Result = calls::CallResult<typename C::Answer>;
  const auto result = std::make_shared<std::promise<Result>>();
  plugin.Ask<C>(request, DeadlineAfter(kLong),
                [result](Result answer) { result->set_value(std::move(answer)); });
  return result->get_future().get().value;
}

class LocalPluginTest : public testing::Test {
 protected:
  LocalPluginTest() {
    auto started = LocalPlugin::Start(plugin_, "cpu", sdk::MakeMemoryState());
    EXPECT_TRUE(started.ok()) << started.status();
    local_ = *std::move(started);
  }

  StatusOr<AllocationByResource> Allocate(const std::string& uid) {
    return local_->Answer<calls::Allocate>(CpuRequest(uid, "main", 1));
  }

  CountingPlugin plugin_;
  std::unique_ptr<LocalPlugin> local_;
};

TEST_F(LocalPluginTest, IsCalledOnTheCallersThread) {
  std::thread::id called;
  plugin_.failure = [&] { called = std::this_thread::get_id(); };
  EXPECT_TRUE(Allocate("a").ok());
  EXPECT_EQ(called, std::this_thread::get_id());
}

TEST_F(LocalPluginTest, IsCalledByOneThreadAtATime) {
  int unguarded = 0;  // a sanitizer reports two at once
  plugin_.failure = [&] { ++unguarded; };
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (int j = 0; j < 100; ++j) {
        const std::string uid = std::to_string(i) + "-" + std::to_string(j);
        (void)local_->Answer<calls::Allocate>(CpuRequest(uid, "main", 1));
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(unguarded, 400);
}

TEST_F(LocalPluginTest, SaysTheSameWhileItHoldsTheSame) {
  const auto held = [&] { return *local_->Answer<calls::GetResourcesAllocation>({}); };
  ASSERT_TRUE(Allocate("a").ok());
  const calls::HeldAllocations one = held();
  EXPECT_EQ(one, held());
  ASSERT_TRUE(Allocate("b").ok());
  EXPECT_NE(one, held());
}

TEST_F(LocalPluginTest, ReportsUnsolicitedChanges) {
  std::promise<void> heard;
  local_->OnChanged([&] { heard.set_value(); });
  plugin_.NotifyChanged();
  heard.get_future().wait();
  local_->OnChanged({});
}

TEST_F(LocalPluginTest, EveryCallIsCountedInTheRegistry) {
  std::vector<std::string> counted;
  EndpointSet set({.on_call = [&](const PluginCallEvent& call) {
    counted.push_back(call.resource + " " + call.method + (call.ok ? " ok" : " failed"));
  }});
  ASSERT_EQ(set.AddBuiltIn("cpu", *local_), OkStatus());
  const auto allocate = [&](double cpus) {
    (void)set.AskForEach<calls::Allocate>({CpuRequest("a", "main", cpus)}, DeadlineAfter(kLong));
  };
  allocate(1);
  allocate(9);
  EXPECT_THAT(counted, ElementsAre("cpu Allocate ok", "cpu Allocate failed"));
}

TEST_F(LocalPluginTest, IsSuspectOfABadAnswerUntilItsNextAllocation) {
  EndpointSet set({});
  ASSERT_EQ(set.AddBuiltIn("cpu", *local_), OkStatus());
  set.MarkSuspect("cpu", "it gave CPU 99");
  EXPECT_EQ(set.Find("cpu").value_or(PluginInfo()).problem, "suspect: it gave CPU 99");
  (void)set.AskForEach<calls::Allocate>({CpuRequest("a", "main", 1)}, DeadlineAfter(kLong));
  EXPECT_EQ(set.Find("cpu").value_or(PluginInfo{.problem = "unknown"}).problem, "");
}

/// The same plugin twice: inside this process, and behind a socket.
class LocalAndRemoteTest : public LocalPluginTest {
 protected:
  LocalAndRemoteTest() {
    host_ = *sdk::PluginHost::Create(remote_plugin_, "cpu", sdk::MakeMemoryState());
    EXPECT_TRUE(host_->Listen(dir_ / "cpu.sock").ok());
    remote_ = std::make_unique<GrpcPluginClient>(dir_ / "cpu.sock", NumaMask{0, 1}, in_flight_);
  }
  void TearDown() override { in_flight_->StopAndWait(); }

  /// The answer of both to the call that `C` describes; it must be the same.
  template <typename C>
  StatusOr<typename C::Answer> Both(const typename C::Request& request) {
    const auto local = local_->Answer<C>(request);
    const auto remote = AnswerOf<C>(*remote_, request);
    EXPECT_EQ(local.status().code(), remote.status().code());
    EXPECT_EQ(MessageOf(local.status()), MessageOf(remote.status()));
    if (local.ok() && remote.ok()) {
      ExpectSame(*local, *remote);
    }
    return local;
  }

  void SetUp() override {
    for (CountingPlugin* plugin : {&plugin_, &remote_plugin_}) {
      plugin->online = {4, 5};
    }
  }

  StatusOr<AllocationByResource> AllocateBoth(const std::string& uid, double cpus) {
    return Both<calls::Allocate>(CpuRequest(uid, "main", cpus));
  }
  StatusOr<calls::HeldAllocations> ReconcileBoth() {
    return Both<calls::GetResourcesAllocation>({});
  }
  StatusOr<std::vector<sdk::Pool>> SetPoolsOfBoth(const StringMap& cpus_by_pool) {
    return Both<calls::SetPools>({"cpu", cpus_by_pool});
  }

  const std::shared_ptr<rpc::CallsInFlight> in_flight_ = std::make_shared<rpc::CallsInFlight>();
  const test::TempDir dir_;
  CountingPlugin remote_plugin_;
  std::unique_ptr<sdk::PluginHost> host_;
  std::unique_ptr<GrpcPluginClient> remote_;

 private:
  template <typename T>
  static void ExpectSame(const T& local, const T& remote) {
    EXPECT_TRUE(local == remote);
  }
  static void ExpectSame(const calls::Nothing&, const calls::Nothing&) {}
  static void ExpectSame(const calls::HeldAllocations& local,
                         const calls::HeldAllocations& remote) {
    EXPECT_EQ(*local, *remote);
  }
  static void ExpectSame(const std::vector<sdk::Pool>& local,
                         const std::vector<sdk::Pool>& remote) {
    ASSERT_EQ(local.size(), remote.size());
    for (std::size_t i = 0; i < local.size(); ++i) {
      EXPECT_EQ(local[i].name, remote[i].name);
      EXPECT_EQ(local[i].cpus, remote[i].cpus);
      EXPECT_EQ(local[i].roles, remote[i].roles);
      EXPECT_EQ(local[i].containers, remote[i].containers);
    }
  }
};

TEST_F(LocalAndRemoteTest, GiveTheSameOptions) {
  EXPECT_TRUE(Both<calls::GetOptions>({})->with_topology_alignment);
}

TEST_F(LocalAndRemoteTest, AnnounceTheSame) {
  EXPECT_EQ(Both<calls::GetInfo>({})->name, "cpu");
  EXPECT_TRUE(Both<calls::NotifyRegistrationStatus>("").ok());
}

TEST_F(LocalAndRemoteTest, GiveTheSameHintsOfEachKind) {
  const auto hints = [&] { return Both<calls::GetTopologyHints>(CpuRequest("a", "main", 1)); };
  EXPECT_EQ(hints()->hints().size(), 2U);
  const std::vector<StatusOr<HintList>> answers = {
      HintList::NoPreference(), HintList::Impossible(),
      Errorf(StatusCode::kResourceExhausted, "cannot place main: no CPU is free; remove a pod")};
  for (const StatusOr<HintList>& answer : answers) {
    plugin_.hints = remote_plugin_.hints = [&](const auto&) { return answer; };
    const StatusOr<HintList> got = hints();
    EXPECT_EQ(got.status(), answer.status());
    EXPECT_TRUE(!got.ok() || *got == *answer);
  }
}

TEST_F(LocalAndRemoteTest, RejectTheSameRequests) {
  ContainerRequest other = CpuRequest("a", "main", 1);
  other.resource = "memory";
  EXPECT_EQ(Both<calls::Allocate>(other).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Both<calls::GetTopologyHints>(other).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Both<calls::RemovePod>("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Both<calls::ReleaseContainer>({"a", ""}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(LocalAndRemoteTest, AllocateTheSame) {
  EXPECT_EQ(AllocateBoth("a", 6)->at("cpu")->value, "0-5");
  EXPECT_EQ(AllocateBoth("b", 9).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(LocalAndRemoteTest, PassTheHintOnAsItIs) {
  for (const std::optional<TopologyHint>& hint :
       {std::optional<TopologyHint>(), std::optional(TopologyHint{}),
        std::optional(TopologyHint{.nodes = {1}, .preferred = true})}) {
    ContainerRequest request = CpuRequest(hint.has_value() ? ToString(*hint) : "none", "main", 1);
    request.hint = hint;
    EXPECT_TRUE(Both<calls::Allocate>(request).ok());
    EXPECT_EQ(plugin_.last_hint, remote_plugin_.last_hint);
    EXPECT_EQ(plugin_.last_hint, hint.value_or(TopologyHint()));
  }
}

TEST_F(LocalAndRemoteTest, ReportTheSameAllocations) {
  ASSERT_TRUE(AllocateBoth("a", 6).ok());
  plugin_.reconciled[{"a", "main"}] = remote_plugin_.reconciled[{"a", "main"}] = sdk::PinCpus({1});
  ASSERT_TRUE(ReconcileBoth().ok());
  const auto placed = Both<calls::GetPlacement>({"a", "main"});
  EXPECT_EQ(placed->resources.at("cpu").admitted_amount, 6);
  EXPECT_EQ(placed->pod_name, CpuRequest("a", "main", 6).pod_name);
  EXPECT_TRUE(Both<calls::GetPlacement>({"ghost", "main"})->resources.empty());
}

TEST_F(LocalAndRemoteTest, OfferTheSame) {
  EXPECT_EQ(Both<calls::GetAllocatable>({})->at("cpu").allocatable, 7);
}

TEST_F(LocalAndRemoteTest, ForgetTheSame) {
  ASSERT_TRUE(AllocateBoth("a", 1).ok() && AllocateBoth("b", 1).ok());
  EXPECT_TRUE(Both<calls::RemovePod>("a").ok());
  EXPECT_EQ((*ReconcileBoth())->size(), 1U);
  EXPECT_TRUE(Both<calls::ReleaseContainer>({"b", "main"}).ok());
  EXPECT_TRUE((*ReconcileBoth())->empty());
}

TEST_F(LocalAndRemoteTest, AreResyncedTheSame) {
  sdk::Grant lost{.request = CpuRequest("a", "main", 2), .allocation = sdk::PinCpus({4, 5})};
  lost.request.hint = TopologyHint{.nodes = {1}, .preferred = true};
  lost.allocation.Edit().exclusive = true;
  lost.admitted = std::make_shared<const ResourceAllocation>(sdk::PinCpus({4}));
  ASSERT_TRUE(Both<calls::Restore>({.grants = {{lost.request.key, lost}}, .saved = "6-7"}).ok());
  EXPECT_EQ(plugin_.restored.at({"a", "main"}), lost);
  EXPECT_EQ(remote_plugin_.restored.at({"a", "main"}), lost);
  EXPECT_EQ(remote_plugin_.online, (CpuSet{6, 7}));
  EXPECT_EQ(AllocateBoth("b", 4)->at("cpu")->value, "0-3");
}

TEST_F(LocalAndRemoteTest, SetTheSamePoolsAndRejectTheSame) {
  EXPECT_EQ(ToString(SetPoolsOfBoth({{"online", "6-7"}})->front().cpus), "6-7");
  EXPECT_EQ(SetPoolsOfBoth({{"online", "3-"}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SetPoolsOfBoth({{"offline", "3"}}).status().code(), StatusCode::kInvalidArgument);
  const sdk::Pool pool = Both<calls::GetPools>("cpu")->front();
  EXPECT_EQ(ToString(pool.cpus), "6-7");
  EXPECT_EQ(ToString(pool.borrowed), "3");
}

TEST_F(LocalAndRemoteTest, ExportTheSame) {
  ASSERT_TRUE(AllocateBoth("a", 1).ok());
  EXPECT_TRUE(Both<calls::ExportState>({}).ok());
}

}  // namespace
}  // namespace qrm::manager::local_plugin_test
