// A plugin inside the process answers as one behind a socket does, and no later than it may.
#include "manager/registry/calls/local_plugin.h"

#include <future>
#include <optional>
#include <thread>

#include <gmock/gmock.h>

#include "manager/registry/calls/grpc_plugin_client.h"
#include "manager/registry/endpoint_set.h"
#include "plugins/sdk/host.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/loop_thread.h"
#include "test/support/temp_dir.h"

namespace qrm::manager {
namespace {

using test::CountingPlugin;
using test::CpuRequest;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kShort{20};
constexpr std::chrono::seconds kLong{10};

/// The result of `call`, which is given what takes it.
template <typename T, typename Call>
CallResult<T> ResultOf(Call call) {
  const auto result = std::make_shared<std::promise<CallResult<T>>>();
  call([result](CallResult<T> answer) { result->set_value(std::move(answer)); });
  return result->get_future().get();
}

template <typename T, typename Call>
StatusOr<T> Ask(Call call) {
  return ResultOf<T>(call).value;
}

class LocalPluginTest : public testing::Test {
 protected:
  LocalPluginTest() {
    auto started = LocalPlugin::Start(plugin_, "cpu", sdk::MakeMemoryState(),
                                      {loop_.io(), NumaMask{0, 1}, calls_});
    EXPECT_TRUE(started.ok()) << started.status();
    local_ = *std::move(started);
  }

  CallResult<AllocationByResource> Allocate(const std::string& uid, Deadline deadline) {
    return ResultOf<AllocationByResource>(
        [&](auto done) { local_->Allocate(CpuRequest(uid, "main", 1), deadline, done); });
  }

  CountingPlugin plugin_;
  test::LoopThread loop_;
  const std::shared_ptr<CallsInFlight> calls_ = std::make_shared<CallsInFlight>();
  std::unique_ptr<LocalPlugin> local_;
};

/// Keeps the plugin's thread busy from the first Allocate until it is let go.
class Blockade {
 public:
  explicit Blockade(CountingPlugin& plugin) {
    plugin.failure = [this] {
      if (!blocked_) {
        blocked_ = true;
        begun_.set_value();
        end_.get_future().wait();
      }
    };
  }
  void AwaitBegin() { begun_.get_future().wait(); }
  void End() { end_.set_value(); }

