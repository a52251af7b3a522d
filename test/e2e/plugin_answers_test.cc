// What becomes of the answers of plugins that do not know qrm's extensions, as admissions and
// readers of the pod-resources socket see it, on a simulated runtime.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/fake_pod_resources.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::test::plugin_answers_test {
namespace {

namespace pb = ::resourceplugin::v1alpha1;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kWidget[] = "example.com/widget";
constexpr char kGpu[] = "nvidia.com/gpu";

/// CPUs 0-3 are on node 0, CPUs 4-7 on node 1. All containers of the role "widget" request a widget
/// and a NIC.
constexpr char kConfig[] = R"(
machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1"
required-plugins: []
implicit-resources:
- {resource: example.com/widget, roles: [widget]}
- {resource: NIC, roles: [widget]}
)";

PodSpec Pod(const std::string& name, const StringMap& annotations = {}) {
  return {.name = name,
          .uid = "uid-" + name,
          .labels = {{"katalyst.kubewharf.io/pod_role", "widget"}},
          .annotations = annotations,
          .container = {.milli_cpus = 1000, .memory_bytes = 64 << 20}};
}

/// Await for conditions that call the pod-resources socket, which limits calls.
template <typename Condition>
bool AwaitAnswer(const Condition& condition) {
  return Await(condition, std::chrono::seconds(15), std::chrono::milliseconds(50));
}

/// What a plugin gives to `request`.
using Give = std::function<AllocationByResource(const pb::ResourceRequest& request)>;

class PluginAnswersTest : public testing::Test {
 protected:
  void Start(const std::string& keys = "", const std::string& builtin_plugins = "") {
    std::ofstream(dir_ / "qrmd.yaml") << kConfig << keys;
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = builtin_plugins,
                      .reconcile_period = "500ms",
                      .metrics_address = "127.0.0.1:0",
                      .flags = {"--kubelet-pod-resources-socket=" + kubelet_socket_}});
    ASSERT_TRUE(IsOk(node_->Start(0)));
  }

  /// A plugin without topology alignment, unless the script has hints.
  std::unique_ptr<ScriptedPlugin> Serve(const std::string& resource, const Give& give,
                                        PluginScript script = {}) {
    script.identity = IdentityFor(resource);
    if (!script.options) {
      const bool aligns = script.hints != nullptr;
      const bool reconciles = script.reconcile != nullptr;
      script.options = [aligns, reconciles](const auto&, auto& options) {
        options.set_with_topology_alignment(aligns);
        options.set_need_reconcile(reconciles);
        return OkStatus();
      };
    }
    script.allocate = [give](const pb::ResourceRequest& request,
                             pb::ResourceAllocationResponse& response) {
      QRM_ASSIGN_OR_RETURN(const ContainerRequest asked, wire::FromWire(request));
      response = wire::AllocationResponse(asked, give(request));
      return OkStatus();
    };
    script.remove_pod = [](const auto&, auto&) { return OkStatus(); };
    const std::string socket = "node/plugins/plugin" + std::to_string(plugins_++) + ".sock";
    auto plugin = std::make_unique<ScriptedPlugin>(dir_ / socket, std::move(script));
    EXPECT_TRUE(Await([&] {
      const auto known = node_->ListPlugins().value_or(std::vector<v1::Plugin>());
      return std::any_of(known.begin(), known.end(), [&](const v1::Plugin& each) {
        return each.resource_name() == resource && each.live();
      });
    }));
    return plugin;
  }
  static Give Gives(const std::string& resource, const ResourceAllocation& allocation) {
    return [=](const auto&) { return AllocationByResource{{resource, allocation}}; };
  }

  ::v1::AllocatableResourcesResponse Allocatable() const {
    const auto answer = node_->GetAllocatableResources();
    EXPECT_TRUE(IsOk(answer.status()));
    return answer.value_or(::v1::AllocatableResourcesResponse());
  }
  /// The pod's first container, as List has it.
  ::v1::ContainerResources Listed(const std::string& pod) const {
    const auto list = node_->ListPodResources().value_or(::v1::ListPodResourcesResponse());
    for (const ::v1::PodResources& listed : list.pod_resources()) {
      if (listed.name() == pod && listed.containers_size() > 0) {
        return listed.containers(0);
      }
    }
    return {};
  }
  std::string Metrics() const { return node_->Metrics(); }
  /// The properties of the pod's container, by their JSON names.
  nlohmann::json PropertiesOf(const std::string& pod) const {
    const auto options = runtime_.RunOptions(pod);
    const auto resources = options.find("linux_container_resources");
    return resources == options.end() ? nlohmann::json::object() : nlohmann::json(*resources);
  }

  TempDir dir_;
  const std::string kubelet_socket_ = dir_ / "pod-resources.sock";
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
  int plugins_ = 0;
};

