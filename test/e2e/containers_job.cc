// Plays the main job step by step and compares what it sees.
#include "test/e2e/containers_job.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/e2e/usable_cpus.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRoleLabel = "katalyst.kubewharf.io/pod_role";
constexpr const char* kWebRole = "online-micro_service";
constexpr const char* kBatchRole = "ETL";
constexpr const char* kNicEnv = "AFFINITY_NIC_ADDR_IPV6";
constexpr const char* kNicAddress = "fdbd:dc05:3:154::20";
constexpr const char* kNicAnnotation = "kubernetes.io/host-netns-path";
constexpr const char* kNicNetns = "/var/run/netns/qrm-demo";

/// How the machine's CPUs are divided between the two pools.
struct Pools {
  CpuSet online;
  CpuSet offline;
};

Pools HalfEach() {
  const CpuSet all = UsableCpus();
  const CpuSet online = FirstOf(all, all.Count() / 2);
  return {.online = online, .offline = all - online};
}

/// Half of the offline pool goes over; pools of one CPU change places.
Pools WithCpusMoved(const Pools& before) {
  const CpuSet moved = FirstOf(before.offline, before.offline.Count() / 2);
  if (moved.Empty()) {
    return {.online = before.offline, .offline = before.online};
  }
  return {.online = before.online | moved, .offline = before.offline - moved};
}

class ContainersJob {
 public:
  explicit ContainersJob(const ContainersOptions& options)
      : options_(options),
        node_({.bin_dir = options.bin_dir,
               .work_dir = options.work_dir + "/qrm",
               .config = options.work_dir + "/qrmd.yaml",
               .nri_socket = options.nri_socket,
               .cri_socket = options.cri_socket,
               .builtin_plugins = "cpu,memory,nic",
               .reconcile_period = std::to_string(options.reconcile_period.count()) + "ms"}),
        kubelet_({.socket = options.cri_socket,
                  .image = options.image,
                  .cgroup_parent = options.cgroup_parent,
                  .log_directory = options.work_dir + "/logs"}) {}

  Status Run();

 private:
  Status StartDaemon();
  Status CreatePods();
  Status ShowNic();
  Status ShowReports();
  Status MovePools(const Pools& to);
  Status KillAndRestart();
  Status TearDown();

  void WriteConfig() const;
  const CpuSet& Expected(const RunningPod& pod) const;
  StatusOr<CpuSet> CpusInKernel(const RunningPod& pod) const;
  StatusOr<std::string> FirstReport(const RunningPod& pod);
  Status ExpectKernel();
  StatusOr<std::string> PodResources() const;

  const ContainersOptions options_;
  Node node_;
  Kubelet kubelet_;
  manager::CgroupReader reader_;
  Pools pools_ = HalfEach();
  std::vector<RunningPod> pods_;
  std::map<std::string, uint32_t> pids_;  // of the first processes, by the pods' names
};

void Heading(const std::string& text) {
  std::cout << "\n--- " << text << "\n" << std::flush;
}

void ContainersJob::WriteConfig() const {
  std::ofstream(options_.work_dir + "/qrmd.yaml")
      << "plugins:\n"
         "  cpu:\n"
         "    default-pool: online\n"
         "    pools:\n"
         "      online: {cpus: \""
      << ToString(pools_.online) << "\", roles: [" << kWebRole << "]}\n"
      << "      offline: {cpus: \"" << ToString(pools_.offline) << "\", roles: [" << kBatchRole
      << "]}\n"
      << "  nic:\n"
         "    nics:\n"
         "      - {interface: demo0, numa-node: 0, ipv6: \""
      << kNicAddress << "\", netns: " << kNicNetns << "}\n"
      << "implicit-resources:\n"
         "  - {resource: NIC, roles: ["
      << kWebRole << "]}\n";
}

const CpuSet& ContainersJob::Expected(const RunningPod& pod) const {
  return pod.spec.labels.at(kRoleLabel) == kWebRole ? pools_.online : pools_.offline;
}

StatusOr<CpuSet> ContainersJob::CpusInKernel(const RunningPod& pod) const {
  QRM_ASSIGN_OR_RETURN(const manager::CgroupCpuset cpuset,
                       reader_.ReadByPid(pids_.at(pod.spec.name)));
  return cpuset.cpus;
}

StatusOr<std::string> ContainersJob::FirstReport(const RunningPod& pod) {
  std::string report;
  const bool reported = Await([&] {
    const auto lines = kubelet_.ReadLog(pod);
    for (const std::string& line : lines.value_or(std::vector<std::string>{})) {
      if (report.empty() && line.starts_with("cpus ")) {
        report = line;
      }
    }
    return !report.empty();
  });
  if (!reported) {
    return Errorf(StatusCode::kInternal, "the container of {} printed nothing; see {}",
                  pod.spec.name, pod.log_file);
  }
  return report;
}

