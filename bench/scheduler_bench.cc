// The cost of qrm-scheduler's cache: memory with 100,000 pods on 5,000 nodes, the time to fill it,
// and the time of a filter call beyond one of an extender that accepts all.
//   scheduler_bench [--pods N] [--nodes N] [--numa] [--smoke]
// --numa: every node has a configuration by which its NUMA nodes are judged, a fifth of the pods
// own CPUs, and so do those that are asked about, one of which is bound between two calls.
#include <memory>
#include <string>
#include <vector>

#include <malloc.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/check.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/cache/read_objects.h"
#include "scheduler/extender/messages.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

using bench::Judge;
using bench::Median;
using nlohmann::json;

constexpr double kTargetMegabytes = 150;
constexpr double kTargetBytes = 1000;
constexpr double kTargetSyncSeconds = 30;
constexpr int kPodsOfWorkload = 20;
constexpr int kCalls = 21;

constexpr char kNodeConfig[] =
    R"({"machine": "synthetic:package:2 [numa(memory=128GiB)] core:32 pu:2",
        "topology-policy": "single-numa-node",
        "plugins": {"cpu": {"static": {}, "reserved-cpus": "0,1"}, "memory": {"static": true}}})";
constexpr int kPodsPerOwner = 5;

struct Sizes {
  int pods = 100'000;
  int nodes = 5'000;
  bool numa = false;
};

double AllocatedBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

