// Calls to plugins: in parallel, with deadlines, with answers that are checked.
#include "manager/registry/endpoint_set.h"

#include <atomic>
#include <future>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/await.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::endpoint_set_test {
namespace {

using test::Await;
using test::PluginScript;
using test::ScriptedPlugin;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace pb = ::resourceplugin::v1alpha1;

constexpr std::chrono::milliseconds kShort{150};
constexpr std::chrono::seconds kLong{10};

ContainerRequest RequestOf(const std::string& resource) {
  ContainerRequest request;
  request.key = {"uid-1", "main"};
  request.resource = resource;
  request.requests = {{resource, 2}};
  return request;
}

class EndpointSetTest : public testing::Test {
 protected:
  EndpointSetTest()
      : set_(std::make_unique<EndpointSet>(EndpointSetOptions{.machine_nodes = {0, 1}})) {}

  /// A plugin for `resource` that is registered.
  std::unique_ptr<ScriptedPlugin> Add(const std::string& resource, PluginScript script) {
    auto plugin = std::make_unique<ScriptedPlugin>(SocketOf(resource), std::move(script));
    std::promise<Status> registered;
    set_->Register({.resource = resource, .socket = SocketOf(resource)},
                   [&](const Status& status) { registered.set_value(status); });
    const Status status = registered.get_future().get();
    EXPECT_TRUE(status.ok()) << status;
    return plugin;
  }

  /// Asks the plugins that reconcile for their allocations.
  void AskHoldings(std::function<void(AllocationsByPlugin)> done) {
    set_->AskAll<calls::GetResourcesAllocation>(
        set_->Live([](const PluginInfo& plugin) { return plugin.options.need_reconcile; }), {},
        DeadlineAfter(kLong), std::move(done));
  }

  std::string SocketOf(const std::string& resource) const { return dir_ / (resource + ".sock"); }

  PluginInfo InfoOfPlugin(const std::string& resource) const {
    return set_->Find(resource).value_or(PluginInfo{.problem = "unknown"});
  }
  Status Hints(const std::string& resource) {
    return set_->AskForEach<calls::GetTopologyHints>({RequestOf(resource)}, DeadlineAfter(kLong))
        .front()
        .status();
  }
  Status Allocate(const std::string& resource) {
    return set_->AskForEach<calls::Allocate>({RequestOf(resource)}, DeadlineAfter(kLong))
        .front()
        .status();
  }

