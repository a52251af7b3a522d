// Plays the three examples and compares what pods run with.
#include "test/e2e/examples_job.h"

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kGiB = int64_t{1} << 30;

/// One example's node: simulated runtime, qrmd, plugin processes.
class Example {
 public:
  Example(const ExamplesOptions& options, int number)
      : samples_(options.samples_dir + "/example" + std::to_string(number)),
        work_dir_(options.work_dir + "/example" + std::to_string(number)) {
    std::filesystem::create_directories(work_dir_);
    runtime_ = std::make_unique<SimulatedRuntime>(work_dir_);
    node_ = std::make_unique<Node>(Node::Options{.bin_dir = options.bin_dir,
                                                 .work_dir = work_dir_,
                                                 .config = samples_ + "/qrmd.yaml",
                                                 .nri_socket = runtime_->nri_socket(),
                                                 .cri_socket = runtime_->cri_socket(),
                                                 .reconcile_period = options.reconcile_period});
  }

  Node& node() { return *node_; }
  SimulatedRuntime& runtime() { return *runtime_; }

  /// qrmd, and the three plugins as processes; registered in both ways.
  Status Start() {
    QRM_RETURN_IF_ERROR(node_->Start(0));
    QRM_RETURN_IF_ERROR(StartPlugin("cpu", "cpu", RegisterBy::kDirectory));
    QRM_RETURN_IF_ERROR(StartPlugin("memory", "memory", RegisterBy::kSocket));
    QRM_RETURN_IF_ERROR(StartPlugin("nic", "NIC", RegisterBy::kDirectory));
    QRM_ASSIGN_OR_RETURN(const std::string table, node_->Qrmctl({"plugins"}));
    std::cout << table << "\n";
    return OkStatus();
  }

  /// Prints a plugin's state and compares it with the proposal's.
  Status ExpectState(const std::string& resource, const json& want) {
    QRM_ASSIGN_OR_RETURN(const std::string text, node_->ExportState(resource));
    std::cout << "initial state of the " << resource << " plugin:\n" << text << "\n";
    const json state = json::parse(text, nullptr, false);
    if (state != want) {
      return Errorf(StatusCode::kInternal,
                    "the {} plugin's initial state differs from the proposal's: {}", resource,
                    json::diff(want, state).dump());
    }
    return OkStatus();
  }

  /// Runs a pod, prints its container's options and compares them.
  Status RunPod(const PodSpec& spec, const json& want) {
    QRM_RETURN_IF_ERROR(Annotate(runtime_->RunPod(spec), "cannot run " + spec.name));
    const ordered_json got = runtime_->RunOptions(spec.name);
    std::cout << spec.name << " (" << spec.labels.at("katalyst.kubewharf.io/pod_role")
              << ") runs with\n"
              << got.dump(2) << "\n";
    return Compare(spec.name, got, want);
  }

  /// Waits until the pod's container runs with `want`, by updates.
  Status ExpectAdjusted(const std::string& pod, const json& want) {
    const bool adjusted = Await([&] { return json(runtime_->RunOptions(pod)) == want; });
    const ordered_json got = runtime_->RunOptions(pod);
    std::cout << pod << " after the adjustment\n" << got.dump(2) << "\n";
    return adjusted ? OkStatus() : Compare(pod, got, want);
  }

  Status Stop(const std::vector<std::string>& pods) {
    for (const std::string& pod : pods) {
      QRM_RETURN_IF_ERROR(runtime_->RemovePod(pod));
    }
    const bool empty = Await([this] {
      const auto list = node_->ListPodResources();
      return list.ok() && list->pod_resources_size() == 0;
    });
    if (!empty) {
      return Errorf(StatusCode::kInternal, "qrmd still lists pods that were removed");
    }
    return node_->Stop();
  }

 private:
  Status StartPlugin(const std::string& name, const std::string& resource, RegisterBy by) {
    return node_->StartPlugin(name, resource, samples_ + "/" + name + ".yaml", by);
  }