TEST_F(PluginAnswersTest, ARelativePathOfAMountRejectsTheContainerWithASentence) {
  Start();
  ResourceAllocation allocation{.quantity = 1};
  allocation.mounts = {{"/data", "srv/data", true}};
  const auto plugin = Serve(kWidget, Gives(kWidget, allocation));
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("web"))),
              AllOf(HasSubstr("mount of \"srv/data\" at \"/data\""),
                    HasSubstr("is not absolute; begin it with /")));
}

/// What the plugin of widgets offers.
Status OfferWidgets(const pb::GetTopologyAwareAllocatableResourcesRequest&,
                    pb::GetTopologyAwareAllocatableResourcesResponse& response) {
  auto& widgets = (*response.mutable_allocatable_resources())[kWidget];
  widgets.set_aggregated_allocatable_quantity(3);
  widgets.set_aggregated_capacity_quantity(4);
  return OkStatus();
}

TEST_F(PluginAnswersTest, AllocatableResourcesStayWhileTheirPluginIsNotRunning) {
  Start();
  auto plugin = Serve(kWidget, Gives(kWidget, {.quantity = 1}), {.allocatable = OfferWidgets});
  const auto is_listed = [this] { return Allocatable().resources_size() == 1; };
  ASSERT_TRUE(AwaitAnswer(is_listed));
  EXPECT_THAT(Metrics(), HasSubstr("qrm_pod_resources_answer_age_seconds{source=\"example.com/"
                                   "widget\"} 0\n"));
  plugin.reset();
  ASSERT_TRUE(AwaitAnswer([&] {
    EXPECT_TRUE(is_listed());
    return Metrics().find("qrm_allocatable_errors_total{resource=\"example.com/widget\"} 1") !=
           std::string::npos;
  }));
  EXPECT_EQ(Allocatable().resources(0).aggregated_allocatable_quantity(), 3);
  EXPECT_THAT(Metrics(), Not(HasSubstr("answer_age_seconds{source=\"example.com/widget\"} 0\n")));
}

TEST_F(PluginAnswersTest, AllocatableResourcesAreKeptNoLongerThanConfigured) {
  Start("pod-resources-keep-answers: 0s\n");
  auto plugin = Serve(kWidget, Gives(kWidget, {.quantity = 1}), {.allocatable = OfferWidgets});
  ASSERT_TRUE(AwaitAnswer([this] { return Allocatable().resources_size() == 1; }));
  plugin.reset();
  EXPECT_TRUE(AwaitAnswer([this] { return Allocatable().resources_size() == 0; }));
}

TEST_F(PluginAnswersTest, DevicesStayAllocatableWhileKubeletFailsToReportThem) {
  FakeKubelet kubelet(kubelet_socket_);
  kubelet.SetAllocatable({kGpu, "gpu-0", {1}});
  Start();
  ASSERT_THAT(Allocatable().devices(), SizeIs(1));
  EXPECT_THAT(Metrics(), HasSubstr("\nqrm_kubelet_pod_resources_errors_total 0\n"));
  kubelet.FailAllocatable();
  ASSERT_TRUE(AwaitAnswer([this] {
    EXPECT_THAT(Allocatable().devices(), SizeIs(1));
    return Metrics().find("\nqrm_kubelet_pod_resources_errors_total 0\n") == std::string::npos;
  }));
  EXPECT_THAT(Metrics(), Not(HasSubstr("answer_age_seconds{source=\"kubelet\"} 0\n")));
}

