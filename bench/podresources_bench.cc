// The cost of a List of the pod-resources API: to encode, by the number of containers, and over the
// socket while a plugin hangs.
//   podresources_bench [--smoke]
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/proto/podresources/v1/api.pb.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "manager/observability/metrics.h"
#include "manager/podresources/list_cache.h"
#include "manager/podresources/pod_resources_server.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::bench {
namespace {

using manager::ListCache;

constexpr int kContainersPerPod = 2;
constexpr int kPods = 500;
constexpr int kManyContainers = 10'000;
constexpr double kServerTargetUs = 2000;
/// Ratio to a container's cost on a node with ten times as many.
constexpr double kLinearTarget = 2;
constexpr double kHangTarget = 1.25;

struct Program {
  std::size_t lists = 1000;
  std::size_t whole_answers = 30;
};

/// The processor time of this thread: the cost of computing, without other work of the machine.
template <typename Work>
double ProcessorMicrosecondsOf(Work work) {
  const double begun_us = ProcessorMicroseconds(CLOCK_THREAD_CPUTIME_ID);
  work();
  return ProcessorMicroseconds(CLOCK_THREAD_CPUTIME_ID) - begun_us;
}

void Print(const std::string& what, const std::vector<double>& times_us) {
  fmt::print("  {:44} p50 {:7.0f} us  p99 {:7.0f} us\n", what, Median(times_us),
             Quantile(times_us, 0.99));
}

/// `pods` pods of two containers, each with exclusive CPUs, memory and a NIC.
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

/// A node that is listed without a socket.
class ListedNode {
 public:
  explicit ListedNode(int pods) { snapshots_.Apply(ManyPods(pods)); }

  std::size_t List(ListCache& cache) const {
    return cache.Answer(snapshots_.Load(), kubelet_)->size();
  }
  /// Encodes every pod, as at the first call.
  double WholeAnswerUs() const {
    ListCache cache(machine_);
    return MicrosecondsOf([&] { List(cache); });
  }
  double WholeAnswerProcessorUs() const {
    ListCache cache(machine_);
    return ProcessorMicrosecondsOf([&] { List(cache); });
  }
  /// Changes one pod, and times the next call.
  double AnswerAfterChangeUs(ListCache& cache) {
    snapshots_.Apply(test::Admit(test::SamplePod("changing"), "main",
                                 {{"cpu", test::SharedCpus("0-7", ++changes_)}}));
    return MicrosecondsOf([&] { List(cache); });
  }
  /// Lets kubelet report a change of one pod, and times the next call.
  double AnswerAfterKubeletUs(ListCache& cache) {
    ::v1::ListPodResourcesResponse list;
    ::v1::PodResources& pod = *list.add_pod_resources();
    pod.set_namespace_("default");
    pod.set_name("pod-0");
    ::v1::ContainerResources& container = *pod.add_containers();
    container.set_name("container-0");
    container.add_devices()->add_device_ids(std::to_string(++changes_));
    kubelet_ = *manager::KubeletView::Make(list.SerializeAsString(), "");
    return MicrosecondsOf([&] { List(cache); });
  }
  const Machine& machine() const { return machine_; }