Status ContainersJob::StartDaemon() {
  Heading("qrmd starts, with its built-in plugins");
  std::filesystem::create_directories(options_.work_dir + "/logs");
  WriteConfig();
  QRM_RETURN_IF_ERROR(node_.Start(3));
  QRM_ASSIGN_OR_RETURN(const std::string status, node_.Qrmctl({"status"}));
  QRM_ASSIGN_OR_RETURN(const std::string pools, node_.Qrmctl({"pool", "get"}));
  std::cout << "$ qrmctl status\n" << status << "\n$ qrmctl pool get\n" << pools;
  return OkStatus();
}

Status ContainersJob::CreatePods() {
  Heading("pods are created through CRI; what each first process saw");
  for (const auto& [name, role] : std::vector<std::pair<std::string, std::string>>{
           {"web-1", kWebRole}, {"etl-1", kBatchRole}, {"web-2", kWebRole}}) {
    const PodSpec spec{
        .name = name,
        .uid = "00000000-0000-4000-8000-00000000000" + std::to_string(pods_.size() + 1),
        .labels = {{kRoleLabel, role}},
        .container = {.milli_cpus = 100, .memory_bytes = 64 << 20}};
    QRM_ASSIGN_OR_RETURN(RunningPod pod, kubelet_.RunPod(spec));
    QRM_ASSIGN_OR_RETURN(const nlohmann::json info, kubelet_.Inspect(pod.container_id));
    pids_[name] = info.value("pid", 0U);
    pods_.push_back(std::move(pod));
    const RunningPod& running = pods_.back();
    QRM_ASSIGN_OR_RETURN(const std::string report, FirstReport(running));
    QRM_ASSIGN_OR_RETURN(const manager::CgroupCpuset cpuset, reader_.ReadByPid(pids_[name]));
    std::cout << name << " (" << role << ")\n  its first process: " << report
              << "\n  the host:          cpus " << ToString(cpuset.cpus) << " mems "
              << ToString(cpuset.mems) << " in " << cpuset.path << "\n";
    if (!report.starts_with("cpus " + ToString(Expected(running)) + " ")) {
      return Errorf(StatusCode::kInternal, "the first process of {} saw \"{}\" instead of CPUs {}",
                    name, report, ToString(Expected(running)));
    }
  }
  return ExpectKernel();
}

Status ContainersJob::ExpectKernel() {
  for (const RunningPod& pod : pods_) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpusInKernel(pod));
    if (cpus != Expected(pod)) {
      return Errorf(StatusCode::kInternal, "the kernel gives {} CPUs {} instead of {}",
                    pod.spec.name, ToString(cpus), ToString(Expected(pod)));
    }
  }
  return OkStatus();
}

Status ContainersJob::ShowNic() {
  Heading("what the NIC plugin gave, as the container of web-1 has it");
  const RunningPod& pod = pods_.front();
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> lines, kubelet_.ReadLog(pod));
  const std::string want = std::string("env ") + kNicEnv + "=" + kNicAddress;
  if (std::find(lines.begin(), lines.end(), want) == lines.end()) {
    return Errorf(StatusCode::kInternal, "the container of {} has no \"{}\"", pod.spec.name, want);
  }
  QRM_ASSIGN_OR_RETURN(const nlohmann::json info, kubelet_.Inspect(pod.container_id));
  const nlohmann::json annotations =
      info.value(nlohmann::json::json_pointer("/runtimeSpec/annotations"), nlohmann::json());
  const std::string netns = annotations.value(kNicAnnotation, "");
  std::cout << "environment of its first process: " << want.substr(4)
            << "\nannotation of its OCI spec:       " << kNicAnnotation << "=" << netns << "\n";
  if (netns != kNicNetns) {
    return Errorf(StatusCode::kInternal, "the OCI spec of {} has {}=\"{}\" instead of \"{}\"",
                  pod.spec.name, kNicAnnotation, netns, kNicNetns);
  }
  return OkStatus();
}

