// The conformance test against plugins that follow the protocol, and plugins that break it.
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"
#include "tools/plugin_check/check_command.h"

namespace qrm::manager::conformance_test {
namespace {

using test::PluginScript;
using test::ScriptedPlugin;
using testing::HasSubstr;
using testing::Not;
namespace pb = ::resourceplugin::v1alpha1;

constexpr std::size_t kCpus = 4;
constexpr char kMachine[] = "synthetic:package:1 [numa] core:4 pu:1";

/// A plugin that does everything right: CPU n for the n-th container.
class GoodPlugin {
 public:
  PluginScript Script() {
    PluginScript script;
    script.identity = test::IdentityFor("cpu");
    script.hints = [](const pb::ResourceRequest& message, pb::ResourceHintsResponse& response) {
      const auto request = wire::FromWire(message);
      if (request.ok()) {
        response = wire::HintsResponse(
            *request, std::vector<TopologyHint>{{.nodes = {0}, .preferred = true}});
      }
      return request.status();
    };
    script.allocate = [this](const pb::ResourceRequest& message,
                             pb::ResourceAllocationResponse& response) {
      return Allocate(message, response);
    };
    script.remove_pod = [this](const pb::RemovePodRequest& request, pb::RemovePodResponse&) {
      const MutexLock lock(mutex_);
      std::erase_if(given_,
                    [&](const auto& entry) { return entry.first.pod_uid == request.pod_uid(); });
      return OkStatus();
    };
    script.reconcile = [this](const pb::GetResourcesAllocationRequest&,
                              pb::GetResourcesAllocationResponse& response) {
      const MutexLock lock(mutex_);
      response = wire::ToWire(given_);
      return OkStatus();
    };
    return script;
  }

 private:
  Status Allocate(const pb::ResourceRequest& message, pb::ResourceAllocationResponse& response) {
    QRM_ASSIGN_OR_RETURN(const ContainerRequest request, wire::FromWire(message));
    const MutexLock lock(mutex_);
    if (!given_.contains(request.key) && given_.size() == kCpus) {
      return Errorf(StatusCode::kResourceExhausted, "no CPU is free; remove a pod");
    }
    auto& given = given_[request.key];
    if (given.empty()) {
      given["cpu"] = ResourceAllocation{.oci_property = std::string(kCpusetCpus),
                                        .value = std::to_string(given_.size() - 1),
                                        .quantity = 1,
                                        .exclusive = true};
    }
    response = wire::AllocationResponse(request, given);
    return OkStatus();
  }

  Mutex mutex_;
  AllocationByContainer given_ QRM_GUARDED_BY(mutex_);
};

class ConformanceTest : public testing::Test {
 protected:
  int Check(const PluginScript& script, std::vector<std::string> flags = {}) {
    const ScriptedPlugin plugin(dir_ / "cpu.sock", script);
    return CheckSocket(std::move(flags));
  }