  test::TempDir dir_;
  std::unique_ptr<EndpointSet> set_;
};

Status AllocateTwoCpus(const pb::ResourceRequest& /*request*/,
                       pb::ResourceAllocationResponse& response) {
  auto& info = (*response.mutable_allocation_result()->mutable_resource_allocation())["cpu"];
  info.set_oci_property_name("CpusetCpus");
  info.set_allocation_result("0-1");
  return OkStatus();
}

PluginScript HintsOn(int node) {
  PluginScript script;
  script.hints = [node](const pb::ResourceRequest& request, pb::ResourceHintsResponse& response) {
    pb::HintsEntry& entry = *response.add_resource_hints();
    entry.set_key(request.resource_name());
    entry.mutable_value()->add_hints()->add_nodes(static_cast<uint64_t>(node));
    return OkStatus();
  };
  return script;
}

TEST_F(EndpointSetTest, PluginIsLiveOnlyWhenItIsPrepared) {
  std::promise<std::function<void()>> asked;
  EndpointSetOptions options{.machine_nodes = {0, 1}};
  options.probe.prepare = [&asked](const PluginInfo&, const auto&, std::function<void()> ready) {
    asked.set_value(std::move(ready));
  };
  set_ = std::make_unique<EndpointSet>(std::move(options));
  const ScriptedPlugin plugin(SocketOf("cpu"), {});
  std::promise<Status> registered;
  set_->Register({.resource = "cpu", .socket = SocketOf("cpu")},
                 [&](const Status& status) { registered.set_value(status); });
  const std::function<void()> ready = asked.get_future().get();
  EXPECT_FALSE(set_->Find("cpu").has_value());
  ready();
  EXPECT_TRUE(registered.get_future().get().ok());
  EXPECT_TRUE(InfoOfPlugin("cpu").live);
}

TEST_F(EndpointSetTest, AnswersAreInTheOrderOfTheRequests) {
  const auto cpu = Add("cpu", HintsOn(0));
  const auto memory = Add("memory", HintsOn(1));
  const auto answers = set_->AskForEach<calls::GetTopologyHints>(
      {RequestOf("memory"), RequestOf("cpu")}, DeadlineAfter(kLong));
  ASSERT_TRUE(answers[0].ok() && answers[1].ok());
  EXPECT_EQ(answers[0]->hints().front().nodes, NumaMask{1});
  EXPECT_EQ(answers[1]->hints().front().nodes, NumaMask{0});
}

TEST_F(EndpointSetTest, EachCallIsReportedWithItsMethodAndOutcome) {
  Mutex mutex;
  std::vector<std::string> calls;
  set_ = std::make_unique<EndpointSet>(EndpointSetOptions{
      .machine_nodes = {0, 1}, .on_call = [&](const PluginCallEvent& call) {
        const MutexLock lock(mutex);
        calls.push_back(call.resource + " " + call.method + (call.ok ? " ok" : " failed"));
      }});
  PluginScript script = HintsOn(0);
  script.allocate = [](const auto&, auto&) { return Status(StatusCode::kAborted, "no"); };
  const auto cpu = Add("cpu", script);
  EXPECT_TRUE(Hints("cpu").ok());
  EXPECT_FALSE(Allocate("cpu").ok());
  const MutexLock lock(mutex);
  EXPECT_THAT(calls, testing::ElementsAre("cpu GetTopologyHints ok", "cpu Allocate failed"));
}

TEST_F(EndpointSetTest, CallsRunInParallel) {
  // Each plugin answers only when the other one has been asked as well.
  auto asked = std::make_shared<std::atomic<int>>(0);
  PluginScript script;
  script.hints = [asked](const auto&, auto&) {
    ++*asked;
    return Await([&] { return *asked == 2; }) ? OkStatus() : Status(StatusCode::kAborted, "alone");
  };
  const auto cpu = Add("cpu", script);
  const auto memory = Add("memory", script);
  for (const auto& answer : set_->AskForEach<calls::GetTopologyHints>(
           {RequestOf("cpu"), RequestOf("memory")}, DeadlineAfter(kLong))) {
    EXPECT_TRUE(answer.ok()) << answer.status();
  }
}

TEST_F(EndpointSetTest, PluginThatHangsCostsOnlyItsDeadline) {
  std::promise<void> release;
  PluginScript hanging;
  hanging.hints = [released = release.get_future().share()](const auto&, auto&) {
    released.wait();
    return OkStatus();
  };
  const auto cpu = Add("cpu", hanging);
  const auto memory = Add("memory", HintsOn(1));
  const auto answers = set_->AskForEach<calls::GetTopologyHints>(
      {RequestOf("cpu"), RequestOf("memory")}, DeadlineAfter(kShort));
  release.set_value();
  EXPECT_EQ(answers[0].status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(answers[0].status()),
              AllOf(HasSubstr("plugin cpu"), HasSubstr(SocketOf("cpu"))));
  EXPECT_TRUE(answers[1].ok());
  EXPECT_THAT(InfoOfPlugin("cpu").problem, HasSubstr("suspect"));
}

TEST_F(EndpointSetTest, DeadPluginFailsAtOnceWithNameSocketAndCure) {
  auto cpu = Add("cpu", HintsOn(0));
  cpu.reset();
  ASSERT_TRUE(Await([&] { return !InfoOfPlugin("cpu").live; }));
  const Status failed = Hints("cpu");
  EXPECT_EQ(failed.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(failed), AllOf(HasSubstr("plugin cpu"), HasSubstr(SocketOf("cpu")),
                                       HasSubstr("restart the plugin")));
}

TEST_F(EndpointSetTest, PluginThatDiesInACallFailsTheCall) {
  std::promise<void> asked;
  std::promise<void> release;
  PluginScript script;
  script.hints = [&asked, released = release.get_future().share()](const auto&, auto&) {
    asked.set_value();
    released.wait();
    return OkStatus();
  };
  auto cpu = Add("cpu", script);
  auto failed = std::async(std::launch::async, [&] { return Hints("cpu"); });
  asked.get_future().wait();
  auto gone = std::async(std::launch::async, [&] { cpu.reset(); });
  EXPECT_FALSE(failed.get().ok());
  release.set_value();
  gone.get();
}

TEST_F(EndpointSetTest, PluginThatIsBackOnItsSocketIsLiveWithinTwoSeconds) {
  auto cpu = Add("cpu", HintsOn(0));
  cpu.reset();
  ASSERT_TRUE(Await([&] { return !InfoOfPlugin("cpu").live; }));
  cpu = std::make_unique<ScriptedPlugin>(SocketOf("cpu"), HintsOn(0));
  EXPECT_TRUE(Await([&] { return InfoOfPlugin("cpu").live; }, std::chrono::seconds(2)));
  EXPECT_TRUE(Hints("cpu").ok());
}

TEST_F(EndpointSetTest, RegistrationLossAndReturnAreReported) {
  Mutex mutex;
  std::vector<std::string> reported;
  EndpointSetOptions options{.machine_nodes = {0, 1}};
  options.probe.interval = std::chrono::milliseconds(50);
  options.probe.on_change = [&](const std::string&, const std::string& what) {
    const MutexLock lock(mutex);
    reported.push_back(what);
  };
  const auto reports = [&](const char* what) {
    return Await([&] {
      const MutexLock lock(mutex);
      return !reported.empty() && reported.back().find(what) != std::string::npos;
    });
  };
  set_ = std::make_unique<EndpointSet>(std::move(options));
  auto cpu = Add("cpu", HintsOn(0));
  EXPECT_TRUE(reports("cpu.sock has registered"));
  cpu.reset();
  EXPECT_TRUE(reports("cpu.sock is not running: "));
  cpu = std::make_unique<ScriptedPlugin>(SocketOf("cpu"), HintsOn(0));
  EXPECT_TRUE(reports("cpu.sock is running again"));
  set_.reset();
}

TEST_F(EndpointSetTest, RejectionIsPassedOnAndDoesNotMakeAPluginSuspect) {
  PluginScript script;
  script.allocate = [](const auto&, auto&) {
    return Status(StatusCode::kResourceExhausted, "cannot place main: 4 CPUs are free");
  };
  const auto cpu = Add("cpu", script);
  const Status refused = Allocate("cpu");
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused), HasSubstr("cannot place main: 4 CPUs are free"));
  EXPECT_EQ(InfoOfPlugin("cpu").problem, "");
}