/// The entry of `resource` in an answer with resources; an empty one if there is none.
template <typename Answer>
auto ResourceIn(const Answer& answer, const std::string& resource) {
  const auto& list = answer.resources();
  const auto found = std::find_if(
      list.begin(), list.end(), [&](const auto& each) { return each.resource_name() == resource; });
  using Resource = std::decay_t<decltype(*found)>;
  return found == list.end() ? Resource() : *found;
}

TEST_F(PluginAnswersTest, AllocatablePlacesKeepTheirSocketsNamesTypesAndAnnotations) {
  Start();
  const auto plugin = Serve(
      kWidget, Gives(kWidget, {.quantity = 1}), {.allocatable = [](const auto&, auto& response) {
        auto& widgets = (*response.mutable_allocatable_resources())[kWidget];
        widgets.set_aggregated_allocatable_quantity(3);
        widgets.set_aggregated_capacity_quantity(4);
        for (auto* list : {widgets.mutable_topology_aware_allocatable_quantity_list(),
                           widgets.mutable_topology_aware_capacity_quantity_list()}) {
          pb::TopologyAwareQuantity& place = *list->Add();
          place.set_resource_value(4);
          place.set_node(1);
          place.set_name("eth0");
          place.set_type("NIC");
          place.set_topology_level(pb::SOCKET);
          (*place.mutable_annotations())["netns"] = "ns2";
        }
        return OkStatus();
      }});
  ASSERT_TRUE(AwaitAnswer([this] { return Allocatable().resources_size() == 1; }));
  const auto widgets = ResourceIn(Allocatable(), kWidget);
  for (const auto* list : {&widgets.topology_aware_allocatable_quantity_list(),
                           &widgets.topology_aware_capacity_quantity_list()}) {
    ASSERT_THAT(*list, SizeIs(1));
    EXPECT_EQ(list->at(0).resource_value(), 4);
    EXPECT_EQ(list->at(0).node(), 1u);
    EXPECT_EQ(list->at(0).name(), "eth0");
    EXPECT_EQ(list->at(0).type(), "NIC");
    EXPECT_EQ(list->at(0).topology_level(), ::v1::SOCKET);
    EXPECT_EQ(list->at(0).annotations().at("netns"), "ns2");
  }
}

TEST_F(PluginAnswersTest, TheBuiltInNicIsAllocatableWithItsAmountAndNode) {
  Start("plugins: {nic: {follow: none, nics: [{interface: eth1, numa-node: 1}]}}\n", "nic");
  const auto offered = ResourceIn(Allocatable(), "NIC");
  ASSERT_THAT(offered.topology_aware_allocatable_quantity_list(), SizeIs(1));
  const auto& place = offered.topology_aware_allocatable_quantity_list(0);
  EXPECT_EQ(place.resource_value(), 1);
  EXPECT_EQ(place.node(), 1u);
  EXPECT_EQ(place.name(), "eth1");
  EXPECT_EQ(place.type(), "NIC");
}

TEST_F(PluginAnswersTest, TheOriginalQuantityStaysWhatWasAdmitted) {
  Start("plugins: {cpu: {pools: {online: {cpus: \"0-6\", roles: [widget]}}}}\n", "cpu");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web"))));
  EXPECT_EQ(ResourceIn(Listed("web"), "cpu").aggregated_quantity(), 7);
  ASSERT_TRUE(IsOk(node_->Qrmctl({"pool", "set", "online=0-4"}).status()));
  ASSERT_TRUE(
      AwaitAnswer([this] { return ResourceIn(Listed("web"), "cpu").aggregated_quantity() == 5; }));
  const auto cpu = ResourceIn(Listed("web"), "cpu");
  EXPECT_EQ(cpu.original_aggregated_quantity(), 7);
  ASSERT_THAT(cpu.original_topology_aware_quantity_list(), SizeIs(2));
  EXPECT_EQ(cpu.original_topology_aware_quantity_list(1).resource_value(), 3);
  EXPECT_EQ(cpu.topology_aware_quantity_list(1).resource_value(), 1);
}

