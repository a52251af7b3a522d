// Plays the life of pods by NRI events, and keeps CRI's tables in step.
#include "test/e2e/simulated_runtime.h"

#include <utility>

#include "test/e2e/runtime_messages.h"

namespace qrm::test {

SimulatedRuntime::SimulatedRuntime(const std::string& directory)
    : nri_socket_(directory + "/nri.sock"),
      cri_socket_(directory + "/cri.sock"),
      cri_(cri_socket_),
      nri_(nri_socket_) {
  nri_.SetInventory([this] { return TakeInventory(); });
}

Status SimulatedRuntime::RunPod(const PodSpec& spec) {
  Entry entry{.spec = spec, .pod = MakePod(spec), .container = MakeContainer(spec)};
  QRM_RETURN_IF_ERROR(nri_.StateChange(nri::RUN_POD_SANDBOX, entry.pod));
  const Status started = CreateAndStart(entry);
  if (!started.ok()) {
    // As kubelet and the runtime take a pod away whose container was refused.
    for (const nri::Event event : {nri::STOP_CONTAINER, nri::REMOVE_CONTAINER,
                                   nri::STOP_POD_SANDBOX, nri::REMOVE_POD_SANDBOX}) {
      (void)nri_.StateChange(event, entry.pod, entry.container);
    }
    return started;
  }
  Keep(std::move(entry));
  return OkStatus();
}

void SimulatedRuntime::RunPodUnseen(const PodSpec& spec) {
  Entry entry{.spec = spec, .pod = MakePod(spec), .container = MakeContainer(spec)};
  entry.container.set_state(nri::CONTAINER_RUNNING);
  Keep(std::move(entry));
}

void SimulatedRuntime::Keep(Entry entry) {
  cri_.AddPod(CriPod(entry.pod));
  cri_.PutContainer(CriContainer(entry.container));
  const MutexLock lock(mutex_);
  const std::string name = entry.spec.name;
  entries_[name] = {std::move(entry)};
}

Status SimulatedRuntime::AddContainer(const std::string& pod_name, const ContainerSpec& container) {
  PodSpec spec;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(pod_name);
    if (found == entries_.end()) {
      return Errorf(StatusCode::kNotFound, "cannot add to pod {}: it does not run", pod_name);
    }
    spec = found->second.front().spec;
  }
  spec.container = container;
  Entry entry{.spec = spec, .pod = MakePod(spec), .container = MakeContainer(spec)};
  QRM_RETURN_IF_ERROR(CreateAndStart(entry));
  cri_.PutContainer(CriContainer(entry.container));
  const MutexLock lock(mutex_);
  entries_.at(pod_name).push_back(std::move(entry));
  return OkStatus();
}

ScriptedRuntime::Inventory SimulatedRuntime::TakeInventory() const {
  const MutexLock lock(mutex_);
  ScriptedRuntime::Inventory inventory;
  for (const auto& [name, entries] : entries_) {
    inventory.pods.push_back(entries.front().pod);
    for (const Entry& entry : entries) {
      inventory.containers.push_back(entry.container);
      inventory.containers.back().mutable_linux()->mutable_resources()->mutable_cpu()->MergeFrom(
          CpusetsOf(entry));
    }
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

Status SimulatedRuntime::CreateAndStart(Entry& entry) {
  const auto begin = std::chrono::steady_clock::now();
  QRM_ASSIGN_OR_RETURN(const nri::CreateContainerResponse response,
                       nri_.CreateContainer(entry.pod, entry.container));
  last_creation_ = std::chrono::steady_clock::now() - begin;
  entry.adjustment = response.adjust();
  QRM_RETURN_IF_ERROR(nri_.StateChange(nri::POST_START_CONTAINER, entry.pod, entry.container));
  entry.container.set_state(nri::CONTAINER_RUNNING);
  return OkStatus();
}

StatusOr<std::vector<SimulatedRuntime::Entry>> SimulatedRuntime::TakeOut(
    const std::string& pod_name) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(pod_name);
  if (found == entries_.end()) {
    return Errorf(StatusCode::kNotFound, "cannot find pod {}: it does not run", pod_name);
  }
  std::vector<Entry> entries = std::move(found->second);
  entries_.erase(found);
  return entries;
}

Status SimulatedRuntime::Stop(const std::vector<Entry>& entries) {
  const Entry& first = entries.front();
  for (const Entry& entry : entries) {
    cri_.RemoveContainer(entry.container.id());
  }
  cri_.RemovePod(first.pod.id());
  for (const Entry& entry : entries) {
    QRM_RETURN_IF_ERROR(nri_.StateChange(nri::STOP_CONTAINER, entry.pod, entry.container));
  }
  return nri_.StateChange(nri::STOP_POD_SANDBOX, first.pod, first.container);
}

Status SimulatedRuntime::FinishPod(const std::string& name) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Entry> entries, TakeOut(name));
  return Stop(entries);
}

Status SimulatedRuntime::RemovePod(const std::string& name) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Entry> entries, TakeOut(name));
  const Entry& first = entries.front();
  QRM_RETURN_IF_ERROR(Stop(entries));
  for (const Entry& entry : entries) {
    QRM_RETURN_IF_ERROR(nri_.StateChange(nri::REMOVE_CONTAINER, entry.pod, entry.container));
  }
  return nri_.StateChange(nri::REMOVE_POD_SANDBOX, first.pod, first.container);
}

nlohmann::ordered_json SimulatedRuntime::RunOptions(const std::string& pod_name) const {
  const MutexLock lock(mutex_);
  const Entry& entry = entries_.at(pod_name).front();
  const nri::LinuxCPU cpusets = CpusetsOf(entry);
  auto options = nlohmann::ordered_json::object();
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