struct HostileAnswer {
  std::string name;
  std::function<void(pb::ResourceAllocationResponse&)> spoil;
  std::string sentence;
};

class HostileAnswerTest : public EndpointSetTest,
                          public testing::WithParamInterface<HostileAnswer> {};

TEST_P(HostileAnswerTest, FailsTheCallAndMarksThePluginSuspectUntilItAnswersWell) {
  auto hostile = std::make_shared<std::atomic<bool>>(true);
  PluginScript script;
  script.allocate = [hostile](const auto& request, pb::ResourceAllocationResponse& response) {
    Status allocated = AllocateTwoCpus(request, response);
    if (*hostile) {
      GetParam().spoil(response);
    }
    return allocated;
  };
  const auto cpu = Add("cpu", script);
  const Status failed = Allocate("cpu");
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(failed), AllOf(HasSubstr("plugin cpu"), HasSubstr(GetParam().sentence)));
  EXPECT_THAT(InfoOfPlugin("cpu").problem, HasSubstr("suspect"));
  *hostile = false;
  EXPECT_TRUE(Allocate("cpu").ok());
  EXPECT_EQ(InfoOfPlugin("cpu").problem, "");
}

pb::ResourceAllocationInfo& InfoOf(pb::ResourceAllocationResponse& response) {
  return (*response.mutable_allocation_result()->mutable_resource_allocation())["cpu"];
}