/// CPUs as a plugin gives them that knows no extension.
ResourceAllocation Cpus(const std::string& cpus, const std::map<uint64_t, uint64_t>& by_node) {
  return {.oci_property = std::string(kCpusetCpus),
          .value = cpus,
          .is_scalar_resource = true,
          .quantity = static_cast<double>(CpuSet::Parse(cpus)->Count()),
          .amount_by_node = by_node};
}

/// Answers GetResourcesAllocation with `allocation` for the container of each pod of `pods`.
PluginScript Reconciles(const std::vector<std::string>& pods,
                        const std::function<ResourceAllocation()>& allocation) {
  return {.reconcile = [=](const auto&, pb::GetResourcesAllocationResponse& response) {
    for (const std::string& pod : pods) {
      auto& given = (*response.mutable_pod_resources())["uid-" + pod];
      (*(*given.mutable_container_resources())["container0"].mutable_resource_allocation())["cpu"] =
          wire::ToWire(allocation());
    }
    return OkStatus();
  }};
}

TEST_F(PluginAnswersTest, TheNodeOfCpusThatAPluginMovedIsListed) {
  Start("exclusive-cpu-plugins: [cpu]\n");
  std::atomic<bool> moved = false;
  const auto plugin = Serve(
      "cpu", Gives("cpu", Cpus("0-1", {{0, 2}})),
      Reconciles({"web"}, [&moved] { return moved ? Cpus("6-7", {}) : Cpus("0-1", {{0, 2}}); }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web"))));
  EXPECT_EQ(ResourceIn(Listed("web"), "cpu").topology_aware_quantity_list(0).node(), 0u);
  moved = true;
  ASSERT_TRUE(AwaitAnswer([this] { return PropertiesOf("web").value("cpusetCpus", "") == "6-7"; }));
  const auto cpu = ResourceIn(Listed("web"), "cpu");
  ASSERT_THAT(cpu.topology_aware_quantity_list(), SizeIs(1));
  EXPECT_EQ(cpu.topology_aware_quantity_list(0).node(), 1u);
}

/// Fails every call for hints.
PluginScript FailsHints() {
  return {
      .hints = [](const auto&, auto&) { return Errorf(StatusCode::kInternal, "no hints today"); }};
}

TEST_F(PluginAnswersTest, AFailingHintCallRejectsNoPodUnderBestEffort) {
  Start("topology-policy: best-effort\n");
  const auto plugin = Serve("cpu", Gives("cpu", Cpus("2", {})), FailsHints());
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("web"))));
  EXPECT_EQ(PropertiesOf("web").value("cpusetCpus", ""), "2");
  EXPECT_THAT(node_->Qrmctl({"explain", "web"}).value_or(""), HasSubstr("no hints today"));
}

TEST_F(PluginAnswersTest, AFailingHintCallRejectsPodsUnderRestricted) {
  Start("topology-policy: restricted\n");
  const auto plugin = Serve("cpu", Gives("cpu", Cpus("2", {})), FailsHints());
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("web"))), HasSubstr("no hints today"));
}

TEST_F(PluginAnswersTest, AFailingAllocationRejectsPodsUnderBestEffort) {
  Start("topology-policy: best-effort\n");
  PluginScript script = FailsHints();
  const auto plugin = Serve("cpu", Gives("cpu", Cpus("9", {})), script);
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("web"))), HasSubstr("9 are not online"));
}

TEST_F(PluginAnswersTest, AnEmptyCpusetRejectsNoPodAndIsAskedForAgain) {
  Start();
  std::atomic<bool> decided = false;
  const auto plugin = Serve("cpu", [&decided](const auto&) {
    return AllocationByResource{{"cpu", Cpus(decided ? "3" : "", {})}};
  });
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web"))));
  EXPECT_THAT(node_->Qrmctl({"pods", "-o", "wide"}).value_or(""), HasSubstr("qrmd asks again"));
  decided = true;
  EXPECT_TRUE(AwaitAnswer([this] { return PropertiesOf("web").value("cpusetCpus", "") == "3"; }));
}

