// The pod-resources socket, with its clients' calls.
#include "manager/podresources/pod_resources_server.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>

#include "api/base/errorf.h"
#include "api/proto/podresources/v1/api.grpc.pb.h"
#include "api/proto/podresources/v1alpha1/api.grpc.pb.h"
#include "manager/observability/metrics.h"
#include "test/support/await.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_pod_resources.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::pod_resources_server_test {
namespace {

using test::Admit;
using test::FakeKubelet;
using test::OwnCpus;
using test::SamplePod;
using testing::ElementsAre;
using testing::SizeIs;

class PodResourcesServerTest : public testing::Test {
 protected:
  PodResourcesServerTest() { plugins_.infos = {{.resource = "cpu", .live = true}}; }

  void Start(PodResourcesOptions options = {}) {
    options.socket = path_;
    if (options.kubelet_socket == PodResourcesOptions().kubelet_socket) {
      options.kubelet_socket.clear();  // a kubelet of this machine is none of the test's
    }
    server_ = std::make_unique<PodResourcesServer>(
        PodResourcesServer::Parts{.snapshots = snapshots_,
                                  .plugins = plugins_,
                                  .machine = machine_,
                                  .metrics = metrics_.pod_resources,
                                  .restored = [this] { return restored_.load(); }},
        options);
    const Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(16 << 20);  // as the clients of kubelet have it
    const auto channel =
        grpc::CreateCustomChannel("unix:" + path_, grpc::InsecureChannelCredentials(), arguments);
    v1_ = ::v1::PodResourcesLister::NewStub(channel);
    v1alpha1_ = ::v1alpha1::PodResourcesLister::NewStub(channel);
  }

  template <typename Stub, typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    Stub& stub, const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    return (stub.*method)(&context, request, &response);
  }

  grpc::Status List() {
    list_.Clear();
    return Call(&::v1::PodResourcesLister::Stub::List, *v1_, {}, list_);
  }
  grpc::Status GetAllocatable() {
    allocatable_.Clear();
    return Call(&::v1::PodResourcesLister::Stub::GetAllocatableResources, *v1_, {}, allocatable_);
  }
  grpc::Status Get(const std::string& pod_namespace, const std::string& name) {
    ::v1::GetPodResourcesRequest request;
    request.set_pod_namespace(pod_namespace);
    request.set_pod_name(name);
    return Call(&::v1::PodResourcesLister::Stub::Get, *v1_, request, get_);
  }

  test::TempDir dir_;
  const std::string path_ = dir_ / "pod-resources/kubelet.sock";
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  const Machine machine_ = test::SampleMachine();
  Metrics metrics_;
  std::atomic<bool> restored_ = true;
  std::unique_ptr<PodResourcesServer> server_;
  std::unique_ptr<::v1::PodResourcesLister::Stub> v1_;
  std::unique_ptr<::v1alpha1::PodResourcesLister::Stub> v1alpha1_;
  ::v1::ListPodResourcesResponse list_;
  ::v1::AllocatableResourcesResponse allocatable_;
  ::v1::GetPodResourcesResponse get_;
};

TEST_F(PodResourcesServerTest, ListShowsTheLatestSnapshot) {
  Start();
  ASSERT_TRUE(List().ok());
  EXPECT_THAT(list_.pod_resources(), SizeIs(0));
  snapshots_.Apply(Admit(SamplePod("web"), "main", {{"cpu", OwnCpus("1-2")}}));
  ASSERT_TRUE(List().ok());
  ASSERT_THAT(list_.pod_resources(), SizeIs(1));
  EXPECT_THAT(list_.pod_resources(0).containers(0).cpu_ids(), ElementsAre(1, 2));
}

TEST_F(PodResourcesServerTest, ReportsOnlyTheAnnotationsOfTheList) {
  checkpoint::PodMeta pod = SamplePod("web");
  pod.annotations = {{"katalyst.kubewharf.io/qos_level", "shared_cores"}, {"token", "secret"}};
  snapshots_.Apply(Admit(pod, "main", {}));
  Start();
  ASSERT_TRUE(List().ok());
  ASSERT_TRUE(Get(pod.pod_namespace, pod.name).ok());
  for (const ::v1::PodResources& told : {list_.pod_resources(0), get_.pod_resources()}) {
    EXPECT_EQ(told.annotations().size(), 1);
    EXPECT_EQ(told.annotations().at("katalyst.kubewharf.io/qos_level"), "shared_cores");
  }
}