  static Status Compare(const std::string& pod, const json& got, const json& want) {
    if (got != want) {
      return Errorf(StatusCode::kInternal, "{} runs with {} where the proposal has {}", pod,
                    got.dump(), want.dump());
    }
    return OkStatus();
  }

  const std::string samples_;
  const std::string work_dir_;
  std::unique_ptr<SimulatedRuntime> runtime_;
  std::unique_ptr<Node> node_;
};

PodSpec Pod(const std::string& name, const std::string& uid, const std::string& role, int64_t cpus,
            int64_t gib = 0) {
  return {.name = name,
          .uid = uid,
          .labels = {{"katalyst.kubewharf.io/pod_role", role}},
          .container = {.milli_cpus = cpus * 1000, .memory_bytes = gib * kGiB}};
}

json Pinned(const std::string& cpus, const std::string& mems = "") {
  json resources = {{"cpusetCpus", cpus}};
  if (!mems.empty()) {
    resources["cpusetMems"] = mems;
  }
  return {{"linux_container_resources", std::move(resources)}};
}

json WithNic(const std::string& cpus) {
  json options = Pinned(cpus, "1");
  options["envs"] = {{"AFFINITY_NIC_ADDR_IPV6", "fdbd:dc05:3:155::20"}};
  options["annotations"] = {{"kubernetes.io/host-netns-path", "/var/run/netns/ns1"}};
  return options;
}

const json& InitialCpuState() {
  static const json state = json::parse(R"({
    "machineState": {
      "0": {"reserved_cpuset": "0-1", "allocated_cpuset": "", "default_cpuset": "2-39"},
      "1": {"reserved_cpuset": "40-41", "allocated_cpuset": "", "default_cpuset": "42-79"}
    },
    "pod_entries": {}
  })");
  return state;
}

const json& InitialMemoryState() {
  static const json state = json::parse(R"({
    "machineState": {"memory": {
      "0": {"Allocated": "0", "allocatable": "237182648320", "free": "237182648320",
            "pod_entries": {}, "systemReserved": "524288000", "total": "237706936320"},
      "1": {"Allocated": "0", "allocatable": "237282263040", "free": "237282263040",
            "pod_entries": {}, "systemReserved": "524288000", "total": "237806551040"}
    }},
    "pod_resource_entries": {}
  })");
  return state;
}

const json& InitialNicState() {
  static const json state = json::parse(R"({
    "machineState": {
      "0": {"nics": [{"interface_name": "eth0", "nuam_node": 0,
                      "address": {"ipv6": "fdbd:dc05:3:154::20"}}]},
      "1": {"nics": [{"interface_name": "eth1", "nuam_node": 1,
                      "address": {"ipv6": "fdbd:dc05:3:155::20"},
                      "netns": "/var/run/netns/ns1"}]}
    },
    "pod_entries": {}
  })");
  return state;
}

Status PlayPools(const ExamplesOptions& options) {
  std::cout << "\n=== Example 1: two pools, resized while their pods run\n\n";
  Example example(options, 1);
  QRM_RETURN_IF_ERROR(example.Start());
  QRM_ASSIGN_OR_RETURN(const std::string state, example.node().ExportState("cpu"));
  std::cout << "initial state of the cpu plugin:\n" << state << "\n";
  const std::string web = "online-micro_service";
  QRM_RETURN_IF_ERROR(example.RunPod(Pod("pod1", "054a696f-d176-488d-b228-d6046faaf67c", web, 4),
                                     Pinned("0-37,40-77")));
  QRM_RETURN_IF_ERROR(example.RunPod(Pod("pod2", "fe8d9c25-6fb4-4983-908f-08e39ebeafe7", "ETL", 2),
                                     Pinned("38-39,78-79")));
  QRM_RETURN_IF_ERROR(example.RunPod(Pod("pod3", "26731da7-b283-488b-b232-cff611c914e1", web, 4),
                                     Pinned("0-37,40-77")));
  QRM_ASSIGN_OR_RETURN(
      const std::string pools,
      example.node().Qrmctl({"pool", "set", "online=0-13,40-53", "offline=14-39,54-79"}));
  std::cout << "\n$ qrmctl pool set online=0-13,40-53 offline=14-39,54-79\n" << pools << "\n";
  QRM_RETURN_IF_ERROR(example.ExpectAdjusted("pod1", Pinned("0-13,40-53")));
  QRM_RETURN_IF_ERROR(example.ExpectAdjusted("pod2", Pinned("14-39,54-79")));
  QRM_RETURN_IF_ERROR(example.ExpectAdjusted("pod3", Pinned("0-13,40-53")));
  return example.Stop({"pod1", "pod2", "pod3"});
}

