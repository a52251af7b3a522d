// The cost of a plugin behind a socket for its manager: one admission, and one reconcile of all
// containers.
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>
#include <grpcpp/grpcpp.h>

#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/wire.h"
#include "plugins/sdk/host.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

/// Gives all containers the same CPUs, so that only the SDK is measured.
class SharedPlugin final : public ResourcePlugin {
 public:
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest&, const TopologyHint&) override {
    return PinCpus(CpuSet::Range(0, 37));
  }
};

/// A host with its state on the disk of /tmp, and a stub that reaches it.
class Served {
 public:
  Served() : Served([](const std::string& path) { return *OpenPluginState(path); }) {}
  explicit Served(const std::function<std::unique_ptr<PluginState>(const std::string&)>& open) {
    host_ = *PluginHost::Create(plugin_, "cpu", open(dir_ / "state/cpu.db"));
    static_cast<void>(host_->Listen(dir_ / "cpu.sock"));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = pb::ResourcePlugin::NewStub(grpc::CreateCustomChannel(
        "unix:" + (dir_ / "cpu.sock"), grpc::InsecureChannelCredentials(), arguments));
  }

  /// Makes one call through `begin` and waits for it.
  template <typename Begin>
  bool Call(Begin begin) {
    grpc::ClientContext context;
    const auto answer = std::make_shared<std::promise<bool>>();
    begin(*stub_->async(), context,
          [answer](const grpc::Status& status) { answer->set_value(status.ok()); });
    return answer->get_future().get();
  }

  bool Allocate(const std::string& pod) {
    const pb::ResourceRequest request = wire::ToWire({.key = {pod, "main"},
                                                      .pod_namespace = "default",
                                                      .pod_name = pod,
                                                      .resource = "cpu",
                                                      .requests = {{"cpu", 2}}});
    pb::ResourceAllocationResponse response;
    return Call([&](auto& async, auto& context, const auto& done) {
      async.Allocate(&context, &request, &response, done);
    });
  }

  bool Reconcile() {
    const pb::GetResourcesAllocationRequest request;
    pb::GetResourcesAllocationResponse response;
    return Call([&](auto& async, auto& context, const auto& done) {
      async.GetResourcesAllocation(&context, &request, &response, done);
    });
  }

  bool Options() {
    const pb::Empty request;
    pb::ResourcePluginOptions response;
    return Call([&](auto& async, auto& context, const auto& done) {
      async.GetResourcePluginOptions(&context, &request, &response, done);
    });
  }

 private:
  test::TempDir dir_;
  SharedPlugin plugin_;
  std::unique_ptr<PluginHost> host_;
  std::unique_ptr<pb::ResourcePlugin::Stub> stub_;
};

void Require(benchmark::State& state, bool ok) {
  if (!ok) {
    state.SkipWithError("the call failed");
  }
}

/// The floor of every call: only gRPC.
void BM_RoundTrip(benchmark::State& state) {
  Served served;
  for (auto _ : state) {
    Require(state, served.Options());
  }
}
BENCHMARK(BM_RoundTrip)->UseRealTime();

/// A new container: round trip and one fdatasync.
void BM_Allocate(benchmark::State& state) {
  Served served;
  int64_t pod = 0;
  for (auto _ : state) {
    Require(state, served.Allocate("pod" + std::to_string(pod++)));
  }
}
BENCHMARK(BM_Allocate)->UseRealTime();

void BM_Reconcile(benchmark::State& state) {
  Served served([](const std::string&) { return MakeMemoryState(); });
  for (int64_t pod = 0; pod < state.range(0); ++pod) {
    Require(state, served.Allocate("pod" + std::to_string(pod)));
  }
  for (auto _ : state) {
    Require(state, served.Reconcile());
  }
}
BENCHMARK(BM_Reconcile)
    ->ArgName("containers")
    ->Arg(100)
    ->Arg(10000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace qrm::sdk