Status ContainersJob::MovePools(const Pools& to) {
  pools_ = to;
  const std::string online = "online=" + ToString(to.online);
  const std::string offline = "offline=" + ToString(to.offline);
  QRM_ASSIGN_OR_RETURN(const std::string answer, node_.Qrmctl({"pool", "set", online, offline}));
  std::cout << "$ qrmctl pool set " << online << " " << offline << "\n" << answer;
  const auto begin = std::chrono::steady_clock::now();
  const milliseconds limit = 2 * options_.reconcile_period;
  const bool moved = Await([this] { return ExpectKernel().ok(); }, limit);
  const auto took =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
  QRM_RETURN_IF_ERROR(ExpectKernel());
  if (!moved) {
    return Errorf(StatusCode::kDeadlineExceeded, "the containers followed after more than {} ms",
                  limit.count());
  }
  for (const RunningPod& pod : pods_) {
    const std::string want = "cpus " + ToString(Expected(pod)) + " ";
    std::string report;
    const bool told = Await([&] {
      const auto lines = kubelet_.ReadLog(pod);
      report = lines.ok() && !lines->empty() ? lines->back() : "";
      return report.starts_with(want);
    });
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpusInKernel(pod));
    std::cout << pod.spec.name << "\n  its first process: " << report
              << "\n  the host:          cpus " << ToString(cpus) << "\n";
    if (!told) {
      return Errorf(StatusCode::kInternal, "the process in {} did not see {}", pod.spec.name, want);
    }
  }
  std::cout << "all containers followed within " << took.count() << " ms\n";
  return OkStatus();
}

StatusOr<std::string> ContainersJob::PodResources() const {
  QRM_ASSIGN_OR_RETURN(::v1::ListPodResourcesResponse list, node_.ListPodResources());
  std::sort(
      list.mutable_pod_resources()->begin(), list.mutable_pod_resources()->end(),
      [](const ::v1::PodResources& a, const ::v1::PodResources& b) { return a.name() < b.name(); });
  google::protobuf::util::JsonPrintOptions format;
  format.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(list, &text, format).ok()) {
    return Errorf(StatusCode::kInternal, "cannot print the pod-resources List as JSON");
  }
  // Sorted: what comes from a map has another order in each process.
  return nlohmann::json::parse(text).dump(1) + "\n";
}

Status ContainersJob::ShowReports() {
  Heading("pod-resources List");
  QRM_ASSIGN_OR_RETURN(const std::string list, PodResources());
  std::cout << list;
  QRM_ASSIGN_OR_RETURN(const ::v1::ListPodResourcesResponse response, node_.ListPodResources());
  if (static_cast<std::size_t>(response.pod_resources_size()) != pods_.size()) {
    return Errorf(StatusCode::kInternal, "List has {} pods instead of {}",
                  response.pod_resources_size(), pods_.size());
  }
  Heading("qrmctl pods");
  QRM_ASSIGN_OR_RETURN(const std::string pods, node_.Qrmctl({"pods"}));
  std::cout << pods;
  Heading("NUMA map: qrmctl topology");
  QRM_ASSIGN_OR_RETURN(const std::string map, node_.Qrmctl({"topology"}));
  std::cout << map;
  return OkStatus();
}

Status ContainersJob::KillAndRestart() {
  Heading("kill -9 of qrmd: the containers go on, and nothing is forgotten");
  QRM_ASSIGN_OR_RETURN(const std::string before, PodResources());
  node_.KillDaemon();
  QRM_RETURN_IF_ERROR(Annotate(ExpectKernel(), "after qrmd was killed"));
  QRM_RETURN_IF_ERROR(node_.Start(3));
  QRM_RETURN_IF_ERROR(Annotate(ExpectKernel(), "after qrmd came back"));
  QRM_ASSIGN_OR_RETURN(const std::string after, PodResources());
  if (after != before) {
    return Errorf(StatusCode::kInternal, "List differs after the restart: {}", after);
  }
  std::cout << "containers untouched, List as before; the next pool change:\n";
  return MovePools(HalfEach());
}

Status ContainersJob::TearDown() {
  Heading("tear-down");
  for (const RunningPod& pod : pods_) {
    QRM_RETURN_IF_ERROR(kubelet_.RemovePod(pod));
    if (const StatusOr<CpuSet> cpus = CpusInKernel(pod);
        cpus.status().code() != StatusCode::kNotFound) {
      return Errorf(StatusCode::kInternal, "the container of {} is still there", pod.spec.name);
    }
  }
  const bool empty = Await([this] {
    const auto list = node_.ListPodResources();
    return list.ok() && list->pod_resources_size() == 0;
  });
  if (!empty) {
    return Errorf(StatusCode::kInternal, "qrmd still lists pods that were removed");
  }
  QRM_RETURN_IF_ERROR(node_.Stop());
  std::cout << "pods removed, List empty, qrmd stopped\n";
  return OkStatus();
}

Status ContainersJob::Run() {
  QRM_RETURN_IF_ERROR(StartDaemon());
  QRM_RETURN_IF_ERROR(CreatePods());
  QRM_RETURN_IF_ERROR(ShowNic());
  Heading("CPUs move between the pools");
  QRM_RETURN_IF_ERROR(MovePools(WithCpusMoved(pools_)));
  QRM_RETURN_IF_ERROR(ShowReports());
  QRM_RETURN_IF_ERROR(KillAndRestart());
  return TearDown();
}

}  // namespace

Status PlayContainers(const ContainersOptions& options) {
  return ContainersJob(options).Run();
}

}  // namespace qrm::test
