// What a List of the pod-resources API costs: to make, and over the socket.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <benchmark/benchmark.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "api/check.h"
#include "manager/observability/metrics.h"
#include "manager/podresources/answers.h"
#include "manager/podresources/list_cache.h"
#include "manager/podresources/pod_resources_server.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::manager {
namespace {

constexpr int kContainersPerPod = 2;

/// `pods` pods of two containers, each with CPUs of its own, memory and a NIC.
checkpoint::Change ManyPods(int pods) {
  checkpoint::Change change;
  for (int i = 0; i < pods; ++i) {
    for (int j = 0; j < kContainersPerPod; ++j) {
      ResourceAllocation nic{.quantity = 10, .amount_by_node = {{1, 10}}};
      auto admitted =
          test::Admit(test::SamplePod("pod-" + std::to_string(i)), "container-" + std::to_string(j),
                      {{"cpu", test::OwnCpus("2-5")},
                       {"memory", test::NodeMemory({{0, test::kGiB}})},
                       {"nic", nic}});
      change.put_containers.push_back(std::move(admitted.put_containers.front()));
    }
  }
  return change;
}

void BM_ListAnswer(benchmark::State& state) {
  const auto node = checkpoint::NodeState().With(ManyPods(static_cast<int>(state.range(0))));
  const Machine machine = test::SampleMachine();
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = ListAnswer(node, machine, {}).SerializeAsString().size();
    benchmark::DoNotOptimize(bytes);
  }
  state.counters["bytes"] = static_cast<double>(bytes);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_ListAnswer)
    ->ArgName("pods")
    ->Arg(50)
    ->Arg(500)
    ->Arg(5000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

/// The first List after one pod of many has changed.
void BM_ListAfterChange(benchmark::State& state) {
  const Machine machine = test::SampleMachine();
  test::FakeSnapshots snapshots;
  snapshots.Apply(ManyPods(static_cast<int>(state.range(0))));
  ListCache cache(machine);
  const auto kubelet = std::make_shared<const KubeletView>();
  cache.Answer(snapshots.Load(), kubelet);
  double changes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    snapshots.Apply(test::Admit(test::SamplePod("changing"), "main",
                                {{"cpu", test::SharedCpus("0-7", ++changes)}}));
    state.ResumeTiming();
    benchmark::DoNotOptimize(cache.Answer(snapshots.Load(), kubelet));
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_ListAfterChange)
    ->ArgName("pods")
    ->Arg(50)
    ->Arg(500)
    ->Arg(5000)
    ->Unit(benchmark::kMicrosecond)
    ->Complexity(benchmark::oN);

/// A server on a socket, with as many pods as asked for; one for all threads of a benchmark.
class ListOverSocket {
 public:
  explicit ListOverSocket(int pods) {
    snapshots_.Apply(ManyPods(pods));
    const Status started = server_.Start(path_);
    QRM_CHECK(started.ok());
  }

  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(16 << 20);
    return grpc::CreateCustomChannel("unix:" + path_, grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  test::FakePlugins& plugins() { return plugins_; }
  PodResourcesServer& server() { return server_; }

 private:
  test::TempDir dir_;
  const std::string path_ = dir_ / "kubelet.sock";
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  const Machine machine_ = test::SampleMachine();
  Metrics metrics_;
  PodResourcesServer server_{snapshots_,
                             plugins_,
                             machine_,
                             metrics_.pod_resources,
                             [] { return true; },
                             {.qps = 1'000'000, .burst = 1'000'000}};
};

/// A client that takes the bytes and does not parse them: what is left is the server and the
/// socket.
class RawClient {
 public:
  explicit RawClient(const std::shared_ptr<grpc::Channel>& channel) : stub_(channel) {}
  ~RawClient() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool List() {
    grpc::ClientContext context;
    const auto call = stub_.PrepareUnaryCall(&context, "/v1.PodResourcesLister/List",
                                             grpc::ByteBuffer(), &queue_);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok && status.ok();
  }

 private:
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

/// `plugins_hang`: during a refresh that no plugin answers.
void BM_List(benchmark::State& state) {
  static std::unique_ptr<ListOverSocket> node;
  if (state.thread_index() == 0) {
    node = std::make_unique<ListOverSocket>(static_cast<int>(state.range(0)));
    if (state.range(1) != 0) {
      node->plugins().Hang();
      node->server().RefreshAllocatable();
    }
  }
  std::optional<RawClient> client;
  for (auto _ : state) {
    if (!client.has_value()) {  // after all threads have met
      client.emplace(node->Connect());
    }
    if (!client->List()) {
      state.SkipWithError("List failed");
    }
  }
  client.reset();
  if (state.thread_index() == 0) {
    state.SetItemsProcessed(state.iterations() * state.threads());
    node.reset();
  }
}
BENCHMARK(BM_List)
    ->ArgNames({"pods", "plugins_hang"})
    ->Args({0, 0})
    ->Args({500, 0})
    ->Args({500, 1})
    ->Args({5000, 0})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(BM_List)
    ->ArgNames({"pods", "plugins_hang"})
    ->Args({500, 0})
    ->Threads(8)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace qrm::manager
