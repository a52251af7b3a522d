// The pod-resources API's answers, by the rules that kubelet's clients rely on.
#include "manager/podresources/pod_resources_answers.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "api/proto/podresources/v1/api.pb.h"
#include "api/proto/podresources/v1alpha1/api.pb.h"
#include "manager/podresources/list_cache.h"
#include "test/support/is_ok.h"
#include "test/support/sample_node.h"

namespace qrm::manager::pod_resources_answers_test {
namespace {

using checkpoint::NodeState;
using test::Admit;
using test::AdmitRestartableInit;
using test::IsOk;
using test::kGiB;
using test::NodeMemory;
using test::OwnCpus;
using test::SampleMachine;
using test::SamplePod;
using test::SharedCpus;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

NodeState StateWith(const std::vector<checkpoint::Change>& changes) {
  NodeState state;
  for (const checkpoint::Change& change : changes) {
    state = state.With(change);
  }
  return state;
}

/// The only container of the only pod that List reports.
::v1::ContainerResources ListOnlyContainer(AllocationByResource allocations) {
  const NodeState state = StateWith({Admit(SamplePod("web"), "main", std::move(allocations))});
  const auto response = ListAnswer(state, SampleMachine(), {});
  EXPECT_THAT(response.pod_resources(), SizeIs(1));
  EXPECT_THAT(response.pod_resources(0).containers(), SizeIs(1));
  return response.pod_resources(0).containers(0);
}

::v1alpha1::ListPodResourcesResponse ListV1Alpha1(const NodeState& state,
                                                  const KubeletView& kubelet) {
  ::v1alpha1::ListPodResourcesResponse response;
  EXPECT_TRUE(response.ParseFromString(ListBytesV1Alpha1(state, kubelet)));
  return response;
}

std::vector<std::string> ListedNames(const ::v1::PodResources& pod) {
  std::vector<std::string> names;
  for (const auto& container : pod.containers()) {
    names.push_back(container.name());
  }
  return names;
}

TEST(PodResourcesAnswersTest, ListOfAnEmptyNodeIsEmpty) {
  EXPECT_THAT(ListAnswer(NodeState(), SampleMachine(), {}).pod_resources(), IsEmpty());
}

TEST(PodResourcesAnswersTest, ListNamesThePodWithItsRoleTypeLabelsAndAnnotations) {
  checkpoint::PodMeta pod = SamplePod("web", "shop");
  pod.role = "frontend";
  pod.type = "online";
  pod.annotations = {{"qos", "shared"}};
  const auto response = ListAnswer(StateWith({Admit(pod, "main", {})}), SampleMachine(), {});

  const ::v1::PodResources& listed = response.pod_resources(0);
  EXPECT_EQ(listed.name(), "web");
  EXPECT_EQ(listed.namespace_(), "shop");
  EXPECT_EQ(listed.pod_role(), "frontend");
  EXPECT_EQ(listed.pod_type(), "online");
  EXPECT_EQ(listed.labels().at("app"), "web");
  EXPECT_EQ(listed.annotations().at("qos"), "shared");
}

TEST(PodResourcesAnswersTest, ExclusiveCpusAreListedSorted) {
  const auto container = ListOnlyContainer({{"cpu", OwnCpus("6,1-2")}});
  EXPECT_THAT(container.cpu_ids(), ElementsAre(1, 2, 6));
}

TEST(PodResourcesAnswersTest, SharedCpusAreNotListedAsIds) {
  const auto container = ListOnlyContainer({{"cpu", SharedCpus("0-3", 1)}});
  EXPECT_THAT(container.cpu_ids(), IsEmpty());
}

TEST(PodResourcesAnswersTest, RestartableInitsComeBeforeAppContainersInSpecOrder) {
  const auto pod = SamplePod("web");
  const NodeState state =
      StateWith({Admit(pod, "app-b", {}, ContainerType::kMain, 1),
                 Admit(pod, "app-z", {}, ContainerType::kSidecar, 0),
                 Admit(pod, "app-a", {}, ContainerType::kSidecar, 2),
                 AdmitRestartableInit(pod, "proxy", 3), AdmitRestartableInit(pod, "log", 1)});
  EXPECT_THAT(ListedNames(ListAnswer(state, SampleMachine(), {}).pod_resources(0)),
              ElementsAre("log", "proxy", "app-z", "app-b", "app-a"));
}

TEST(PodResourcesAnswersTest, PlainInitAndEphemeralContainersAreNotListed) {
  const auto pod = SamplePod("web");
  const NodeState state =
      StateWith({Admit(pod, "setup", {}, ContainerType::kInit),
                 Admit(pod, "debug", {}, ContainerType::kEphemeral), Admit(pod, "main", {})});
  EXPECT_THAT(ListedNames(ListAnswer(state, SampleMachine(), {}).pod_resources(0)),
              ElementsAre("main"));
}

TEST(PodResourcesAnswersTest, PodLevelFieldsAreLeftOutWhereNothingIsThePodsAsAWhole) {
  const NodeState state = StateWith({Admit(SamplePod("web"), "main", {{"cpu", OwnCpus("1-2")}})});
  const auto response = ListAnswer(state, SampleMachine(), KubeletView());
  EXPECT_THAT(response.pod_resources(0).cpu_ids(), SizeIs(0));
  EXPECT_THAT(response.pod_resources(0).memory(), SizeIs(0));
}

TEST(PodResourcesAnswersTest, MemoryIsOneBlockPerTypeAndNode) {
  const auto container = ListOnlyContainer({{"memory", NodeMemory({{0, kGiB}, {1, 2 * kGiB}})},
                                            {"hugepages-2Mi", NodeMemory({{1, kGiB}})}});
  ASSERT_THAT(container.memory(), SizeIs(3));
  EXPECT_EQ(container.memory(0).memory_type(), "hugepages-2Mi");
  EXPECT_EQ(container.memory(1).memory_type(), "memory");
  EXPECT_EQ(container.memory(1).size(), kGiB);
  EXPECT_EQ(container.memory(1).topology().nodes(0).id(), 0);
  EXPECT_EQ(container.memory(2).size(), 2 * kGiB);
  EXPECT_EQ(container.memory(2).topology().nodes(0).id(), 1);
}

TEST(PodResourcesAnswersTest, MemoryWithoutAmountsByNodeIsOneBlockOnAllItsNodes) {
  ResourceAllocation memory = NodeMemory({{0, kGiB}, {1, kGiB}});
  memory.amount_by_node.clear();
  const auto container = ListOnlyContainer({{"memory", memory}});
  ASSERT_THAT(container.memory(), SizeIs(1));
  EXPECT_EQ(container.memory(0).size(), 2 * kGiB);
  EXPECT_THAT(container.memory(0).topology().nodes(), SizeIs(2));
}

TEST(PodResourcesAnswersTest, EmptyTopologyIsNeverSent) {
  const auto container = ListOnlyContainer(
      {{"memory", ResourceAllocation{.is_scalar_resource = true, .quantity = 1e9}}});
  ASSERT_THAT(container.memory(), SizeIs(1));
  EXPECT_FALSE(container.memory(0).has_topology());
}

TEST(PodResourcesAnswersTest, ZeroAndImpossibleMemoryIsLeftOut) {
  const auto container = ListOnlyContainer({{"memory", ResourceAllocation{.quantity = 0}},
                                            {"hugepages-1Gi", ResourceAllocation{.quantity = -1}}});
  EXPECT_THAT(container.memory(), IsEmpty());
}

TEST(PodResourcesAnswersTest, ResourcesOfEveryPluginAreListedWithTheirAmountsByNode) {
  ResourceAllocation nic{.is_node_resource = true, .quantity = 10, .amount_by_node = {{1, 10}}};
  const auto container = ListOnlyContainer({{"example.com/nic", nic}});
  ASSERT_THAT(container.resources(), SizeIs(1));
  const ::v1::TopologyAwareResource& resource = container.resources(0);
  EXPECT_EQ(resource.resource_name(), "example.com/nic");
  EXPECT_TRUE(resource.is_node_resource());
  EXPECT_EQ(resource.aggregated_quantity(), 10);
  ASSERT_THAT(resource.topology_aware_quantity_list(), SizeIs(1));
  EXPECT_EQ(resource.topology_aware_quantity_list(0).node(), 1u);
  EXPECT_EQ(resource.topology_aware_quantity_list(0).resource_value(), 10);
  EXPECT_EQ(resource.topology_aware_quantity_list(0).topology_level(), ::v1::NUMA);
}

TEST(PodResourcesAnswersTest, ExclusiveCpusAreCountedByNodeWhenThePluginDidNot) {
  const auto container = ListOnlyContainer({{"cpu", OwnCpus("2-4")}});
  const auto& quantities = container.resources(0).topology_aware_quantity_list();
  ASSERT_THAT(quantities, SizeIs(2));
  EXPECT_EQ(quantities[0].resource_value(), 2);  // CPUs 2 and 3 of node 0
  EXPECT_EQ(quantities[1].resource_value(), 1);  // CPU 4 of node 1
}

/// Kubelet's view of pod shop/web, whose container main holds a GPU on node 1 and a claim.
struct KubeletWithDevices {
  static ::v1::ListPodResourcesResponse List() {
    ::v1::ListPodResourcesResponse list;
    ::v1::PodResources& pod = *list.add_pod_resources();
    pod.set_namespace_("shop");
    pod.set_name("web");
    ::v1::ContainerResources& container = *pod.add_containers();
    container.set_name("main");
    container.add_cpu_ids(7);
    *container.add_devices() = Gpu();
    container.add_devices()->mutable_topology();
    container.add_dynamic_resources()->set_claim_name("claim");
    return list;
  }
  static ::v1::AllocatableResourcesResponse Allocatable() {
    ::v1::AllocatableResourcesResponse allocatable;
    *allocatable.add_devices() = Gpu();
    return allocatable;
  }
  static ::v1::ContainerDevices Gpu() {
    ::v1::ContainerDevices gpu;
    gpu.set_resource_name("example.com/gpu");
    gpu.add_device_ids("gpu-0");
    gpu.mutable_topology()->add_nodes()->set_id(1);
    return gpu;
  }