 private:
  const Machine machine_ = test::SampleMachine();
  std::shared_ptr<const manager::KubeletView> kubelet_ =
      std::make_shared<const manager::KubeletView>();
  test::FakeSnapshots snapshots_;
  double changes_ = 0;
};

bool JudgeServer(const Program& program) {
  ListedNode node(kPods);
  ListCache cache(node.machine());
  const std::size_t bytes = node.List(cache);
  std::vector<double> whole;
  std::vector<double> changed;
  std::vector<double> unchanged;
  std::vector<double> with_kubelet;
  for (std::size_t i = 0; i < program.lists; ++i) {
    changed.push_back(node.AnswerAfterChangeUs(cache));
    unchanged.push_back(MicrosecondsOf([&] { node.List(cache); }));
    with_kubelet.push_back(node.AnswerAfterKubeletUs(cache));
  }
  whole.reserve(program.whole_answers);
  for (std::size_t i = 0; i < program.whole_answers; ++i) {
    whole.push_back(node.WholeAnswerUs());
  }
  fmt::print("List of {} pods x {} containers x 3 resources in the server, {} bytes\n", kPods,
             kContainersPerPod, bytes);
  Print("nothing has changed", unchanged);
  Print("one pod has changed", changed);
  Print("kubelet's devices of one pod have changed", with_kubelet);
  Print("all pods encoded again", whole);
  const bool steady = Judge("List of 500 x 2 x 3 in the server, one pod changed, p50",
                            kServerTargetUs, Median(changed), "us");
  return Judge("List of 500 x 2 x 3 in the server, all encoded again, p50", kServerTargetUs,
               Median(whole), "us") &&
         steady;
}

bool JudgeGrowth(const Program& program) {
  fmt::print("processor time of a whole List against the number of containers\n");
  std::vector<double> per_container;
  for (const int containers : {kManyContainers / 100, kManyContainers / 10, kManyContainers / 4,
                               kManyContainers / 2, kManyContainers}) {
    const ListedNode node(containers / kContainersPerPod);
    std::vector<double> times;
    times.reserve(program.whole_answers);
    for (std::size_t i = 0; i < program.whole_answers; ++i) {
      times.push_back(node.WholeAnswerProcessorUs());
    }
    Print(fmt::format("{} containers", containers), times);
    per_container.push_back(Median(times) / containers);
  }
  fmt::print("  a container costs {:.2f} us\n", fmt::join(per_container, ", "));
  return Judge("cost of a container in List, 10,000 to 1,000", kLinearTarget,
               per_container.back() / per_container[1], "x");
}

/// A server on a socket, with the given number of pods; shared by all threads of a benchmark.
class ListOverSocket {
 public:
  explicit ListOverSocket(int pods) {
    snapshots_.Apply(ManyPods(pods));
    const Status started = server_.Start();
    QRM_CHECK(started.ok());
  }

  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(16 << 20);
    return grpc::CreateCustomChannel("unix:" + path_, grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  /// From now on no plugin answers, and all have been asked.
  void HangPlugins() {
    plugins_.infos = {
        {.resource = "nic", .registered_by = manager::RegisteredBy::kWatcher, .live = true}};
    plugins_.HangPlacement("nic");
    plugins_.Hang();
    server_.OnPluginChanged("nic");
  }

 private:
  test::TempDir dir_;
  const std::string path_ = dir_ / "kubelet.sock";
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  const Machine machine_ = test::SampleMachine();
  manager::Metrics metrics_;
  manager::PodResourcesServer server_{
      {.snapshots = snapshots_,
       .plugins = plugins_,
       .machine = machine_,
       .metrics = metrics_.pod_resources,
       .restored = [] { return true; }},
      {.socket = path_, .kubelet_socket = "", .qps = 1'000'000, .burst = 1'000'000}};
};

/// A client that takes the bytes and does not parse them: only the server and the socket are
/// measured.
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

double ListUs(RawClient& client) {
  bool ok = false;
  const double took = MicrosecondsOf([&] { ok = client.List(); });
  QRM_CHECK(ok);
  return took;
}

/// Two nodes in turns: one whose plugins have been asked and do not answer, and one at rest.
bool JudgeHang(const Program& program) {
  const ListOverSocket at_rest(kPods);
  ListOverSocket hanging(kPods);
  hanging.HangPlugins();
  RawClient usual(at_rest.Connect());
  RawClient beside(hanging.Connect());
  std::vector<double> usual_us;
  std::vector<double> beside_us;
  for (std::size_t i = 0; i < program.lists; ++i) {
    usual_us.push_back(ListUs(usual));
    beside_us.push_back(ListUs(beside));
  }
  fmt::print("List of {} pods over the socket, with the client's part\n", kPods);
  Print("plugins at rest", usual_us);
  Print("plugins that hang", beside_us);
  return Judge("List while plugins hang, p50", kHangTarget, Median(beside_us) / Median(usual_us),
               "x usual");
}

int Main(const CommandLine& options) {
  Program program;
  if (options.smoke) {
    program = {.lists = 5, .whole_answers = 2};
  }
  const bool server = JudgeServer(program);
  const bool growth = JudgeGrowth(program);
  const bool hang = JudgeHang(program);
  return options.StatusOf(server && growth && hang);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv));
}