double CpuSeconds() {
  return bench::ProcessorMicroseconds(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

std::string NodeName(int index) {
  return fmt::format("ip-10-{}-{}.eu-central-1.compute.internal", index / 250, index % 250);
}

/// Two containers, three labels and annotations; the pods of a workload differ in their names and
/// in the address that the network wrote on them.
json PodObject(int index, int nodes) {
  const int workload = index / kPodsOfWorkload;
  const auto container = [](const char* name, const char* cpu) -> json {
    return {
        {"name", name},
        {"resources",
         {{"requests", {{"cpu", cpu}, {"memory", "256Mi"}}}, {"limits", {{"memory", "512Mi"}}}}}};
  };
  return {
      {"metadata",
       {{"name", fmt::format("checkout-service-{}-7d9c5b8f6d-{:05x}", workload, index)},
        {"namespace", fmt::format("team-{}", workload % 200)},
        {"uid", fmt::format("4b5f0a3e-{:04x}-4c1d-9d2b-{:012x}", workload, index)},
        {"resourceVersion", std::to_string(1'000 + index)},
        {"labels",
         {{"app.kubernetes.io/name", fmt::format("checkout-service-{}", workload)},
          {"app.kubernetes.io/part-of", "shop"},
          {"pod-template-hash", "7d9c5b8f6d"}}},
        {"annotations",
         {{"cni.projectcalico.org/podIP", fmt::format("10.1.{}.{}/32", index / 250, index % 250)},
          {"prometheus.io/scrape", "true"},
          {"prometheus.io/port", "9090"}}}}},
      {"spec",
       {{"nodeName", NodeName(index % nodes)},
        {"containers", json::array({container("main", "500m"), container("proxy", "100m")})}}},
      {"status", {{"phase", "Running"}}}};
}

/// A Guaranteed pod of four CPUs.
json Guaranteed(json pod) {
  for (json& container : pod["spec"]["containers"]) {
    const bool is_main = container["name"] == "main";
    container["resources"]["requests"]["cpu"] = is_main ? "4" : "100m";
    container["resources"]["limits"] = container["resources"]["requests"];
  }
  pod["status"]["qosClass"] = "Guaranteed";
  return pod;
}

/// A Guaranteed pod with its allocation, where no other pod of the node has one. `turn` counts the
/// pods of a node; the nodes have theirs at twenty different CPUs.
json WithPlace(json pod, int node, int turn) {
  const int first = 2 + 4 * (node % 20 + turn);
  const json memory = {{"nodes", "0"}, {"bytes", {{"0", int64_t{256} << 20}}}};
  const json cpus = fmt::format("{}-{}", first, first + 3);
  const json note = {
      {"containers",
       {{"main", {{"cpu", cpus}, {"memory", memory}}}, {"proxy", {{"memory", memory}}}}}};
  pod = Guaranteed(std::move(pod));
  pod["metadata"]["annotations"]["qrm.io/placement"] = note.dump();
  return pod;
}

json PodOf(const Sizes& sizes, int index) {
  const int turn = index / sizes.nodes;
  json pod = PodObject(index, sizes.nodes);
  return sizes.numa && turn % kPodsPerOwner == 0
             ? WithPlace(std::move(pod), index % sizes.nodes, turn / kPodsPerOwner)
             : pod;
}

std::vector<Node> MakeNodes(const Sizes& sizes) {
  std::vector<Node> nodes;
  for (int i = 0; i < sizes.nodes; ++i) {
    Node node{.name = NodeName(i), .allocatable = {{"cpu", 128}, {"memory", 256e9}}};
    if (sizes.numa) {
      node.annotations["qrm.io/node-config"] = kNodeConfig;
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// As from the API server: object by object, then the end of the list.
std::unique_ptr<ClusterCache> Fill(const HandleRegistry& handles, const Sizes& sizes) {
  auto cache = ClusterCache::Make(handles);
  QRM_CHECK(cache.ok());
  (*cache)->ReplaceNodes(MakeNodes(sizes), "1");
  const uint64_t begun = (*cache)->BeginList();
  for (int i = 0; i < sizes.pods; ++i) {
    auto pod = ReadPod(PodOf(sizes, i));
    QRM_CHECK(pod.ok());
    (*cache)->AddListed(*std::move(pod));
  }
  (*cache)->ReplacePods({.version = "1000000", .begun = begun});
  return *std::move(cache);
}

/// The body of a filter call about `names` nodes and a pod of workload `workload`.
std::string QuestionAbout(int names, const Sizes& sizes, int workload) {
  json pod = PodObject(workload * kPodsOfWorkload, 1);
  pod["spec"].erase("nodeName");
  json question = {{"Pod", sizes.numa ? Guaranteed(std::move(pod)) : std::move(pod)},
                   {"Nodes", nullptr},
                   {"NodeNames", json::array()}};
  for (int i = 0; i < names; ++i) {
    question["NodeNames"].push_back(NodeName(i));
  }
  return question.dump();
}

/// Units: milliseconds of a call with `body`, beyond a call that accepts all nodes.
double JudgeAll(const Snapshot& snapshot, const HandleRegistry& handles, const std::string& body) {
  const auto parsed = ParseNodesQuestion(body);
  QRM_CHECK(parsed.ok());
  FilterAnswer answer;
  const double took = bench::MicrosecondsOf([&] {
    for (const std::string& node : parsed->nodes) {
      std::string refusal = RefusalOf(snapshot, handles, parsed->pod, node);
      if (refusal.empty()) {
        answer.nodes.push_back(node);
      } else {
        answer.refused[node] = std::move(refusal);
      }
    }
  });
  QRM_CHECK(!WriteFilter(answer).empty());
  return took / 1e3;
}

/// One more pod comes to node `node`, as its `turn`th pod with exclusive CPUs.
void BindOne(ClusterCache& cache, const Sizes& sizes, int node, int turn) {
  const int index = sizes.pods + turn * sizes.nodes + node;
  auto pod = ReadPod(WithPlace(PodObject(index, sizes.nodes), node, turn));
  QRM_CHECK(pod.ok());
  cache.SetPod(*std::move(pod));
}

/// The times of calls about `names` nodes: the first about a pod, and the median of calls about
/// similar pods, between which one is bound. Units: as JudgeAll.
struct AddedTimes {
  double first = 0;
  double usual = 0;
};
AddedTimes AddedByJudging(ClusterCache& cache, const HandleRegistry& handles, const Sizes& sizes,
                          int names) {
  const std::string body = QuestionAbout(names, sizes, names);
  AddedTimes times{.first = JudgeAll(*cache.Publish(), handles, body)};
  const int turn = sizes.pods / sizes.nodes / kPodsPerOwner + names / 1'000;
  std::vector<double> added;
  for (int call = 0; call < kCalls; ++call) {
    if (sizes.numa) {
      BindOne(cache, sizes, call * 7 % sizes.nodes, turn);
    }
    added.push_back(JudgeAll(*cache.Publish(), handles, body));
  }
  times.usual = Median(added);
  return times;
}

bool Measure(const Sizes& sizes) {
  const HandleRegistry handles = RegisterResources({"numa"});
  const double resident_before = bench::MemoryOf("self", "VmRSS");
  const double bytes_before = AllocatedBytes();
  const double cpu_before = CpuSeconds();
  const auto cache = Fill(handles, sizes);
  const double cpu = CpuSeconds() - cpu_before;
  cache->Publish();
  const double bytes = (AllocatedBytes() - bytes_before) / sizes.pods;
  const double resident = bench::MemoryOf("self", "VmRSS");
  fmt::print(
      "{} pods on {} nodes{}: {:.0f} B a pod, {:.1f} MB resident before and {:.1f} MB after, "
      "{:.1f} s of CPU time\n",
      sizes.pods, sizes.nodes, sizes.numa ? " with configurations" : "", bytes, resident_before,
      resident, cpu);
  bool reached = Judge("memory of a cached pod", kTargetBytes, bytes, "B");
  reached &= Judge("resident memory of a filled cache", kTargetMegabytes, resident, "MB");
  reached &= Judge("CPU time to fill the cache", kTargetSyncSeconds, cpu, "s");
  for (const auto& [names, limit] : {std::pair(500, 1.0), std::pair(5'000, 10.0)}) {
    const AddedTimes added = AddedByJudging(*cache, handles, sizes, names);
    reached &= Judge(fmt::format("filter about {} nodes beyond accepting all, p50", names), limit,
                     added.usual, "ms");
    fmt::print("  the first about such a pod: {:.2f} ms\n", added.first);
  }
  return reached;
}

int Main(const bench::CommandLine& options) {
  Sizes sizes{.numa = options.values.contains("--numa")};
  sizes.pods = options.Number("--pods", options.smoke ? 200 : sizes.pods);
  sizes.nodes = options.Number("--nodes", options.smoke ? 20 : sizes.nodes);
  return options.StatusOf(Measure(sizes));
}

}  // namespace
}  // namespace qrm::scheduler

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::scheduler::Main(
      qrm::bench::ReadCommandLine(argc, argv, {"--pods", "--nodes"}, {"--numa"}));
}
