// Requests and answers on the wire, byte for byte where the protocol needs it.
#include "plugins/sdk/host.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "api/base/errorf.h"
#include "api/proto/pluginregistration/v1/api.grpc.pb.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/wire.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/plugin_client.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/await.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk::host_test {
namespace {

namespace pb = ::resourceplugin::v1alpha1;
using test::Await;
using test::CountingPlugin;
using test::CpuRequest;
using testing::ElementsAre;
using testing::HasSubstr;

/// Calls `method` on `async` and waits.
template <typename Async, typename Request, typename Response>
grpc::Status Call(Async* async,
                  void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                        std::function<void(grpc::Status)>),
                  const Request& request, Response* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const auto answer = std::make_shared<std::promise<grpc::Status>>();
  (async->*method)(&context, &request, response,
                   [answer](grpc::Status status) { answer->set_value(std::move(status)); });
  return answer->get_future().get();
}

class HostTest : public testing::Test {
 protected:
  using Async = class pb::ResourcePlugin::Stub::async;

  void SetUp() override {
    StatusOr<std::unique_ptr<PluginHost>> host =
        PluginHost::Create(plugin_, "cpu", MakeMemoryState());
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    ASSERT_TRUE(host_->Listen(dir_ / "host.sock").ok());
    channel_ =
        grpc::CreateChannel("unix:" + (dir_ / "host.sock"), grpc::InsecureChannelCredentials());
    stub_ = pb::ResourcePlugin::NewStub(channel_);
  }