const HostileAnswer kHostileAnswers[] = {
    {"OtherPod", [](auto& response) { response.set_pod_uid("somebody"); }, "for container"},
    {"OtherResource", [](auto& response) { response.set_resource_name("memory"); },
     "for resource memory"},
    {"NotANumber",
     [](auto& response) {
       InfoOf(response).set_allocated_quantity(std::numeric_limits<double>::quiet_NaN());
     },
     "finite number"},
    {"CpusThatAreNoList",
     [](auto& response) { InfoOf(response).set_allocation_result("all of them"); },
     "CPU list \"all of them\""},
    {"NodeBeyondAnyMachine",
     [](auto& response) {
       InfoOf(response).mutable_resource_hints()->add_hints()->add_nodes(uint64_t{1} << 40);
     },
     "NUMA node 1099511627776"},
    {"NodeThatTheMachineLacks",
     [](auto& response) { InfoOf(response).mutable_resource_hints()->add_hints()->add_nodes(5); },
     "5"},
    {"TooLarge",
     [](auto& response) { (*InfoOf(response).mutable_envs())["X"] = std::string(20 << 20, 'x'); },
     "cannot be read"},
};
INSTANTIATE_TEST_SUITE_P(Answers, HostileAnswerTest, testing::ValuesIn(kHostileAnswers),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_F(EndpointSetTest, HintForNodeThatDoesNotExistBreaksTheProtocol) {
  const auto cpu = Add("cpu", HintsOn(7));
  const Status failed = Hints("cpu");
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(failed), HasSubstr("7"));
}

TEST_F(EndpointSetTest, PluginStaysSuspectUntilItAnswersTheSameCallWell) {
  auto node = std::make_shared<std::atomic<int>>(7);  // the machine does not have it
  PluginScript script;
  script.hints = [node](const pb::ResourceRequest& request, pb::ResourceHintsResponse& response) {
    return HintsOn(*node).hints(request, response);
  };
  script.allocate = AllocateTwoCpus;
  const auto cpu = Add("cpu", script);
  EXPECT_FALSE(Hints("cpu").ok());
  EXPECT_TRUE(Allocate("cpu").ok());
  EXPECT_THAT(InfoOfPlugin("cpu").problem, HasSubstr("suspect"));
  *node = 1;
  EXPECT_TRUE(Hints("cpu").ok());
  EXPECT_EQ(InfoOfPlugin("cpu").problem, "");
}

TEST_F(EndpointSetTest, PluginThatPlacedWronglyStaysSuspectUntilItPlacesWell) {
  PluginScript script = HintsOn(1);
  script.allocate = AllocateTwoCpus;
  const auto cpu = Add("cpu", script);
  set_->MarkSuspect("cpu", "it gave CPU 3, which another container owns");
  EXPECT_TRUE(Hints("cpu").ok());
  EXPECT_THAT(InfoOfPlugin("cpu").problem, HasSubstr("suspect: it gave CPU 3"));
  EXPECT_TRUE(Allocate("cpu").ok());
  EXPECT_EQ(InfoOfPlugin("cpu").problem, "");
}