 private:
  bool blocked_ = false;  // on the plugin's thread
  std::promise<void> begun_;
  std::promise<void> end_;
};

TEST_F(LocalPluginTest, CallThatLastsTooLongIsAnsweredAtItsDeadline) {
  Blockade blockade(plugin_);
  const auto late = Allocate("a", DeadlineAfter(kShort));
  EXPECT_EQ(late.value.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(late.blame, Blame::kTimeout);
  blockade.End();
  EXPECT_TRUE(Allocate("a", DeadlineAfter(kLong)).value.ok());
}

TEST_F(LocalPluginTest, CallWhoseDeadlinePassedInTheQueueIsNotBegun) {
  Blockade blockade(plugin_);
  EXPECT_FALSE(Allocate("a", DeadlineAfter(kShort)).value.ok());
  EXPECT_FALSE(Allocate("b", DeadlineAfter(kShort)).value.ok());
  blockade.End();
  EXPECT_TRUE(Allocate("c", DeadlineAfter(kLong)).value.ok());
  EXPECT_EQ(plugin_.held.count({"b", "main"}), 0U);
}

TEST_F(LocalPluginTest, StoppingAnswersWhatWaitsAndTakesNothingNew) {
  Blockade blockade(plugin_);
  std::promise<CallResult<AllocationByResource>> first;
  std::promise<CallResult<AllocationByResource>> waiting;
  local_->Allocate(CpuRequest("a", "main", 1), DeadlineAfter(kLong),
                   [&](auto result) { first.set_value(std::move(result)); });
  local_->Allocate(CpuRequest("b", "main", 1), DeadlineAfter(kLong),
                   [&](auto result) { waiting.set_value(std::move(result)); });
  blockade.AwaitBegin();
  std::thread stop([&] { calls_->StopAndWait(); });
  EXPECT_EQ(first.get_future().get().blame, Blame::kStopping);
  EXPECT_EQ(waiting.get_future().get().blame, Blame::kStopping);
  blockade.End();
  stop.join();
  EXPECT_EQ(Allocate("c", DeadlineAfter(kLong)).blame, Blame::kStopping);
  EXPECT_EQ(plugin_.held.count({"b", "main"}), 0U);
}

TEST_F(LocalPluginTest, ThePluginIsCalledOnTheThreadThatTasksRunOn) {
  std::thread::id called;
  plugin_.failure = [&] { called = std::this_thread::get_id(); };
  EXPECT_TRUE(Allocate("a", DeadlineAfter(kLong)).value.ok());
  std::promise<std::thread::id> posted;
  local_->Post([&] { posted.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(posted.get_future().get(), called);
  EXPECT_NE(called, std::this_thread::get_id());
}

TEST_F(LocalPluginTest, HintsForANodeThatTheMachineLacksBreakTheProtocol) {
  plugin_.hints = [](const auto&) -> StatusOr<HintList> {
    return std::vector<TopologyHint>{{.nodes = {7}, .preferred = true}};
  };
  const auto hints = ResultOf<HintList>([&](auto done) {
    local_->GetTopologyHints(CpuRequest("a", "main", 1), DeadlineAfter(kLong), done);
  });
  EXPECT_EQ(hints.blame, Blame::kProtocol);
  EXPECT_THAT(MessageOf(hints.value.status()), HasSubstr("7"));
}

TEST_F(LocalPluginTest, SaysTheSameWhileItHoldsTheSame) {
  const auto held = [&] {
    return *Ask<HeldAllocations>(
        [&](auto done) { local_->GetResourcesAllocation(DeadlineAfter(kLong), done); });
  };
  ASSERT_TRUE(Allocate("a", DeadlineAfter(kLong)).value.ok());
  const HeldAllocations one = held();
  EXPECT_EQ(one.identity(), held().identity());
  ASSERT_TRUE(Allocate("b", DeadlineAfter(kLong)).value.ok());
  EXPECT_NE(one.identity(), held().identity());
}

TEST_F(LocalPluginTest, TellsOfChangesThatNobodyAskedFor) {
  std::promise<void> heard;
  local_->OnChanged([&] { heard.set_value(); });
  plugin_.NotifyChanged();
  heard.get_future().wait();
  local_->OnChanged({});
}

TEST(LocalPluginInRegistryTest, PluginThatHangsIsNamedAndSuspectUntilItAnswers) {
  CountingPlugin plugin;
  test::LoopThread loop;
  std::unique_ptr<LocalPlugin> local;
  EndpointSet set({.machine_nodes = {0, 1}});  // goes before the plugin
  local = *LocalPlugin::Start(plugin, "cpu", sdk::MakeMemoryState(),
                              {loop.io(), NumaMask{0, 1}, set.calls()});
  ASSERT_EQ(set.AddBuiltIn("cpu", *local), OkStatus());
  const auto allocate = [&](Deadline deadline) {
    return set.Allocate({CpuRequest("a", "main", 1)}, deadline).front().status();
  };
  Blockade blockade(plugin);
  EXPECT_EQ(MessageOf(allocate(DeadlineAfter(kShort))),
            "cannot allocate with plugin cpu at built-in: no answer before the deadline");
  EXPECT_THAT(set.Find("cpu")->problem, HasSubstr("suspect"));
  blockade.End();
  EXPECT_EQ(allocate(DeadlineAfter(kLong)), OkStatus());
  EXPECT_EQ(set.Find("cpu")->problem, "");
}

/// The same plugin twice: inside this process, and behind a socket.
class LocalAndRemoteTest : public LocalPluginTest {
 protected:
  LocalAndRemoteTest() {
    host_ = *sdk::PluginHost::Create(remote_plugin_, "cpu", sdk::MakeMemoryState());
    EXPECT_TRUE(host_->Listen(dir_ / "cpu.sock").ok());
    remote_.emplace(dir_ / "cpu.sock", NumaMask{0, 1}, calls_);
  }
  ~LocalAndRemoteTest() override { calls_->StopAndWait(); }

  /// The one answer that both give to `call`.
  template <typename T, typename Call>
  StatusOr<T> Both(Call call) {
    const CallResult<T> local = ResultOf<T>([&](auto done) { call(*local_, done); });
    const CallResult<T> remote = ResultOf<T>([&](auto done) { call(*remote_, done); });
    EXPECT_EQ(local.blame, remote.blame);
    EXPECT_EQ(local.value.status().code(), remote.value.status().code());
    EXPECT_EQ(MessageOf(local.value.status()), MessageOf(remote.value.status()));
    if (local.value.ok() && remote.value.ok()) {
      ExpectSame(*local.value, *remote.value);
    }
    return local.value;
  }

  void SetUp() override {
    for (CountingPlugin* plugin : {&plugin_, &remote_plugin_}) {
      plugin->online = {4, 5};
    }
  }

  StatusOr<AllocationByResource> AllocateBoth(const std::string& uid, double cpus) {
    return Both<AllocationByResource>([&](PluginClient& plugin, auto done) {
      plugin.Allocate(CpuRequest(uid, "main", cpus), DeadlineAfter(kLong), done);
    });
  }
  StatusOr<HeldAllocations> ReconcileBoth() {
    return Both<HeldAllocations>([](PluginClient& plugin, auto done) {
      plugin.GetResourcesAllocation(DeadlineAfter(kLong), done);
    });
  }
  StatusOr<std::vector<PoolInfo>> SetPoolsOfBoth(const StringMap& cpus_by_pool) {
    return Both<std::vector<PoolInfo>>([&](PluginClient& plugin, auto done) {
      plugin.SetPools("cpu", cpus_by_pool, DeadlineAfter(kLong), done);
    });
  }

  const test::TempDir dir_;
  CountingPlugin remote_plugin_;
  std::unique_ptr<sdk::PluginHost> host_;
  std::optional<GrpcPluginClient> remote_;

 private:
  template <typename T>
  static void ExpectSame(const T& local, const T& remote) {
    EXPECT_TRUE(local == remote);
  }
  static void ExpectSame(const Acknowledged&, const Acknowledged&) {}
  static void ExpectSame(const HeldAllocations& local, const HeldAllocations& remote) {
    EXPECT_EQ(*local.Read(), *remote.Read());
  }
  static void ExpectSame(const std::vector<PoolInfo>& local, const std::vector<PoolInfo>& remote) {
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
  EXPECT_TRUE(Both<PluginOptions>([](PluginClient& plugin, auto done) {
                plugin.GetOptions(DeadlineAfter(kLong), done);
              })->with_topology_alignment);
}

TEST_F(LocalAndRemoteTest, GiveTheSameHintsOfEachKind) {
  const auto hints = [&] {
    return Both<HintList>([](PluginClient& plugin, auto done) {
      plugin.GetTopologyHints(CpuRequest("a", "main", 1), DeadlineAfter(kLong), done);
    });
  };
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

TEST_F(LocalAndRemoteTest, AllocateTheSame) {
  EXPECT_EQ(AllocateBoth("a", 6)->at("cpu").value, "0-5");
  EXPECT_EQ(AllocateBoth("b", 9).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(LocalAndRemoteTest, PassTheHintOnAsItIs) {
  for (const std::optional<TopologyHint>& hint :
       {std::optional<TopologyHint>(), std::optional(TopologyHint{}),
        std::optional(TopologyHint{.nodes = {1}, .preferred = true})}) {
    ContainerRequest request = CpuRequest(hint.has_value() ? ToString(*hint) : "none", "main", 1);
    request.hint = hint;
    EXPECT_TRUE(Both<AllocationByResource>([&](PluginClient& plugin, auto done) {
                  plugin.Allocate(request, DeadlineAfter(kLong), done);
                }).ok());
    EXPECT_EQ(plugin_.last_hint, remote_plugin_.last_hint);
    EXPECT_EQ(plugin_.last_hint, hint.value_or(TopologyHint()));
  }
}

TEST_F(LocalAndRemoteTest, TellTheSameOfAContainersPlace) {
  ASSERT_TRUE(AllocateBoth("a", 6).ok());
  plugin_.reconciled[{"a", "main"}] = remote_plugin_.reconciled[{"a", "main"}] = sdk::PinCpus({1});
  ASSERT_TRUE(ReconcileBoth().ok());
  const auto placement = [&](const ContainerKey& key) {
    return Both<PlacedByResource>([&](PluginClient& plugin, auto done) {
      plugin.GetPlacement(key, DeadlineAfter(kLong), done);
    });
  };
  EXPECT_EQ(placement({"a", "main"})->at("cpu").admitted_amount, 6);
  EXPECT_TRUE(placement({"ghost", "main"})->empty());
}

TEST_F(LocalAndRemoteTest, OfferTheSame) {
  EXPECT_EQ(Both<AllocatableByResource>([](PluginClient& plugin, auto done) {
              plugin.GetAllocatable(DeadlineAfter(kLong), done);
            })
                ->at("cpu")
                .allocatable,
            7);
}

TEST_F(LocalAndRemoteTest, ForgetTheSame) {
  ASSERT_TRUE(AllocateBoth("a", 1).ok() && AllocateBoth("b", 1).ok());
  EXPECT_TRUE(Both<Acknowledged>([](PluginClient& plugin, auto done) {
                plugin.RemovePod("a", DeadlineAfter(kLong), done);
              }).ok());
  EXPECT_EQ(ReconcileBoth()->Read()->size(), 1U);
  EXPECT_TRUE(Both<Acknowledged>([](PluginClient& plugin, auto done) {
                plugin.ReleaseContainer({"b", "main"}, DeadlineAfter(kLong), done);
              }).ok());
  EXPECT_TRUE(ReconcileBoth()->Read()->empty());
}

TEST_F(LocalAndRemoteTest, SetTheSamePoolsAndRefuseTheSame) {
  EXPECT_EQ(SetPoolsOfBoth({{"online", "6-7"}})->front().cpus, "6-7");
  EXPECT_EQ(SetPoolsOfBoth({{"online", "3-"}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SetPoolsOfBoth({{"offline", "3"}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Both<std::vector<PoolInfo>>([](PluginClient& plugin, auto done) {
              plugin.GetPools("cpu", DeadlineAfter(kLong), done);
            })
                ->front()
                .cpus,
            "6-7");
}

}  // namespace
}  // namespace qrm::manager