Status PlayNumaAffinity(const ExamplesOptions& options) {
  std::cout << "\n=== Example 2: exclusive CPUs and memory of one NUMA node, roles kept apart\n\n";
  Example example(options, 2);
  QRM_RETURN_IF_ERROR(example.Start());
  QRM_RETURN_IF_ERROR(example.ExpectState("cpu", InitialCpuState()));
  QRM_RETURN_IF_ERROR(example.ExpectState("memory", InitialMemoryState()));
  QRM_RETURN_IF_ERROR(
      example.RunPod(Pod("pod1", "bc9e28df-1b5c-4099-8866-6110277184e0", "storage-service", 20, 40),
                     Pinned("2-21", "0")));
  QRM_RETURN_IF_ERROR(
      example.RunPod(Pod("pod2", "6f695526-b07c-4baa-90e3-af1dfed2faf8", "reranker", 10, 20),
                     Pinned("42-51", "1")));
  return example.Stop({"pod1", "pod2"});
}

Status PlayNics(const ExamplesOptions& options) {
  std::cout << "\n=== Example 3: NICs near the NUMA node, shared between pods\n\n";
  Example example(options, 3);
  QRM_RETURN_IF_ERROR(example.Start());
  QRM_RETURN_IF_ERROR(example.ExpectState("cpu", InitialCpuState()));
  QRM_RETURN_IF_ERROR(example.ExpectState("memory", InitialMemoryState()));
  QRM_RETURN_IF_ERROR(example.ExpectState("NIC", InitialNicState()));
  // The example begins with NUMA node 0 given away.
  QRM_RETURN_IF_ERROR(example.RunPod(
      Pod("pod0", "0a0f3c52-6a1b-4a4f-9d3e-3c7d5b1f9e00", "storage-service", 38, 200),
      Pinned("2-39", "0")));
  const std::string role = "numa-enhancement";
  QRM_RETURN_IF_ERROR(example.RunPod(
      Pod("pod1", "c44ba6fd-2ce5-43e0-8d4d-b2224dfaeebd", role, 10, 20), WithNic("42-51")));
  QRM_RETURN_IF_ERROR(example.RunPod(
      Pod("pod2", "0a0f3c52-6a1b-4a4f-9d3e-3c7d5b1f9e02", role, 10, 20), WithNic("52-61")));
  QRM_ASSIGN_OR_RETURN(const std::string map, example.node().Qrmctl({"topology"}));
  std::cout << "\n$ qrmctl topology\n" << map << "\n";
  return example.Stop({"pod0", "pod1", "pod2"});
}

}  // namespace

Status PlayExamples(const ExamplesOptions& options) {
  std::cout << "The proposal's three examples on its machine: 80 CPUs, two NUMA nodes.\n"
               "SIMULATED: no container runs here. The runtime is a script that speaks NRI and CRI "
               "over real\nsockets; qrmd and the plugins are the real programs, each a process of "
               "its own.\n";
  QRM_RETURN_IF_ERROR(Annotate(PlayPools(options), "example 1"));
  QRM_RETURN_IF_ERROR(Annotate(PlayNumaAffinity(options), "example 2"));
  return Annotate(PlayNics(options), "example 3");
}

}  // namespace qrm::test