TEST_F(PodResourcesServerTest, ListBeyondGrpcsUsualFourMebibytesIsSent) {
  constexpr int kPods = 100;
  for (int i = 0; i < kPods; ++i) {
    checkpoint::PodMeta pod = SamplePod("pod" + std::to_string(i));
    pod.annotations.Edit()["note"] = std::string(100'000, 'x');
    snapshots_.Apply(Admit(pod, "main", {}));
  }
  Start({.annotations = {"note"}});
  ASSERT_TRUE(List().ok());
  EXPECT_GT(list_.ByteSizeLong(), std::size_t{8} << 20);
  EXPECT_THAT(list_.pod_resources(), SizeIs(kPods));
}

TEST_F(PodResourcesServerTest, FirstVersionIsServedOnTheSameSocket) {
  Start();
  snapshots_.Apply(Admit(SamplePod("web"), "main", {}));
  ::v1alpha1::ListPodResourcesResponse response;
  ASSERT_TRUE(Call(&::v1alpha1::PodResourcesLister::Stub::List, *v1alpha1_, {}, response).ok());
  EXPECT_EQ(response.pod_resources(0).name(), "web");
  EXPECT_EQ(metrics_.pod_resources.v1alpha1.list.requests.Value(), 1);
  EXPECT_EQ(metrics_.pod_resources.v1.requests_total.Value(), 0);
}

TEST_F(PodResourcesServerTest, GetOfAnUnknownPodIsUnknownWithKubeletsText) {
  Start();
  const grpc::Status status = Get("shop", "web");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(), "pod web in namespace shop not found");
  EXPECT_EQ(metrics_.pod_resources.v1.get.requests.Value(), 1);
  EXPECT_EQ(metrics_.pod_resources.v1.get.errors.Value(), 1);
}

TEST_F(PodResourcesServerTest, GetShowsOnePod) {
  Start();
  snapshots_.Apply(Admit(SamplePod("web", "shop"), "main", {}));
  ASSERT_TRUE(Get("shop", "web").ok());
  EXPECT_EQ(get_.pod_resources().name(), "web");
}