const StringMap kDedicated = {{"katalyst.kubewharf.io/qos_level", "dedicated_cores"}};

TEST_F(PluginAnswersTest, DedicatedCpusOfAPluginWithoutExtensionsHaveOneOwnerAndAreListed) {
  Start();
  const auto plugin = Serve("cpu", Gives("cpu", Cpus("2-3", {})));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("owner", kDedicated))));
  EXPECT_THAT(Listed("owner").cpu_ids(), ElementsAre(2, 3));
  for (const StringMap& annotations : {kDedicated, StringMap()}) {
    EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("other", annotations))),
                HasSubstr("2-3 belong to container container0 of pod default/owner"));
  }
  // Katalyst's sidecars run on the CPUs of their main container.
  EXPECT_TRUE(IsOk(runtime_.AddContainer("owner", {.name = "sidecar", .milli_cpus = 100})));
}

TEST_F(PluginAnswersTest, SharedCpusOfAPluginWithoutExtensionsAreNotListed) {
  Start();
  const auto plugin = Serve("cpu", Gives("cpu", Cpus("2-3", {{0, 2}})));
  for (const char* pod : {"a", "b"}) {
    ASSERT_TRUE(IsOk(runtime_.RunPod(Pod(pod))));
    EXPECT_THAT(Listed(pod).cpu_ids(), IsEmpty());
  }
}

TEST_F(PluginAnswersTest, CpusOfAPluginThatTheConfigurationNamesAreExclusive) {
  Start("exclusive-cpu-plugins: [cpu]\n");
  const auto plugin = Serve("cpu", Gives("cpu", Cpus("2-3", {})));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("owner"))));
  EXPECT_THAT(Listed("owner").cpu_ids(), ElementsAre(2, 3));
  EXPECT_FALSE(runtime_.RunPod(Pod("other")).ok());
}

/// An allocation of widgets that sets `property`.
ResourceAllocation Sets(const std::string& property, const std::string& value) {
  return {.oci_property = property, .value = value, .quantity = 1};
}

class CgroupVersionTest : public PluginAnswersTest {
 protected:
  /// A cgroup-root of that version with a hierarchy of memory.
  void StartOn(const std::string& file) {
    const std::filesystem::path root = dir_ / "cgroup";
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << "cpuset cpu io memory\n";
    Start("cgroup-root: " + root.string() + "\n");
  }
};

TEST_F(CgroupVersionTest, FilesOfCgroup2AndHugepageLimitsOfAPluginAreSet) {
  StartOn("cgroup.controllers");
  const auto files = Serve(
      kWidget, Gives(kWidget, Sets("Unified", R"({"io.weight": "50", "memory.oom.group": "1"})")));
  const auto limits =
      Serve("NIC", Gives("NIC", Sets("HugepageLimits", R"([{"page_size": "2MB", "limit": 8}])")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web"))));
  const nlohmann::json set = PropertiesOf("web");
  EXPECT_EQ(set["unified"], (nlohmann::json{{"io.weight", "50"}, {"memory.oom.group", "1"}}));
  EXPECT_EQ(set["hugepageLimits"], (nlohmann::json{{"2MB", 8}}));
}

TEST_F(CgroupVersionTest, FilesOfCgroup2AreRejectedOnCgroup1WithTheReason) {
  StartOn("memory/cgroup.procs");
  const auto plugin = Serve(kWidget, Gives(kWidget, Sets("Unified", R"({"io.weight": "50"})")));
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("web"))), HasSubstr("this node has cgroup v1"));
}

TEST_F(CgroupVersionTest, FilesThatPluginsMayNotSetAreRejected) {
  StartOn("cgroup.controllers");
  const auto plugin = Serve(kWidget, Gives(kWidget, Sets("Unified", R"({"memory.max": "1"})")));
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("web"))),
              AllOf(HasSubstr("cannot set \"memory.max\""), HasSubstr("io.weight")));
}

}  // namespace
}  // namespace qrm::test::plugin_answers_test