  pb::ResourceHintsResponse HintsFor(const std::string& uid) {
    pb::ResourceHintsResponse response;
    const grpc::Status status = Call(stub_->async(), &Async::GetTopologyHints,
                                     wire::ToWire(CpuRequest(uid, "main", 1)), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::Status Allocate(const pb::ResourceRequest& request,
                        pb::ResourceAllocationResponse* response) {
    return Call(stub_->async(), &Async::Allocate, request, response);
  }

  const test::TempDir dir_;
  CountingPlugin plugin_;
  std::unique_ptr<PluginHost> host_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::ResourcePlugin::Stub> stub_;
};

TEST_F(HostTest, NoPreferenceIsAnEntryWithoutValue) {
  plugin_.hints = [](const auto&) { return HintList::NoPreference(); };
  const pb::ResourceHintsResponse response = HintsFor("a");
  ASSERT_EQ(response.resource_hints_size(), 1);
  EXPECT_EQ(response.resource_hints(0).key(), "cpu");
  EXPECT_FALSE(response.resource_hints(0).has_value());
}

TEST_F(HostTest, ImpossibleIsAnEntryWithAnEmptyList) {
  plugin_.hints = [](const auto&) { return HintList::Impossible(); };
  const pb::ResourceHintsResponse response = HintsFor("a");
  ASSERT_EQ(response.resource_hints_size(), 1);
  ASSERT_TRUE(response.resource_hints(0).has_value());
  EXPECT_EQ(response.resource_hints(0).value().hints_size(), 0);
}

TEST_F(HostTest, HintsCarryTheirNodes) {
  const pb::ResourceHintsResponse response = HintsFor("a");
  ASSERT_EQ(response.resource_hints_size(), 1);
  ASSERT_EQ(response.resource_hints(0).value().hints_size(), 2);
  EXPECT_THAT(response.resource_hints(0).value().hints(1).nodes(), ElementsAre(1));
  EXPECT_TRUE(response.resource_hints(0).value().hints(1).preferred());
  EXPECT_EQ(response.pod_uid(), "a");
  EXPECT_EQ(response.container_name(), "main");
}

TEST_F(HostTest, AllocationIsUnderTheResourceName) {
  pb::ResourceAllocationResponse response;
  ASSERT_TRUE(Allocate(wire::ToWire(CpuRequest("a", "main", 2)), &response).ok());
  const auto& by_resource = response.allocation_result().resource_allocation();
  ASSERT_EQ(by_resource.size(), 1U);
  EXPECT_EQ(by_resource.at("cpu").oci_property_name(), "CpusetCpus");
  EXPECT_EQ(by_resource.at("cpu").allocation_result(), "0-1");
  EXPECT_EQ(by_resource.at("cpu").allocated_quantity(), 2);
  EXPECT_EQ(response.pod_uid(), "a");
  EXPECT_EQ(response.resource_name(), "cpu");
}

TEST_F(HostTest, MalformedRequestsAreRejectedWithoutAskingThePlugin) {
  pb::ResourceRequest no_pod = wire::ToWire(CpuRequest("", "main", 1));
  pb::ResourceRequest negative = wire::ToWire(CpuRequest("a", "main", -1));
  pb::ResourceRequest node = wire::ToWire(CpuRequest("a", "main", 1));
  node.mutable_hint()->add_nodes(uint64_t{1} << 40);
  pb::ResourceRequest other = wire::ToWire(CpuRequest("a", "main", 1));
  other.set_resource_name("memory");
  for (const pb::ResourceRequest& request : {no_pod, negative, node, other}) {
    pb::ResourceAllocationResponse allocation;
    EXPECT_EQ(Allocate(request, &allocation).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    pb::ResourceHintsResponse hints;
    EXPECT_EQ(Call(stub_->async(), &Async::GetTopologyHints, request, &hints).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(plugin_.allocate_calls + plugin_.hint_calls, 0);
}

TEST_F(HostTest, ErrorOfThePluginArrivesWithItsCodeAndSentence) {
  pb::ResourceAllocationResponse response;
  const grpc::Status status = Allocate(wire::ToWire(CpuRequest("a", "main", 99)), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "cannot place main: no CPU is free; remove a pod");
}

TEST_F(HostTest, ExceptionOfThePluginIsAnInternalError) {
  plugin_.failure = [] { throw std::runtime_error("bad day"); };
  pb::ResourceAllocationResponse response;
  EXPECT_EQ(Allocate(wire::ToWire(CpuRequest("a", "main", 1)), &response).error_code(),
            grpc::StatusCode::INTERNAL);
  plugin_.failure = nullptr;
  EXPECT_TRUE(Allocate(wire::ToWire(CpuRequest("a", "main", 1)), &response).ok());
}

TEST_F(HostTest, ReconcileListsEveryContainerOfEveryPod) {
  pb::ResourceAllocationResponse allocation;
  for (const auto& [uid, container] : {std::pair("a", "one"), {"a", "two"}, {"b", "one"}}) {
    ASSERT_TRUE(Allocate(wire::ToWire(CpuRequest(uid, container, 1)), &allocation).ok());
  }
  plugin_.reconciled[{"b", "one"}] = PinCpus({7});
  pb::GetResourcesAllocationResponse response;
  ASSERT_TRUE(Call(stub_->async(), &Async::GetResourcesAllocation,
                   pb::GetResourcesAllocationRequest(), &response)
                  .ok());
  const auto value = [&](const char* uid, const char* container) {
    return response.pod_resources()
        .at(uid)
        .container_resources()
        .at(container)
        .resource_allocation()
        .at("cpu")
        .allocation_result();
  };
  EXPECT_EQ(response.pod_resources_size(), 2);
  EXPECT_EQ(value("a", "one"), "0");
  EXPECT_EQ(value("a", "two"), "1");
  EXPECT_EQ(value("b", "one"), "7");
}

TEST_F(HostTest, ReconcileFollowsEveryChange) {
  const auto pods = [&] {
    pb::GetResourcesAllocationResponse response;
    EXPECT_TRUE(Call(stub_->async(), &Async::GetResourcesAllocation,
                     pb::GetResourcesAllocationRequest(), &response)
                    .ok());
    std::set<std::string> uids;
    for (const auto& [uid, pod] : response.pod_resources()) {
      uids.insert(uid);
    }
    return uids;
  };
  EXPECT_THAT(pods(), ElementsAre());
  pb::ResourceAllocationResponse allocation;
  ASSERT_TRUE(Allocate(wire::ToWire(CpuRequest("a", "main", 1)), &allocation).ok());
  ASSERT_TRUE(Allocate(wire::ToWire(CpuRequest("b", "main", 1)), &allocation).ok());
  EXPECT_THAT(pods(), ElementsAre("a", "b"));
  pb::RemovePodRequest request;
  request.set_pod_uid("a");
  pb::RemovePodResponse removed;
  ASSERT_TRUE(Call(stub_->async(), &Async::RemovePod, request, &removed).ok());
  EXPECT_THAT(pods(), ElementsAre("b"));
}

TEST_F(HostTest, TopologyAwareResourcesComeFromTheGrant) {
  pb::ResourceAllocationResponse allocation;
  ASSERT_TRUE(Allocate(wire::ToWire(CpuRequest("a", "main", 6)), &allocation).ok());
  pb::GetTopologyAwareResourcesRequest request;
  request.set_pod_uid("a");
  request.set_container_name("main");
  pb::GetTopologyAwareResourcesResponse response;
  ASSERT_TRUE(Call(stub_->async(), &Async::GetTopologyAwareResources, request, &response).ok());
  EXPECT_EQ(response.pod_name(), "pod-a");
  const pb::TopologyAwareResource& cpu =
      response.container_topology_aware_resources().allocated_resources().at("cpu");
  EXPECT_EQ(cpu.aggregated_quantity(), 6);
  ASSERT_EQ(cpu.topology_aware_quantity_list_size(), 2);
  EXPECT_EQ(cpu.topology_aware_quantity_list(0).resource_value(), 4);
  EXPECT_EQ(cpu.topology_aware_quantity_list(1).node(), 1U);
}

TEST_F(HostTest, TopologyAwareResourcesRememberTheAdmission) {
  pb::ResourceAllocationResponse allocation;
  ASSERT_TRUE(Allocate(wire::ToWire(CpuRequest("a", "main", 6)), &allocation).ok());
  plugin_.reconciled[{"a", "main"}] = PinCpus({1});
  pb::GetResourcesAllocationResponse reconciled;
  ASSERT_TRUE(Call(stub_->async(), &Async::GetResourcesAllocation,
                   pb::GetResourcesAllocationRequest(), &reconciled)
                  .ok());
  pb::GetTopologyAwareResourcesRequest request;
  request.set_pod_uid("a");
  request.set_container_name("main");
  pb::GetTopologyAwareResourcesResponse response;
  ASSERT_TRUE(Call(stub_->async(), &Async::GetTopologyAwareResources, request, &response).ok());
  const pb::TopologyAwareResource& cpu =
      response.container_topology_aware_resources().allocated_resources().at("cpu");
  EXPECT_EQ(cpu.aggregated_quantity(), 1);
  EXPECT_EQ(cpu.original_aggregated_quantity(), 6);
  EXPECT_EQ(cpu.original_topology_aware_quantity_list_size(), 2);
}

TEST_F(HostTest, TopologyAwareResourcesOfAnUnknownContainerAreEmpty) {
  pb::GetTopologyAwareResourcesRequest request;
  request.set_pod_uid("ghost");
  pb::GetTopologyAwareResourcesResponse response;
  ASSERT_TRUE(Call(stub_->async(), &Async::GetTopologyAwareResources, request, &response).ok());
  EXPECT_EQ(response.container_topology_aware_resources().allocated_resources_size(), 0);
}

TEST_F(HostTest, AllocatableHasTotalsAndNodes) {
  pb::GetTopologyAwareAllocatableResourcesResponse response;
  ASSERT_TRUE(Call(stub_->async(), &Async::GetTopologyAwareAllocatableResources,
                   pb::GetTopologyAwareAllocatableResourcesRequest(), &response)
                  .ok());
  const pb::AllocatableTopologyAwareResource& cpu = response.allocatable_resources().at("cpu");
  EXPECT_EQ(cpu.aggregated_allocatable_quantity(), 7);
  EXPECT_EQ(cpu.aggregated_capacity_quantity(), 8);
  EXPECT_EQ(cpu.topology_aware_allocatable_quantity_list_size(), 2);
}

TEST_F(HostTest, OptionsAreThePluginsOwn) {
  pb::ResourcePluginOptions response;
  ASSERT_TRUE(Call(stub_->async(), &Async::GetResourcePluginOptions, pb::Empty(), &response).ok());
  EXPECT_TRUE(response.with_topology_alignment());
  EXPECT_TRUE(response.need_reconcile());
  EXPECT_FALSE(response.pre_start_required());
}

TEST_F(HostTest, CallsOfWholePodsAreUnimplemented) {
  pb::PodResourceHintsResponse response;
  EXPECT_EQ(Call(stub_->async(), &Async::GetPodTopologyHints, pb::PodResourceRequest(), &response)
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(HostTest, PluginsMayRejectPreStartContainer) {
  pb::PreStartContainerRequest request;
  request.set_pod_uid("uid");
  request.set_container_name("main");
  pb::PreStartContainerResponse response;
  EXPECT_TRUE(Call(stub_->async(), &Async::PreStartContainer, request, &response).ok());
  plugin_.prepares = Errorf(StatusCode::kFailedPrecondition, "lane 3 is broken");
  EXPECT_EQ(Call(stub_->async(), &Async::PreStartContainer, request, &response).error_message(),
            "lane 3 is broken");
  EXPECT_EQ(plugin_.prepared, std::vector<ContainerKey>(2, {"uid", "main"}));
}

TEST_F(HostTest, GetInfoNamesTypeResourceAndVersion) {
  using Registration = ::pluginregistration::Registration;
  const auto stub = Registration::NewStub(channel_);
  ::pluginregistration::PluginInfo info;
  using RegistrationAsync = class Registration::Stub::async;
  ASSERT_TRUE(
      Call(stub->async(), &RegistrationAsync::GetInfo, ::pluginregistration::InfoRequest(), &info)
          .ok());
  EXPECT_EQ(info.type(), "ResourcePlugin");
  EXPECT_EQ(info.name(), "cpu");
  EXPECT_EQ(info.endpoint(), "");
  EXPECT_THAT(info.supported_versions(), ElementsAre("v1alpha1"));
}

TEST_F(HostTest, SetPoolsRejectsAMalformedSet) {
  const auto stub = v1::PluginExtensions::NewStub(channel_);
  v1::SetPoolsRequest request;
  (*request.mutable_cpus_by_pool())["online"] = "3-";
  v1::SetPoolsResponse response;
  using ExtensionsAsync = class v1::PluginExtensions::Stub::async;
  const grpc::Status status = Call(stub->async(), &ExtensionsAsync::SetPools, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("cannot set pool online"));
}

TEST_F(HostTest, PluginIsCalledFromOneThreadOneCallAtATime) {
  std::set<std::thread::id> threads;
  std::atomic<int> inside = 0;
  int most = 0;
  const auto enter = [&] {
    most = std::max(most, ++inside);
    threads.insert(std::this_thread::get_id());
    std::this_thread::yield();
    --inside;
  };
  plugin_.failure = enter;
  plugin_.hints = [&](const auto&) {
    enter();
    return HintList::NoPreference();
  };
  std::vector<std::future<bool>> calls;
  calls.reserve(8);
  for (int i = 0; i < 8; ++i) {
    calls.push_back(std::async(std::launch::async, [this, i] {
      HintsFor(std::to_string(i));
      pb::ResourceAllocationResponse response;
      return Allocate(wire::ToWire(CpuRequest(std::to_string(i), "main", 1)), &response).ok();
    }));
  }
  for (std::future<bool>& call : calls) {
    EXPECT_TRUE(call.get());
  }
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0U);
}

TEST_F(HostTest, ServesOnASocketAndRemovesItAtTheEnd) {
  const test::TempDir dir;
  const std::string path = dir / "cpu.sock";
  ASSERT_TRUE(host_->Listen(path).ok());
  EXPECT_TRUE(host_->SocketInPlace());
  EXPECT_EQ(PluginClient(path).Ask<calls::Allocate>(CpuRequest("a", "main", 1))->at("cpu")->value,
            "0");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  host_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST_F(HostTest, ServesOnANewSocketWhenTheFormerWasRemoved) {
  const test::TempDir dir;
  const std::string path = dir / "cpu.sock";
  ASSERT_TRUE(host_->Listen(path).ok());
  std::filesystem::remove(path);
  EXPECT_FALSE(host_->SocketInPlace());
  ASSERT_TRUE(host_->Listen(path).ok());
  EXPECT_TRUE(PluginClient(path).Ask<calls::GetOptions>({}).ok());
}

TEST_F(HostTest, SecondHostIsRejectedAtALivingSocket) {
  const test::TempDir dir;
  const std::string path = dir / "cpu.sock";
  ASSERT_TRUE(host_->Listen(path).ok());
  CountingPlugin other_plugin;
  const auto other = PluginHost::Create(other_plugin, "cpu", MakeMemoryState());
  const Status refused = (*other)->Listen(path);
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(MessageOf(refused), HasSubstr("another process listens there"));
  EXPECT_TRUE(PluginClient(path).Ask<calls::GetOptions>({}).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(HostCreateTest, RejectsAnImpossibleResourceName) {
  CountingPlugin plugin;
  EXPECT_EQ(PluginHost::Create(plugin, "../cpu", MakeMemoryState()).status().code(),
            StatusCode::kInvalidArgument);
}

class QuickHostTest : public HostTest {
 protected:
  QuickHostTest() { plugin_.answers_are_quick = true; }

  /// The thread on which the plugin is asked for hints.
  std::thread::id ThreadOfHints() {
    std::thread::id thread;
    plugin_.hints = [&](const auto&) {
      thread = std::this_thread::get_id();
      return HintList::NoPreference();
    };
    HintsFor("a");
    return thread;
  }
  /// The thread on which the plugin is asked for an allocation that `pod` does not have.
  std::thread::id ThreadOfAllocation(const std::string& pod) {
    std::thread::id thread;
    plugin_.failure = [&] { thread = std::this_thread::get_id(); };
    pb::ResourceAllocationResponse response;
    EXPECT_TRUE(Allocate(wire::ToWire(CpuRequest(pod, "main", 1)), &response).ok());
    return thread;
  }
};

// Its thread may not be idle yet, but at the end of its last work, when the next call arrives.
TEST_F(QuickHostTest, AnIdlePluginIsAskedForHintsWhereTheCallArrives) {
  const std::thread::id of_plugin = ThreadOfAllocation("a");
  EXPECT_TRUE(Await([&] { return ThreadOfHints() != of_plugin; }));
}

TEST_F(QuickHostTest, AllocatesThereTooOnceAManagerResyncs) {
  const std::thread::id of_plugin = ThreadOfAllocation("a");
  const auto extensions = qrm::v1::PluginExtensions::NewStub(channel_);
  qrm::v1::RestoreResponse restored;
  EXPECT_TRUE(Call(extensions->async(), &qrm::v1::PluginExtensions::Stub::async::Restore,
                   qrm::v1::RestoreRequest(), &restored)
                  .ok());
  int pods = 0;
  EXPECT_TRUE(Await([&] { return ThreadOfAllocation(fmt::format("b{}", ++pods)) != of_plugin; }));
}

TEST_F(QuickHostTest, HintsWaitForTheCallThatIsUnderWay) {
  std::promise<void> entered;
  std::promise<void> release;
  std::atomic<bool> allocates = false;
  std::atomic<bool> overlapped = false;
  plugin_.failure = [&] {
    allocates = true;
    entered.set_value();
    release.get_future().wait();
    allocates = false;
  };
  plugin_.hints = [&](const auto&) {
    overlapped = allocates.load();
    return HintList::NoPreference();
  };
  auto allocated = std::async(std::launch::async, [this] {
    pb::ResourceAllocationResponse response;
    return Allocate(wire::ToWire(CpuRequest("a", "main", 1)), &response).ok();
  });
  entered.get_future().wait();
  auto hints = std::async(std::launch::async, [this] { return HintsFor("b"); });
  pb::ResourcePluginOptions options;  // the plugin answers meanwhile
  EXPECT_TRUE(Call(stub_->async(), &Async::GetResourcePluginOptions, pb::Empty(), &options).ok());
  release.set_value();
  EXPECT_EQ(hints.get().pod_uid(), "b");
  EXPECT_TRUE(allocated.get());
  EXPECT_FALSE(overlapped);
}

}  // namespace
}  // namespace qrm::sdk::host_test