TEST_F(PodResourcesServerTest, CallsFailUntilTheStateIsRestored) {
  restored_ = false;
  Start();
  EXPECT_EQ(List().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Get("a", "b").error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(GetAllocatable().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(metrics_.pod_resources.v1.list.errors.Value(), 1);
  restored_ = true;
  EXPECT_TRUE(List().ok());
}

TEST_F(PodResourcesServerTest, AllocatableComesFromThePluginsLatestRound) {
  Start();
  plugins_.SetAllocatable({{"cpu", std::map<std::string, AllocatableResource>{
                                       {"cpu", {.allocatable = 8, .capacity = 8}}}}});
  server_->RefreshAllocatable();
  ASSERT_TRUE(GetAllocatable().ok());
  EXPECT_THAT(allocatable_.cpu_ids(), SizeIs(8));
  EXPECT_EQ(metrics_.pod_resources.v1.get_allocatable.requests.Value(), 1);
}

TEST_F(PodResourcesServerTest, AnOldAllocatableAnswerIsRenewedWithoutWaiting) {
  Start({.allocatable_max_age = std::chrono::milliseconds(0)});
  plugins_.Hang();
  const int calls = plugins_.allocatable_calls();
  EXPECT_TRUE(GetAllocatable().ok());
  EXPECT_EQ(plugins_.allocatable_calls(), calls + 1);
}

TEST_F(PodResourcesServerTest, CallsAskNoPluginWhileTheAnswersAreFresh) {
  Start();
  const int calls = plugins_.allocatable_calls();
  ASSERT_TRUE(GetAllocatable().ok());
  ASSERT_TRUE(List().ok());
  EXPECT_EQ(plugins_.allocatable_calls(), calls);
}

TEST_F(PodResourcesServerTest, AFailingPluginCostsOnlyItsResources) {
  plugins_.infos.push_back({.resource = "nic", .live = true});
  plugins_.SetAllocatable({{"cpu", std::map<std::string, AllocatableResource>{{"cpu", {}}}},
                           {"nic", Errorf(StatusCode::kUnavailable, "away")}});
  Start();
  ASSERT_TRUE(GetAllocatable().ok());
  ASSERT_THAT(allocatable_.resources(), SizeIs(1));
  EXPECT_EQ(allocatable_.resources(0).resource_name(), "cpu");
  auto& nic_errors = metrics_.pod_resources.allocatable_errors_total.Add({{"resource", "nic"}});
  EXPECT_EQ(nic_errors.Value(), 1);
  EXPECT_THAT(server_->Problems(),
              ElementsAre("plugin nic does not report its allocatable resources: away"));
}

TEST_F(PodResourcesServerTest, PluginsThatHangDelayNoAnswer) {
  Start();
  ASSERT_TRUE(GetAllocatable().ok());
  plugins_.Hang();
  server_->RefreshAllocatable();
  EXPECT_TRUE(GetAllocatable().ok());  // as it was
  EXPECT_TRUE(List().ok());
}

TEST_F(PodResourcesServerTest, AllocatableFailsWhileNoPluginHasEverAnswered) {
  plugins_.Hang();
  Start();
  EXPECT_EQ(GetAllocatable().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(metrics_.pod_resources.v1.get_allocatable.errors.Value(), 1);
}

/// A plugin in a separate process that knows devices by name.
class PodResourcesPlacementTest : public PodResourcesServerTest {
 protected:
  PodResourcesPlacementTest() {
    plugins_.infos = {{.resource = "nic", .registered_by = RegisteredBy::kWatcher, .live = true}};
    plugins_.SetPlacement("nic", Placed());
  }
  static PlacedByResource Placed() {
    return {{"nic",
             {.amount = 10,
              .admitted_amount = 20,
              .by_place = {{.amount = 10, .node = 1, .name = "eth1"}}}}};
  }
  static checkpoint::Change AdmitWithNic(double amount = 10) {
    return Admit(SamplePod("web"), "main", {{"nic", ResourceAllocation{.quantity = amount}}});
  }
  ::v1::TopologyAwareResource ListedNic() {
    EXPECT_TRUE(List().ok());
    return list_.pod_resources(0).containers(0).resources(0);
  }
};

TEST_F(PodResourcesPlacementTest, ResourcesThatAPluginReportsByNodeAreListed) {
  Start();
  snapshots_.Apply(AdmitWithNic());
  EXPECT_THAT(ListedNic().topology_aware_quantity_list(), SizeIs(0));  // asked, not waited for
  const ::v1::TopologyAwareResource nic = ListedNic();
  EXPECT_EQ(nic.original_aggregated_quantity(), 20);
  ASSERT_THAT(nic.topology_aware_quantity_list(), SizeIs(1));
  EXPECT_EQ(nic.topology_aware_quantity_list(0).name(), "eth1");
  EXPECT_EQ(nic.topology_aware_quantity_list(0).node(), 1u);
  ASSERT_TRUE(Get("default", "web").ok());
  EXPECT_EQ(get_.pod_resources().containers(0).resources(0).original_aggregated_quantity(), 20);
}

TEST_F(PodResourcesPlacementTest, OfAnAmountOfNothingNoNodeIsListed) {
  plugins_.SetPlacement("nic", PlacedByResource{{"nic", {}}});
  Start();
  snapshots_.Apply(
      Admit(SamplePod("web"), "main",
            {{"nic", ResourceAllocation{.quantity = 10, .amount_by_node = {{1, 10}}}}}));
  EXPECT_THAT(ListedNic().topology_aware_quantity_list(), SizeIs(1));  // of the record, until then
  const ::v1::TopologyAwareResource nic = ListedNic();
  EXPECT_EQ(nic.aggregated_quantity(), 0);
  EXPECT_THAT(nic.topology_aware_quantity_list(), SizeIs(0));
  EXPECT_THAT(nic.original_topology_aware_quantity_list(), SizeIs(0));
}

TEST_F(PodResourcesPlacementTest, PluginIsAskedOnceAboutAContainerUntilEitherChanges) {
  Start();
  snapshots_.Apply(AdmitWithNic());
  ListedNic();
  ListedNic();
  EXPECT_THAT(plugins_.placement_calls(), ElementsAre("main nic"));
  snapshots_.Apply(AdmitWithNic(5));
  ListedNic();
  EXPECT_THAT(plugins_.placement_calls(), SizeIs(2));
  server_->OnPluginChanged("nic");
  ListedNic();
  ListedNic();
  EXPECT_THAT(plugins_.placement_calls(), SizeIs(3));
  server_->OnPluginChanged("cpu");
  ListedNic();
  EXPECT_THAT(plugins_.placement_calls(), SizeIs(3));
}

TEST_F(PodResourcesPlacementTest, PluginThatFailsToReportIsCountedAndTheRecordIsListed) {
  plugins_.SetPlacement("nic", Errorf(StatusCode::kUnavailable, "away"));
  Start();
  snapshots_.Apply(AdmitWithNic());
  ListedNic();
  EXPECT_EQ(ListedNic().aggregated_quantity(), 10);
  EXPECT_EQ(metrics_.pod_resources.placement_errors_total.Add({{"resource", "nic"}}).Value(), 1);
  EXPECT_THAT(server_->Problems(), ElementsAre("plugin nic does not report the NUMA nodes of its "
                                               "containers' allocations: away"));
}

TEST_F(PodResourcesPlacementTest, PluginThatWasNotRunningIsAskedAgainAfterAWhileAndForgiven) {
  plugins_.SetPlacement("nic", Errorf(StatusCode::kDeadlineExceeded, "too slow"));
  Start({.plugin_retry = std::chrono::milliseconds(0)});
  snapshots_.Apply(AdmitWithNic());
  ListedNic();
  plugins_.SetPlacement("nic", Placed());
  ListedNic();
  EXPECT_EQ(ListedNic().original_aggregated_quantity(), 20);
  EXPECT_THAT(server_->Problems(), SizeIs(0));
}

TEST_F(PodResourcesPlacementTest, PluginThatIsNotRunningIsNotAskedAboutEveryContainer) {
  plugins_.SetPlacement("nic", Errorf(StatusCode::kUnavailable, "away"));
  Start();
  for (int i = 0; i < 20; ++i) {
    snapshots_.Apply(Admit(SamplePod("web" + std::to_string(i)), "main",
                           {{"nic", ResourceAllocation{.quantity = 1}}}));
  }
  ASSERT_TRUE(List().ok());
  ASSERT_TRUE(List().ok());
  EXPECT_THAT(plugins_.placement_calls(), SizeIs(1));
}

TEST_F(PodResourcesPlacementTest, PluginThatHangsCostsOnlyItsResources) {
  plugins_.infos.push_back(
      {.resource = "disk", .registered_by = RegisteredBy::kRegister, .live = true});
  plugins_.HangPlacement("disk");
  Start();
  for (int i = 0; i < 20; ++i) {
    snapshots_.Apply(Admit(SamplePod("web" + std::to_string(i)), "main",
                           {{"disk", ResourceAllocation{.quantity = 1}},
                            {"nic", ResourceAllocation{.quantity = 10}}}));
  }
  ASSERT_TRUE(List().ok());
  ASSERT_TRUE(List().ok());
  ASSERT_THAT(list_.pod_resources(), SizeIs(20));
  for (const ::v1::PodResources& pod : list_.pod_resources()) {
    EXPECT_EQ(pod.containers(0).resources(0).aggregated_quantity(), 1) << "disk, as recorded";
    EXPECT_EQ(pod.containers(0).resources(1).original_aggregated_quantity(), 20)
        << "nic, as reported";
  }
}

TEST_F(PodResourcesPlacementTest, PluginIsAskedForClientsThatOnlyGet) {
  Start();
  snapshots_.Apply(AdmitWithNic());
  ASSERT_TRUE(Get("default", "web").ok());
  ASSERT_TRUE(Get("default", "web").ok());
  EXPECT_EQ(get_.pod_resources().containers(0).resources(0).original_aggregated_quantity(), 20);
  EXPECT_THAT(plugins_.placement_calls(), SizeIs(1));
}

TEST_F(PodResourcesPlacementTest, PluginWithoutTheCallIsNotAnError) {
  plugins_.SetPlacement("nic", Errorf(StatusCode::kUnimplemented, "unknown call"));
  Start();
  snapshots_.Apply(AdmitWithNic());
  ListedNic();
  EXPECT_EQ(ListedNic().aggregated_quantity(), 10);
  EXPECT_EQ(metrics_.pod_resources.placement_errors_total.Add({{"resource", "nic"}}).Value(), 0);
}

TEST_F(PodResourcesPlacementTest, BuiltInPluginIsNotAskedForWhatIsOnRecord) {
  plugins_.infos.front().registered_by = RegisteredBy::kBuiltIn;
  Start();
  snapshots_.Apply(AdmitWithNic());
  ListedNic();
  EXPECT_THAT(plugins_.placement_calls(), SizeIs(0));
}

TEST_F(PodResourcesServerTest, SwitchedOffMethodsAnswerWithKubeletsTexts) {
  Start({.allocatable_enabled = false, .get_enabled = false});
  const grpc::Status allocatable = GetAllocatable();
  EXPECT_EQ(allocatable.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(allocatable.error_message(), "Pod Resources API GetAllocatableResources disabled");
  const grpc::Status get = Get("a", "b");
  EXPECT_EQ(get.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(get.error_message(), "PodResources API Get method disabled");
}

TEST_F(PodResourcesServerTest, AllocatableThatIsSwitchedOffAndOnAgainLeavesOtherMethodsAsTheyAre) {
  snapshots_.Apply(Admit(SamplePod("web"), "main", {{"cpu", OwnCpus("1")}}));
  const std::string pod_namespace = SamplePod("web").pod_namespace;
  for (const bool enabled : {true, false, true}) {
    Start({.allocatable_enabled = enabled});
    EXPECT_TRUE(List().ok());
    EXPECT_THAT(list_.pod_resources(), SizeIs(1));
    EXPECT_TRUE(Get(pod_namespace, "web").ok());
    EXPECT_EQ(GetAllocatable().ok(), enabled);
    server_.reset();
  }
}

TEST_F(PodResourcesServerTest, TooManyCallsOfOneProcessAreRejectedAndNotCountedAsRequests) {
  Start({.qps = 1, .burst = 2});
  EXPECT_TRUE(List().ok());
  EXPECT_TRUE(List().ok());
  const grpc::Status status = List();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "rejected by rate limit");
  EXPECT_EQ(metrics_.pod_resources.v1.requests_total.Value(), 2);
  EXPECT_EQ(metrics_.pod_resources.rate_limited_total.Value(), 1);
}

TEST_F(PodResourcesServerTest, FloodingProcessIsDisconnected) {
  Start({.qps = 1, .burst = 1});
  EXPECT_TRUE(test::Await([&] { return List().error_code() == grpc::StatusCode::UNAVAILABLE; }));
}

TEST_F(PodResourcesServerTest, KubeletsDevicesAreAdded) {
  FakeKubelet kubelet(dir_ / "kubelet.sock");
  kubelet.AddDevice({"default", "gpu-user", "main"}, {"nvidia.com/gpu", "gpu-0"});
  snapshots_.Apply(Admit(SamplePod("gpu-user"), "main", {{"cpu", OwnCpus("1")}}));
  Start({.kubelet_socket = dir_ / "kubelet.sock"});
  ASSERT_TRUE(List().ok());
  ASSERT_THAT(list_.pod_resources(), SizeIs(1));
  EXPECT_EQ(list_.pod_resources(0).containers(0).devices(0).device_ids(0), "gpu-0");
  ASSERT_TRUE(GetAllocatable().ok());  // although this kubelet does not have it
}

TEST_F(PodResourcesServerTest, KubeletIsAskedOnceForManyCalls) {
  const FakeKubelet kubelet(dir_ / "kubelet.sock");
  Start({.kubelet_socket = dir_ / "kubelet.sock"});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(List().ok());
  }
  EXPECT_LT(kubelet.lists(), 5);
}

TEST_F(PodResourcesServerTest, AKubeletThatHangsDelaysAnswersByItsTimeoutOnly) {
  FakeKubelet kubelet(dir_ / "kubelet.sock");
  kubelet.Hang();
  snapshots_.Apply(Admit(SamplePod("web"), "main", {}));
  Start(
      {.kubelet_socket = dir_ / "kubelet.sock", .kubelet_timeout = std::chrono::milliseconds(100)});
  ASSERT_TRUE(List().ok());
  EXPECT_THAT(list_.pod_resources(), SizeIs(1));
  EXPECT_EQ(metrics_.pod_resources.kubelet_errors_total.Value(), 1);
}

TEST_F(PodResourcesServerTest, WithoutKubeletsSocketAnswersAreOurs) {
  snapshots_.Apply(Admit(SamplePod("web"), "main", {}));
  Start({.kubelet_socket = dir_ / "nothing.sock"});
  ASSERT_TRUE(List().ok());
  EXPECT_THAT(list_.pod_resources(), SizeIs(1));
  EXPECT_EQ(metrics_.pod_resources.kubelet_errors_total.Value(), 0);
}

TEST_F(PodResourcesServerTest, DirectoryIsClosedToOthers) {
  Start();
  struct stat info{};
  ASSERT_EQ(stat((dir_ / "pod-resources").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750u);
}

}  // namespace
}  // namespace qrm::manager::pod_resources_server_test