  int CheckSocket(std::vector<std::string> flags = {}) {
    std::vector<std::string> arguments = {dir_ / "cpu.sock", "--machine", kMachine, "--timeout-ms",
                                          "1000"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunPluginCheck(std::move(arguments), out_, err_);
  }

  test::TempDir dir_;
  GoodPlugin good_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(ConformanceTest, GoodPluginKeepsEveryRule) {
  EXPECT_EQ(Check(good_.Script()), 0) << out_.str() << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("ok      answers GetResourcePluginOptions: "));
  EXPECT_THAT(out_.str(), HasSubstr("ok      allocates for container main: cpu: CpusetCpus=0\n"));
  EXPECT_THAT(out_.str(), HasSubstr("ok      lists its allocations in GetResourcesAllocation: 2"));
  EXPECT_THAT(out_.str(),
              HasSubstr("ok      rejects a request with a sentence when nothing is left: 4 "
                        "containers have theirs; no CPU is free; remove a pod\n"));
  EXPECT_THAT(out_.str(), HasSubstr("ok      forgets what a removed pod had\n"));
  EXPECT_THAT(out_.str(), HasSubstr("ok      gives again what a removed pod had\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("BROKEN")));
}

TEST_F(ConformanceTest, UnimplementedCallsAreSkippedWithTheConsequence) {
  EXPECT_EQ(Check(good_.Script()), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr("skipped says what the node has to offer: the plugin leaves it out"));
}

TEST_F(ConformanceTest, RejectionBreaksNoRule) {
  PluginScript script = good_.Script();
  script.allocate = [](const auto&, auto&) {
    return Errorf(StatusCode::kResourceExhausted, "no lane is free; remove a pod");
  };
  EXPECT_EQ(Check(script), 3);
  EXPECT_THAT(out_.str(),
              HasSubstr("refused allocates for container main: no lane is free; remove a pod; ask "
                        "for what it has with --amount, --role or --label\n"));
  EXPECT_THAT(out_.str(), HasSubstr("ok      removes a pod\n"));
}

TEST_F(ConformanceTest, GoesOnAfterABrokenRule) {
  PluginScript script = good_.Script();
  script.identity.set_type("DevicePlugin");
  script.reconcile = [](const auto&, auto&) { return OkStatus(); };
  EXPECT_EQ(Check(script), 1);
  EXPECT_THAT(out_.str(), HasSubstr("BROKEN  announces itself"));
  EXPECT_THAT(out_.str(), HasSubstr("ok      allocates for container main"));
  EXPECT_THAT(out_.str(), HasSubstr("BROKEN  lists its allocations"));
}

TEST_F(ConformanceTest, ShowsAllThatAContainerGot) {
  PluginScript script = good_.Script();
  script.allocate = [](const pb::ResourceRequest& message,
                       pb::ResourceAllocationResponse& response) {
    QRM_ASSIGN_OR_RETURN(const ContainerRequest request, wire::FromWire(message));
    ResourceAllocation lane{.quantity = 1};
    lane.envs = {{"LANE", "2"}};
    lane.annotations = {{"example.com/lane", "2"}};
    lane.devices = {{"/dev/lane2", "/dev/lane2", "rw"}};
    lane.mounts = {{"/etc/lane", "/run/lanes/2", true}};
    response = wire::AllocationResponse(request, {{"cpu", lane}});
    return OkStatus();
  };
  Check(script);
  EXPECT_THAT(out_.str(), HasSubstr("cpu: no knob= LANE=2 annotation example.com/lane=2 device "
                                    "/dev/lane2 (rw) mount /etc/lane of /run/lanes/2 (read-only)"));
}

TEST_F(ConformanceTest, PluginThatWantsToPrepareContainersIsAskedTo) {
  PluginScript script = good_.Script();
  script.options = [](const auto&, pb::ResourcePluginOptions& options) {
    options.set_with_topology_alignment(true);
    options.set_pre_start_required(true);
    return OkStatus();
  };
  EXPECT_EQ(Check(script), 1);
  EXPECT_THAT(out_.str(), HasSubstr("BROKEN  prepares a container that is about to start: "));
  script.pre_start = [](const auto&, auto&) { return OkStatus(); };
  EXPECT_EQ(Check(script), 0) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("ok      prepares a container that is about to start\n"));
}

TEST_F(ConformanceTest, DeadSocketBreaksTheFirstRule) {
  EXPECT_EQ(CheckSocket(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("BROKEN  answers GetResourcePluginOptions: nothing answers"));
}

TEST_F(ConformanceTest, CommandThatServesNothingIsReported) {
  EXPECT_EQ(RunPluginCheck({dir_ / "cpu.sock", "--machine", kMachine, "--timeout-ms", "50",
                            "--command", "exit 1"},
                           out_, err_),
            1);
  EXPECT_THAT(out_.str(), HasSubstr("BROKEN  serves its socket when it is started: "));
}

struct BrokenPlugin {
  std::string name;
  void (*spoil)(PluginScript& script);
  std::string line;
};

class BrokenPluginTest : public ConformanceTest,
                         public testing::WithParamInterface<BrokenPlugin> {};

TEST_P(BrokenPluginTest, ReportsWhichRuleAndWhy) {
  PluginScript script = good_.Script();
  GetParam().spoil(script);
  EXPECT_EQ(Check(script), 1);
  EXPECT_THAT(out_.str(), HasSubstr("BROKEN  " + GetParam().line));
}

/// `script` allocates `value` for every container, every time.
void AllocateAlways(PluginScript& script, const std::string& property, const std::string& value) {
  script.allocate = [property, value](const pb::ResourceRequest& message,
                                      pb::ResourceAllocationResponse& response) {
    QRM_ASSIGN_OR_RETURN(const ContainerRequest request, wire::FromWire(message));
    response = wire::AllocationResponse(
        request,
        {{"cpu", ResourceAllocation{
                     .oci_property = property, .value = value, .quantity = 1, .exclusive = true}}});
    return OkStatus();
  };
}

const BrokenPlugin kBrokenPlugins[] = {
    {"OtherType", [](PluginScript& script) { script.identity.set_type("DevicePlugin"); },
     "announces itself to the watched directory's manager: its type is \"DevicePlugin\""},
    {"OtherVersion", [](PluginScript& script) { script.identity.set_supported_versions(0, "v9"); },
     "announces itself to the watched directory's manager: cannot register a plugin of version"},
    {"BadName", [](PluginScript& script) { script.identity.set_name("c p u"); },
     "serves a resource with a valid name: cannot use resource name \"c p u\""},
    {"NodeThatIsNotThere",
     [](PluginScript& script) {
       script.hints = [](const auto& message, auto& response) {
         response = wire::HintsResponse(*wire::FromWire(message),
                                        std::vector<TopologyHint>{{.nodes = {7}}});
         return OkStatus();
       };
     },
     "gives hints that this machine can satisfy: a hint contains NUMA node 7"},
    {"AllocationOfNothingKnown", [](PluginScript& script) { AllocateAlways(script, "Cpus", "0"); },
     "allocates for container main: resource cpu: "},
    {"CpuThatIsNotThere", [](PluginScript& script) { AllocateAlways(script, "CpusetCpus", "99"); },
     "allocates for container main: resource cpu: "},
    {"ExclusiveCpuTwice", [](PluginScript& script) { AllocateAlways(script, "CpusetCpus", "1"); },
     "gives exclusive CPUs to one container only: both have 1"},
    {"AnotherAnswerTheSecondTime",
     [](PluginScript& script) {
       script.allocate = [calls = std::make_shared<int>(0)](const auto& message, auto& response) {
         QRM_ASSIGN_OR_RETURN(const ContainerRequest request, wire::FromWire(message));
         response = wire::AllocationResponse(
             request, {{"cpu", ResourceAllocation{.oci_property = "CpusetCpus",
                                                  .value = std::to_string((*calls)++ % 4)}}});
         return OkStatus();
       };
     },
     "gives the same allocation when it is asked again: first cpu: CpusetCpus=0, then"},
    {"GivesAnOwnedCpuToTheThird",
     [](PluginScript& script) {
       script.allocate = [allocate = script.allocate](const auto& message, auto& response) {
         QRM_ASSIGN_OR_RETURN(const ContainerRequest request, wire::FromWire(message));
         if (request.key.container != "more2") {
           return allocate(message, response);
         }
         response = wire::AllocationResponse(
             request,
             {{"cpu",
               ResourceAllocation{
                   .oci_property = "CpusetCpus", .value = "0", .quantity = 1, .exclusive = true}}});
         return OkStatus();
       };
     },
     "rejects a request with a sentence when nothing is left: container more2 got CPUs 0, which "
     "others own"},
    {"ThrowsInsteadOfRefusing",
     [](PluginScript& script) {
       script.allocate = [](const auto&, auto&) {
         return Errorf(StatusCode::kInternal, "cannot finish Allocate: it threw \"out of range\"");
       };
     },
     "allocates for container main: cannot finish Allocate: it threw \"out of range\""},
    {"ThrowsInPython",
     [](PluginScript& script) {
       script.allocate = [](const auto&, auto&) {
         return Errorf(StatusCode::kUnknown, "Exception calling application: list index");
       };
     },
     "allocates for container main: Exception calling application: list index"},
    {"RelativeMount",
     [](PluginScript& script) {
       script.allocate = [](const auto& message, auto& response) {
         QRM_ASSIGN_OR_RETURN(const ContainerRequest request, wire::FromWire(message));
         response = wire::AllocationResponse(
             request, {{"cpu", ResourceAllocation{.mounts = {{"data", "/srv/data", true}}}}});
         return OkStatus();
       };
     },
     "allocates for container main: "},
    {"ReconcileForgets",
     [](PluginScript& script) { script.reconcile = [](const auto&, auto&) { return OkStatus(); }; },
     "lists its allocations in GetResourcesAllocation: container main is missing"},
    {"NonsenseIsTaken",
     [](PluginScript& script) { script.allocate = [](const auto&, auto&) { return OkStatus(); }; },
     "rejects a request without a pod and keeps running: it allocated nothing"},
    {"RemoveForgetsNothing",
     [](PluginScript& script) {
       script.remove_pod = [](const auto&, auto&) { return OkStatus(); };
     },
     "forgets what a removed pod had: container main still has cpu: CpusetCpus=0"},
    {"SecondRemoveFails",
     [](PluginScript& script) {
       script.remove_pod = [first = std::make_shared<bool>(true)](const auto&, auto&) {
         return std::exchange(*first, false) ? OkStatus() : Status(StatusCode::kNotFound, "gone");
       };
     },
     "removes a pod that is gone already: gone"},
};
INSTANTIATE_TEST_SUITE_P(Rules, BrokenPluginTest, testing::ValuesIn(kBrokenPlugins),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_F(ConformanceTest, PluginOfTheDirectPathNeedsItsResourceNamed) {
  PluginScript script = good_.Script();
  script.identity.clear_name();
  EXPECT_EQ(Check(script), 1);
  EXPECT_THAT(out_.str(), HasSubstr("give --resource"));
  out_.str("");
  EXPECT_EQ(Check(script, {"--resource", "cpu"}), 0) << out_.str();
}

TEST_F(ConformanceTest, MisuseSaysWhatToType) {
  EXPECT_EQ(RunPluginCheck({}, out_, err_), 2);
  EXPECT_THAT(err_.str(), HasSubstr("try: qrm-plugin-check --help"));
  EXPECT_EQ(CheckSocket({"--label", "role"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("cannot read \"role\": write KEY=VALUE"));
  EXPECT_EQ(CheckSocket({"--amount", "-1"}), 2);
}

TEST_F(ConformanceTest, PodIsAsTheFlagsDescribeIt) {
  PluginScript script = good_.Script();
  Mutex mutex;
  pb::ResourceRequest asked;
  script.allocate = [&, allocate = script.allocate](const auto& message, auto& response) {
    const MutexLock lock(mutex);
    if (message.container_name() == "main") {
      asked = message;
    }
    return allocate(message, response);
  };
  const ScriptedPlugin plugin(dir_ / "cpu.sock", script);
  EXPECT_EQ(RunPluginCheck(
                {"--label", "a=b", "--label", "c=d", "--annotation", "e=f=g", "--role", "db",
                 "--type", "online", "--amount", "2.5", "--machine", kMachine, dir_ / "cpu.sock"},
                out_, err_),
            0)
      << out_.str() << err_.str();
  EXPECT_EQ(asked.labels_size(), 2);
  EXPECT_EQ(asked.annotations().at("e"), "f=g");
  EXPECT_EQ(asked.pod_role(), "db");
  EXPECT_EQ(asked.pod_type(), "online");
  EXPECT_EQ(asked.resource_requests().at("cpu"), 2.5);
}

}  // namespace
}  // namespace qrm::manager::conformance_test
