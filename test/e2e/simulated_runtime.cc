#include "test/e2e/simulated_runtime.h"

#include <utility>
#include <vector>

namespace qrm::test {
namespace {

namespace cri = ::runtime::v1;

template <typename Map>
void Copy(const StringMap& from, Map& to) {
  to.insert(from.begin(), from.end());
}

nri::PodSandbox MakePod(const PodSpec& spec) {
  nri::PodSandbox pod;
  pod.set_id("sandbox-" + spec.uid);
  pod.set_name(spec.name);
  pod.set_uid(spec.uid);
  pod.set_namespace_(spec.pod_namespace);
  Copy(SandboxLabels(spec), *pod.mutable_labels());
  Copy(spec.annotations, *pod.mutable_annotations());
  pod.mutable_linux()->set_cgroup_parent("/kubepods" + ValuesFor(spec.container).qos_path + "/pod" +
                                         spec.uid);
  return pod;
}

nri::Container MakeContainer(const PodSpec& spec) {
  const CgroupValues values = ValuesFor(spec.container);
  nri::Container container;
  container.set_id("container-" + spec.uid);
  container.set_pod_sandbox_id("sandbox-" + spec.uid);
  container.set_name(spec.container.name);
  Copy(ContainerLabels(spec), *container.mutable_labels());
  nri::LinuxResources& resources = *container.mutable_linux()->mutable_resources();
  resources.mutable_cpu()->mutable_shares()->set_value(static_cast<uint64_t>(values.cpu_shares));
  resources.mutable_cpu()->mutable_quota()->set_value(values.cpu_quota_us);
  resources.mutable_cpu()->mutable_period()->set_value(100000);
  resources.mutable_memory()->mutable_limit()->set_value(values.memory_limit_bytes);
  container.mutable_linux()->mutable_oom_score_adj()->set_value(values.oom_score_adj);
  return container;
}

cri::PodSandbox CriPod(const nri::PodSandbox& from) {
  cri::PodSandbox pod;
  pod.set_id(from.id());
  pod.mutable_metadata()->set_name(from.name());
  pod.mutable_metadata()->set_uid(from.uid());
  pod.mutable_metadata()->set_namespace_(from.namespace_());
  *pod.mutable_labels() = from.labels();
  *pod.mutable_annotations() = from.annotations();
  return pod;
}

cri::Container CriContainer(const nri::Container& from) {
  cri::Container container;
  container.set_id(from.id());
  container.set_pod_sandbox_id(from.pod_sandbox_id());
  container.mutable_metadata()->set_name(from.name());
  container.set_state(cri::CONTAINER_RUNNING);
  *container.mutable_labels() = from.labels();
  return container;
}

}  // namespace

SimulatedRuntime::SimulatedRuntime(const std::string& directory)
    : nri_socket_(directory + "/nri.sock"),
      cri_socket_(directory + "/cri.sock"),
      cri_(cri_socket_),
      nri_(nri_socket_) {
  nri_.SetInventory([this] { return TakeInventory(); });
}

Status SimulatedRuntime::RunPod(const PodSpec& spec) {
  Entry entry{.pod = MakePod(spec), .container = MakeContainer(spec)};
  const Status started = TellStart(entry);
  if (!started.ok()) {
    // As kubelet and the runtime take a pod away whose container was refused.
    for (const nri::Event event : {nri::STOP_CONTAINER, nri::REMOVE_CONTAINER,
                                   nri::STOP_POD_SANDBOX, nri::REMOVE_POD_SANDBOX}) {
      (void)nri_.StateChange(event, entry.pod, entry.container);
    }
    return started;
  }
  cri_.AddPod(CriPod(entry.pod));
  cri_.PutContainer(CriContainer(entry.container));
  entry.container.set_state(nri::CONTAINER_RUNNING);
  const MutexLock lock(mutex_);
  entries_[spec.name] = std::move(entry);
  return OkStatus();
}

ScriptedRuntime::Inventory SimulatedRuntime::TakeInventory() const {
  const MutexLock lock(mutex_);
  ScriptedRuntime::Inventory inventory;
  for (const auto& [name, entry] : entries_) {
    inventory.pods.push_back(entry.pod);
    inventory.containers.push_back(entry.container);
    inventory.containers.back().mutable_linux()->mutable_resources()->mutable_cpu()->MergeFrom(
        CpusetsOf(entry));
  }
  return inventory;
}

nri::LinuxCPU SimulatedRuntime::CpusetsOf(const Entry& entry) const {
  nri::LinuxCPU cpusets;
  cpusets.set_cpus(entry.adjustment.linux().resources().cpu().cpus());
  cpusets.set_mems(entry.adjustment.linux().resources().cpu().mems());
  for (const ScriptedCri::Update& update : cri_.updates()) {
    if (update.container_id() != entry.container.id()) {
      continue;
    }
    if (!update.linux().cpuset_cpus().empty()) {
      cpusets.set_cpus(update.linux().cpuset_cpus());
    }
    if (!update.linux().cpuset_mems().empty()) {
      cpusets.set_mems(update.linux().cpuset_mems());
    }
  }
  return cpusets;
}

Status SimulatedRuntime::TellStart(Entry& entry) {
  QRM_RETURN_IF_ERROR(nri_.StateChange(nri::RUN_POD_SANDBOX, entry.pod));
  QRM_ASSIGN_OR_RETURN(const nri::CreateContainerResponse response,
                       nri_.CreateContainer(entry.pod, entry.container));
  entry.adjustment = response.adjust();
  return nri_.StateChange(nri::POST_START_CONTAINER, entry.pod, entry.container);
}

Status SimulatedRuntime::RemovePod(const std::string& name) {
  Entry entry;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      return Errorf(StatusCode::kNotFound, "cannot remove pod {}: it does not run", name);
    }
    entry = std::move(found->second);
    entries_.erase(found);
  }
  cri_.RemoveContainer(entry.container.id());
  for (const nri::Event event : {nri::STOP_CONTAINER, nri::STOP_POD_SANDBOX, nri::REMOVE_CONTAINER,
                                 nri::REMOVE_POD_SANDBOX}) {
    QRM_RETURN_IF_ERROR(nri_.StateChange(event, entry.pod, entry.container));
  }
  return OkStatus();
}

nlohmann::ordered_json SimulatedRuntime::RunOptions(const std::string& pod_name) const {
  const MutexLock lock(mutex_);
  const Entry& entry = entries_.at(pod_name);
  const nri::LinuxCPU cpusets = CpusetsOf(entry);
  nlohmann::ordered_json options;
  for (const nri::KeyValue& env : entry.adjustment.env()) {
    options["envs"][env.key()] = env.value();
  }
  for (const auto& [key, value] : entry.adjustment.annotations()) {
    options["annotations"][key] = value;
  }
  if (!cpusets.cpus().empty()) {
    options["linux_container_resources"]["cpusetCpus"] = cpusets.cpus();
  }
  if (!cpusets.mems().empty()) {
    options["linux_container_resources"]["cpusetMems"] = cpusets.mems();
  }
  return options;
}

}  // namespace qrm::test