  static std::shared_ptr<const KubeletView> ViewOf(const ::v1::ListPodResourcesResponse& list) {
    auto view = KubeletView::Make(list.SerializeAsString(), Allocatable().SerializeAsString());
    EXPECT_TRUE(IsOk(view.status()));
    return *std::move(view);
  }

  const std::shared_ptr<const KubeletView> view = ViewOf(List());
};

TEST(KubeletViewTest, DevicesAndClaimsAreAddedToOurContainers) {
  const NodeState state =
      StateWith({Admit(SamplePod("web", "shop"), "main", {{"cpu", OwnCpus("1")}})});
  const KubeletWithDevices kubelet;
  const auto response = ListAnswer(state, SampleMachine(), *kubelet.view);
  ASSERT_THAT(response.pod_resources(), SizeIs(1));
  ASSERT_THAT(response.pod_resources(0).containers(), SizeIs(1));
  const ::v1::ContainerResources& container = response.pod_resources(0).containers(0);
  ASSERT_THAT(container.devices(), SizeIs(2));
  EXPECT_EQ(container.devices(0).device_ids(0), "gpu-0");
  EXPECT_EQ(container.devices(0).topology().nodes(0).id(), 1);
  EXPECT_FALSE(container.devices(1).has_topology());  // kubelet's was empty
  EXPECT_EQ(container.dynamic_resources(0).claim_name(), "claim");
  EXPECT_THAT(container.cpu_ids(), ElementsAre(1));  // ours
}

TEST(KubeletViewTest, DeviceOnTwoNodesStaysTwoEntriesOfOneId) {
  ::v1::ListPodResourcesResponse list = KubeletWithDevices::List();
  ::v1::ContainerDevices again = KubeletWithDevices::Gpu();
  again.mutable_topology()->mutable_nodes(0)->set_id(0);
  *list.mutable_pod_resources(0)->mutable_containers(0)->add_devices() = again;
  const auto kubelet = KubeletWithDevices::ViewOf(list);
  const auto response = ListAnswer(NodeState(), SampleMachine(), *kubelet);
  const auto& devices = response.pod_resources(0).containers(0).devices();
  ASSERT_THAT(devices, SizeIs(3));
  EXPECT_THAT(devices[0].device_ids(), ElementsAre("gpu-0"));
  EXPECT_THAT(devices[2].device_ids(), ElementsAre("gpu-0"));
  EXPECT_NE(devices[0].topology().nodes(0).id(), devices[2].topology().nodes(0).id());
}

TEST(KubeletViewTest, PodsThatOnlyKubeletKnowsAreListed) {
  const KubeletWithDevices kubelet;
  const auto response = ListAnswer(NodeState(), SampleMachine(), *kubelet.view);
  ASSERT_THAT(response.pod_resources(), SizeIs(1));
  EXPECT_EQ(response.pod_resources(0).name(), "web");
  ::v1::GetPodResourcesRequest request;
  request.set_pod_namespace("shop");
  request.set_pod_name("web");
  EXPECT_TRUE(GetAnswer(NodeState(), SampleMachine(), *kubelet.view, request).ok());
}

TEST(KubeletViewTest, FirstVersionHasDevices) {
  const KubeletWithDevices kubelet;
  const auto response = ListV1Alpha1(NodeState(), *kubelet.view);
  EXPECT_EQ(response.pod_resources(0).containers(0).devices(0).resource_name(), "example.com/gpu");
}

TEST(KubeletViewTest, RejectsAnswersOfAnotherApi) {
  EXPECT_EQ(KubeletView::Make("no message", "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(KubeletView::Make("", "no message").status().code(), StatusCode::kInvalidArgument);
  const std::string no_pod("\x0a\x01\xff", 3);
  EXPECT_EQ(KubeletView::Make(no_pod, "").status().code(), StatusCode::kInvalidArgument);
}

TEST(KubeletViewTest, RejectsMorePodsThanANodeHas) {
  ::v1::ListPodResourcesResponse list;
  for (std::size_t i = 0; i < KubeletView::kMostPods; ++i) {
    list.add_pod_resources();
  }
  EXPECT_TRUE(IsOk(KubeletView::Make(list.SerializeAsString(), "").status()));
  list.add_pod_resources();
  EXPECT_EQ(KubeletView::Make(list.SerializeAsString(), "").status().code(),
            StatusCode::kResourceExhausted);
}

TEST(KubeletViewTest, AllocatableHasNoEmptyTopology) {
  ::v1::AllocatableResourcesResponse allocatable = KubeletWithDevices::Allocatable();
  allocatable.mutable_devices(0)->mutable_topology()->clear_nodes();
  const auto kubelet = KubeletView::Make("", allocatable.SerializeAsString());
  ASSERT_TRUE(IsOk(kubelet.status()));
  const auto answer = AllocatableAnswer({}, SampleMachine(), **kubelet);
  ASSERT_THAT(answer.devices(), SizeIs(1));
  EXPECT_FALSE(answer.devices(0).has_topology());
}

TEST(KubeletViewTest, AllocatableHasDevices) {
  const KubeletWithDevices kubelet;
  const auto answer = AllocatableAnswer({}, SampleMachine(), *kubelet.view);
  ASSERT_THAT(answer.devices(), SizeIs(1));
  EXPECT_EQ(answer.devices(0).device_ids(0), "gpu-0");
}

TEST(ListCacheTest, FollowsKubelet) {
  const Machine machine = SampleMachine();
  ListCache cache(machine);
  const auto state = std::make_shared<const NodeState>(
      NodeState().With(Admit(SamplePod("web", "shop"), "main", {})));
  cache.Answer(state, std::make_shared<const KubeletView>());
  const KubeletWithDevices kubelet;
  const std::shared_ptr<const KubeletView> view(std::shared_ptr<void>(), &*kubelet.view);
  ::v1::ListPodResourcesResponse cached;
  ASSERT_TRUE(cached.ParseFromString(*cache.Answer(state, view)));
  EXPECT_THAT(cached.pod_resources(0).containers(0).devices(), SizeIs(2));
  ASSERT_TRUE(cached.ParseFromString(*cache.Answer(state, std::make_shared<const KubeletView>())));
  EXPECT_THAT(cached.pod_resources(0).containers(0).devices(), IsEmpty());
}

TEST(ListCacheTest, AnswersWhatListAnswerDoesThroughChanges) {
  const Machine machine = SampleMachine();
  ListCache cache(machine);
  const auto kubelet = std::make_shared<const KubeletView>();
  const std::vector<checkpoint::Change> changes = {
      Admit(SamplePod("a"), "main", {{"cpu", OwnCpus("1")}}),
      Admit(SamplePod("b"), "main", {{"memory", NodeMemory({{0, kGiB}})}}),
      Admit(SamplePod("a"), "second", {}),
      {.remove_pods = {"uid-b"}},
      Admit(SamplePod("b"), "main", {{"cpu", OwnCpus("2")}})};
  auto state = std::make_shared<const NodeState>();
  EXPECT_EQ(*cache.Answer(state, kubelet), "");
  for (const checkpoint::Change& change : changes) {
    state = std::make_shared<const NodeState>(state->With(change));
    ::v1::ListPodResourcesResponse cached;
    ASSERT_TRUE(cached.ParseFromString(*cache.Answer(state, kubelet)));
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
        cached, ListAnswer(*state, machine, *kubelet)));
  }
}

TEST(ListCacheTest, GivesTheSameBytesUntilTheStateChanges) {
  const Machine machine = SampleMachine();
  ListCache cache(machine);
  const auto kubelet = std::make_shared<const KubeletView>();
  const auto state =
      std::make_shared<const NodeState>(NodeState().With(Admit(SamplePod("a"), "main", {})));
  const auto first = cache.Answer(state, kubelet);
  EXPECT_EQ(cache.Answer(state, kubelet), first);
}

TEST(PodResourcesAnswersTest, FirstVersionListsNamesOnly) {
  const NodeState state = StateWith({Admit(SamplePod("web"), "main", {{"cpu", OwnCpus("1")}})});
  const auto response = ListV1Alpha1(state, {});
  ASSERT_THAT(response.pod_resources(), SizeIs(1));
  EXPECT_EQ(response.pod_resources(0).name(), "web");
  EXPECT_EQ(response.pod_resources(0).containers(0).name(), "main");
}

TEST(PodResourcesAnswersTest, GetFindsAPodByNameAndNamespace) {
  const NodeState state = StateWith({Admit(SamplePod("web", "a"), "main", {})});
  ::v1::GetPodResourcesRequest request;
  request.set_pod_name("web");
  request.set_pod_namespace("a");
  const auto answer = GetAnswer(state, SampleMachine(), {}, request);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->pod_resources().name(), "web");
}

TEST(PodResourcesAnswersTest, GetOfAnUnknownPodSaysWhatKubeletSays) {
  ::v1::GetPodResourcesRequest request;
  request.set_pod_name("web");
  request.set_pod_namespace("a");
  const auto answer = GetAnswer(NodeState(), SampleMachine(), {}, request);
  EXPECT_EQ(answer.status().code(), StatusCode::kUnknown);
  EXPECT_EQ(MessageOf(answer.status()), "pod web in namespace a not found");
}

TEST(PodResourcesAnswersTest, AllocatableListsTheCpusThatThePluginNamed) {
  const AllocatableByResource allocatable = {
      {"cpu", {.allocatable = 6, .capacity = 8, .allocatable_cpus = CpuSet::Range(2, 7)}}};
  EXPECT_THAT(AllocatableAnswer(allocatable, SampleMachine(), {}).cpu_ids(),
              ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST(PodResourcesAnswersTest, AllocatableListsAllCpusWhenNoneIsReserved) {
  const AllocatableByResource allocatable = {{"cpu", {.allocatable = 8, .capacity = 8}}};
  EXPECT_THAT(AllocatableAnswer(allocatable, SampleMachine(), {}).cpu_ids(), SizeIs(8));
}

TEST(PodResourcesAnswersTest, AllocatableNamesNoCpuWhenReservedOnesAreUnknown) {
  const AllocatableByResource allocatable = {{"cpu", {.allocatable = 6, .capacity = 8}}};
  EXPECT_THAT(AllocatableAnswer(allocatable, SampleMachine(), {}).cpu_ids(), IsEmpty());
}

TEST(PodResourcesAnswersTest, AllocatableMemoryIsByTypeAndNodeWithoutZeros) {
  const AllocatableByResource allocatable = {
      {"memory", {.allocatable_by_node = {{0, 1024}, {1, 2048}}}},
      {"hugepages-1Gi", {.allocatable_by_node = {{0, 0}}}}};
  const auto answer = AllocatableAnswer(allocatable, SampleMachine(), {});
  ASSERT_THAT(answer.memory(), SizeIs(2));
  EXPECT_EQ(answer.memory(0).memory_type(), "memory");
  EXPECT_EQ(answer.memory(0).size(), 1024u);
  EXPECT_EQ(answer.memory(1).topology().nodes(0).id(), 1);
}

TEST(PodResourcesAnswersTest, AllocatableReportsEachResourceWithCapacityByNode) {
  const AllocatableByResource allocatable = {{"example.com/nic",
                                              {.is_node_resource = true,
                                               .allocatable = 90,
                                               .capacity = 100,
                                               .allocatable_by_node = {{1, 90}},
                                               .capacity_by_node = {{1, 100}}}}};
  const auto answer = AllocatableAnswer(allocatable, SampleMachine(), {});
  ASSERT_THAT(answer.resources(), SizeIs(1));
  const ::v1::AllocatableTopologyAwareResource& resource = answer.resources(0);
  EXPECT_EQ(resource.resource_name(), "example.com/nic");
  EXPECT_TRUE(resource.is_node_resource());
  EXPECT_EQ(resource.aggregated_allocatable_quantity(), 90);
  EXPECT_EQ(resource.aggregated_capacity_quantity(), 100);
  EXPECT_EQ(resource.topology_aware_allocatable_quantity_list(0).resource_value(), 90);
  EXPECT_EQ(resource.topology_aware_capacity_quantity_list(0).node(), 1u);
}

}  // namespace
}  // namespace qrm::manager::pod_resources_answers_test