TEST_F(EndpointSetTest, RemovePodNotifiesEachPluginAndReportsEach) {
  std::atomic<int> removed = 0;
  PluginScript script;
  script.remove_pod = [&](const pb::RemovePodRequest& request, auto&) {
    removed += request.pod_uid() == "uid-1" ? 1 : 0;
    return OkStatus();
  };
  const auto cpu = Add("cpu", script);
  auto memory = Add("memory", script);
  memory.reset();
  ASSERT_TRUE(Await([&] { return !InfoOfPlugin("memory").live; }));
  const auto told =
      set_->Tell<calls::RemovePod>({"cpu", "memory", "nobody"}, "uid-1", DeadlineAfter(kLong));
  EXPECT_TRUE(told.at("cpu").ok());
  EXPECT_EQ(told.at("memory").code(), StatusCode::kUnavailable);
  EXPECT_EQ(told.at("nobody").code(), StatusCode::kNotFound);
  EXPECT_EQ(removed, 1);
}

TEST_F(EndpointSetTest, ReleaseOfPluginWithoutExtensionsIsUnimplemented) {
  const auto cpu = Add("cpu", {});
  EXPECT_EQ(set_->Tell<calls::ReleaseContainer>({"cpu"}, {"uid-1", "main"}, DeadlineAfter(kLong))
                .at("cpu")
                .code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(set_->Tell<calls::GetPools>({"cpu"}, "cpu", DeadlineAfter(kLong)).at("cpu").code(),
            StatusCode::kUnimplemented);
}

TEST_F(EndpointSetTest, ReconcileAsksLivePluginsThatWantIt) {
  PluginScript script;
  script.reconcile = [](const auto&, pb::GetResourcesAllocationResponse& response) {
    (*response.mutable_pod_resources())["uid-1"];
    return OkStatus();
  };
  PluginScript unwilling = script;
  unwilling.options = [](const auto&, auto&) { return OkStatus(); };
  const auto cpu = Add("cpu", script);
  const auto nic = Add("nic", unwilling);
  std::promise<AllocationsByPlugin> answered;
  AskHoldings([&](AllocationsByPlugin answers) { answered.set_value(std::move(answers)); });
  const AllocationsByPlugin answers = answered.get_future().get();
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers.at("cpu").ok());
}

TEST_F(EndpointSetTest, ReconcileOfOneAsksNoOther) {
  const auto cpu = Add("cpu", {});
  const auto memory = Add("memory", {});
  std::promise<AllocationsByPlugin> answered;
  set_->AskAll<calls::GetResourcesAllocation>(
      {"memory"}, {}, DeadlineAfter(kLong),
      [&](AllocationsByPlugin answers) { answered.set_value(std::move(answers)); });
  const AllocationsByPlugin answers = answered.get_future().get();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers.contains("memory"));
}

TEST_F(EndpointSetTest, RegistersWhileCallsRun) {
  const auto cpu = Add("cpu", HintsOn(0));
  std::atomic<bool> stop = false;
  auto calls = std::async(std::launch::async, [&] {
    int failures = 0;
    while (!stop) {
      failures += Hints("cpu").ok() ? 0 : 1;
    }
    return failures;
  });
  for (int i = 0; i < 50; ++i) {
    std::promise<Status> registered;
    set_->Register({.resource = "cpu", .socket = SocketOf("cpu")},
                   [&](const Status& status) { registered.set_value(status); });
    EXPECT_TRUE(registered.get_future().get().ok());
  }
  stop = true;
  EXPECT_EQ(calls.get(), 0);
}

TEST_F(EndpointSetTest, EndsWithCallsInFlight) {
  std::promise<void> release;
  PluginScript script;
  script.reconcile = [released = release.get_future().share()](const auto&, auto&) {
    released.wait();
    return OkStatus();
  };
  const auto cpu = Add("cpu", script);
  std::atomic<bool> called = false;
  AskHoldings([&](const AllocationsByPlugin&) { called = true; });
  set_.reset();
  EXPECT_TRUE(called) << "a call that ends early still answers, before the set is gone";
  release.set_value();
}

}  // namespace
}  // namespace qrm::manager::endpoint_set_test
