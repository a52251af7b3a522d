// Plays the life of pods by NRI events, and keeps CRI's tables in step.
#include "test/e2e/simulated_runtime.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/base/errorf.h"
#include "test/e2e/runtime_messages.h"

namespace qrm::test {

SimulatedRuntime::SimulatedRuntime(const std::string& directory, std::chrono::milliseconds patience)
    : nri_socket_(directory + "/nri.sock"),
      cri_socket_(directory + "/cri.sock"),
      patience_(patience),
      cri_(cri_socket_),
      nri_(nri_socket_) {
  nri_.SetInventory([this] { return TakeInventory(); });
  cri_.MakePodsBy({.run =
                       [this](const cri::RunPodSandboxRequest& request) {
                         return RunSandbox(request.config());
                       },
                   .create =
                       [this](const cri::CreateContainerRequest& request) {
                         return MakeContainer(request.pod_sandbox_id(), request.config());
                       },
                   .stop =
                       [this](const std::string& id) {
                         const StatusOr<Sandbox> sandbox = FindById(id);
                         return sandbox.ok() ? Stop(*sandbox) : sandbox.status();
                       },
                   .remove =
                       [this](const std::string& id) {
                         const StatusOr<Sandbox> sandbox = FindById(id);
                         return sandbox.ok() ? RemovePod(sandbox->spec.name) : sandbox.status();
                       }});
}

StatusOr<std::string> SimulatedRuntime::RunSandbox(const cri::PodSandboxConfig& config) {
  const PodSpec spec{.name = config.metadata().name(),
                     .uid = config.metadata().uid(),
                     .pod_namespace = config.metadata().namespace_(),
                     .labels = {config.labels().begin(), config.labels().end()},
                     .annotations = {config.annotations().begin(), config.annotations().end()}};
  const Sandbox sandbox{.spec = spec, .pod = MakePod(spec)};
  QRM_RETURN_IF_ERROR(nri_.StateChange(nri::RUN_POD_SANDBOX, sandbox.pod, {}, patience_));
  Keep(sandbox);
  return sandbox.pod.id();
}

StatusOr<std::string> SimulatedRuntime::MakeContainer(const std::string& sandbox_id,
                                                      const cri::ContainerConfig& config) {
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, FindById(sandbox_id));
  const cri::LinuxContainerResources& resources = config.linux().resources();
  const ContainerSpec container{.name = config.metadata().name(),
                                .milli_cpus = resources.cpu_shares() * 1000 / 1024,
                                .memory_bytes = resources.memory_limit_in_bytes()};
  const Entry entry = NextEntry(sandbox, container);
  QRM_RETURN_IF_ERROR(CreateAndStart(sandbox.spec.uid, sandbox.pod, entry));
  return entry.container.id();
}

StatusOr<SimulatedRuntime::Sandbox> SimulatedRuntime::FindById(
    const std::string& sandbox_id) const {
  const MutexLock lock(mutex_);
  for (const auto& [uid, sandbox] : sandboxes_) {
    if (sandbox.pod.id() == sandbox_id) {
      return sandbox;
    }
  }
  return Errorf(StatusCode::kNotFound, "no sandbox {}", sandbox_id);
}

SimulatedRuntime::Entry SimulatedRuntime::MakeEntry(const PodSpec& spec, uint32_t attempt) {
  return {.attempt = attempt,
          .container = test::MakeContainer(spec, attempt),
          .serialized = {},
          .adjustment = {}};
}

Status SimulatedRuntime::RunPod(const PodSpec& spec) {
  const Sandbox sandbox{.spec = spec, .pod = MakePod(spec)};
  QRM_RETURN_IF_ERROR(nri_.StateChange(nri::RUN_POD_SANDBOX, sandbox.pod, {}, patience_));
  Keep(sandbox);
  Status started = CreateAndStart(spec.uid, sandbox.pod, MakeEntry(spec, 0));
  if (!started.ok()) {
    // As kubelet and the runtime remove a pod whose container was rejected.
    Forget(sandbox);
    QRM_RETURN_IF_ERROR(Tell(nri::STOP_POD_SANDBOX, sandbox.pod));
    QRM_RETURN_IF_ERROR(Tell(nri::REMOVE_POD_SANDBOX, sandbox.pod));
  }
  return started;
}

void SimulatedRuntime::CreatePodUnseen(const PodSpec& spec) {
  Keep({.spec = spec, .pod = MakePod(spec)});
  Entry entry = MakeEntry(spec, 0);
  entry.container.set_state(nri::CONTAINER_CREATED);
  KeepEntry(spec.uid, entry);
}

Status SimulatedRuntime::StartUnseen(const std::string& pod_name) {
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, Find(pod_name));
  Entry entry = sandbox.entries.front();
  entry.container.set_state(nri::CONTAINER_RUNNING);
  KeepEntry(sandbox.spec.uid, entry);
  return OkStatus();
}

void SimulatedRuntime::RunPodUnseen(const PodSpec& spec) {
  CreatePodUnseen(spec);
  (void)StartUnseen(spec.name);
}

void SimulatedRuntime::Keep(const Sandbox& sandbox) {
  cri_.PutPod(CriPod(sandbox.pod, cri::SANDBOX_READY));
  const MutexLock lock(mutex_);
  uid_by_name_[sandbox.spec.name] = sandbox.spec.uid;
  sandboxes_[sandbox.spec.uid] = sandbox;
}

void SimulatedRuntime::KeepEntry(const std::string& uid, const Entry& entry) {
  cri_.PutContainer(CriContainer(entry.container, entry.attempt));
  const MutexLock lock(mutex_);
  std::vector<Entry>& entries = sandboxes_.at(uid).entries;
  const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& other) {
    return other.container.id() == entry.container.id();
  });
  if (same == entries.end()) {
    entries.push_back(entry);
  } else {
    *same = entry;
    same->serialized.clear();
  }
}

void SimulatedRuntime::Forget(const Sandbox& sandbox) {
  for (const Entry& entry : sandbox.entries) {
    cri_.RemoveContainer(entry.container.id());
  }
  cri_.RemovePod(sandbox.pod.id());
  const MutexLock lock(mutex_);
  sandboxes_.erase(sandbox.spec.uid);
  const auto named = uid_by_name_.find(sandbox.spec.name);
  if (named != uid_by_name_.end() && named->second == sandbox.spec.uid) {
    uid_by_name_.erase(named);
  }
}

StatusOr<SimulatedRuntime::Sandbox> SimulatedRuntime::Find(const std::string& pod_name) const {
  const MutexLock lock(mutex_);
  const auto uid = uid_by_name_.find(pod_name);
  if (uid == uid_by_name_.end()) {
    return Errorf(StatusCode::kNotFound, "cannot find pod {}: it is not there", pod_name);
  }
  return sandboxes_.at(uid->second);
}

SimulatedRuntime::Entry SimulatedRuntime::NextEntry(const Sandbox& sandbox,
                                                    const ContainerSpec& container) {
  PodSpec spec = sandbox.spec;
  spec.container = container;
  const auto attempt =
      std::count_if(sandbox.entries.begin(), sandbox.entries.end(),
                    [&](const Entry& other) { return other.container.name() == container.name; });
  return MakeEntry(spec, static_cast<uint32_t>(attempt));
}

Status SimulatedRuntime::AddContainer(const std::string& pod_name, const ContainerSpec& container) {
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, Find(pod_name));
  return CreateAndStart(sandbox.spec.uid, sandbox.pod, NextEntry(sandbox, container));
}

Status SimulatedRuntime::AddContainerUnseen(const std::string& pod_name,
                                            const ContainerSpec& container) {
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, Find(pod_name));
  Entry entry = NextEntry(sandbox, container);
  entry.container.set_state(nri::CONTAINER_RUNNING);
  KeepEntry(sandbox.spec.uid, entry);
  return OkStatus();
}

Status SimulatedRuntime::ResizeUnseen(const std::string& pod_name, const ContainerSpec& container) {
  QRM_ASSIGN_OR_RETURN(Sandbox sandbox, Find(pod_name));
  const auto entry =
      std::find_if(sandbox.entries.rbegin(), sandbox.entries.rend(),
                   [&](const Entry& other) { return other.container.name() == container.name; });
  if (entry == sandbox.entries.rend()) {
    return Errorf(StatusCode::kNotFound, "pod {} has no container {}", pod_name, container.name);
  }
  *entry->container.mutable_linux()->mutable_resources() =
      NextEntry(sandbox, container).container.linux().resources();
  KeepEntry(sandbox.spec.uid, *entry);
  cri_.SetResources(entry->container.id(), CriResources(entry->container));
  return OkStatus();
}

Status SimulatedRuntime::Resize(const std::string& pod_name, const ContainerSpec& container) {
  QRM_RETURN_IF_ERROR(ResizeUnseen(pod_name, container));
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, Find(pod_name));
  nri::UpdateContainerRequest request;
  *request.mutable_pod() = sandbox.pod;
  for (const Entry& entry : sandbox.entries) {
    if (entry.container.name() == container.name) {
      *request.mutable_container() = entry.container;
      *request.mutable_linux_resources() = entry.container.linux().resources();
    }
  }
  return nri_.Call("UpdateContainer", request.SerializeAsString()).status();
}

// A failure is undone, as by the runtime.
Status SimulatedRuntime::CreateAndStart(const std::string& uid, const nri::PodSandbox& pod,
                                        Entry entry) {
  entry.asked = std::chrono::steady_clock::now();
  const StatusOr<nri::CreateContainerResponse> response =
      nri_.CreateContainer(pod, entry.container, patience_);
  entry.answered = std::chrono::steady_clock::now();
  last_creation_ = entry.answered - entry.asked;
  Status done = response.status();
  if (done.ok()) {
    done = CheckOnline(response->adjust().linux().resources().cpu().cpus());
  }
  if (done.ok()) {
    entry.adjustment = response->adjust();
    Adjust(entry.adjustment, entry.container);
    entry.container.set_state(nri::CONTAINER_CREATED);
    KeepEntry(uid, entry);
    done = nri_.StateChange(nri::START_CONTAINER, pod, entry.container, patience_);
  }
  if (done.ok()) {
    entry.container.set_state(nri::CONTAINER_RUNNING);
    KeepEntry(uid, entry);
    done = nri_.StateChange(nri::POST_START_CONTAINER, pod, entry.container, patience_);
  }
  if (!done.ok()) {
    QRM_RETURN_IF_ERROR(Tell(nri::STOP_CONTAINER, pod, entry.container));
    QRM_RETURN_IF_ERROR(Tell(nri::REMOVE_CONTAINER, pod, entry.container));
    cri_.RemoveContainer(entry.container.id());
  }
  return done;
}

// What it sent before is at hand: a start of qrmd is measured, without the runtime's part.
ScriptedRuntime::Inventory SimulatedRuntime::TakeInventory() {
  const auto bytes_of = [](const auto& message, std::string& serialized) -> const std::string& {
    if (serialized.empty()) {
      serialized = message.SerializeAsString();
    }
    return serialized;
  };
  const MutexLock lock(mutex_);
  ScriptedRuntime::Inventory inventory;
  for (auto& [uid, sandbox] : sandboxes_) {
    inventory.pods.push_back(bytes_of(sandbox.pod, sandbox.serialized));
    for (Entry& entry : sandbox.entries) {
      if (entry.container.state() == nri::CONTAINER_STOPPED) {
        continue;
      }
      nri::Container now;
      *now.mutable_linux()->mutable_resources()->mutable_cpu() = CpusetsOf(entry);
      // Concatenated messages are one message, where the later value counts.
      inventory.containers.push_back(bytes_of(entry.container, entry.serialized) +
                                     now.SerializeAsString());
    }
  }
  return inventory;
}

void SimulatedRuntime::SetOffline(const CpuSet& cpus) {
  cri_.SetOffline(cpus);
  const std::size_t updates = cri_.update_count();
  const MutexLock lock(offline_mutex_);
  offline_.push_back({.updates = updates, .cpus = cpus});
}

Status SimulatedRuntime::CheckOnline(const std::string& cpus) const {
  QRM_ASSIGN_OR_RETURN(const CpuSet wanted, CpuSet::Parse(cpus));
  const MutexLock lock(offline_mutex_);
  return offline_.empty() || !wanted.Intersects(offline_.back().cpus)
             ? OkStatus()
             : Errorf(StatusCode::kUnknown, "write {} to cpuset.cpus: invalid argument", cpus);
}

std::vector<SimulatedRuntime::Offline> SimulatedRuntime::OfflineSoFar() const {
  const MutexLock lock(offline_mutex_);
  return offline_;
}

nri::LinuxCPU SimulatedRuntime::CpusetsOf(const Entry& entry) const {
  nri::LinuxCPU cpusets;
  cpusets.set_cpus(entry.adjustment.linux().resources().cpu().cpus());
  cpusets.set_mems(entry.adjustment.linux().resources().cpu().mems());
  const auto updates = cri_.UpdatesOf(entry.container.id());
  const std::vector<Offline> all = OfflineSoFar();
  auto offline = all.begin();
  const auto take_off = [&](std::size_t before) {
    for (; offline != all.end() && offline->updates <= before; ++offline) {
      cpusets.set_cpus(ToString(CpuSet::Parse(cpusets.cpus()).value() - offline->cpus));
    }
  };
  for (const auto& [before, update] : updates) {
    take_off(before);
    if (!update.linux().cpuset_cpus().empty()) {
      cpusets.set_cpus(update.linux().cpuset_cpus());
    }
    if (!update.linux().cpuset_mems().empty()) {
      cpusets.set_mems(update.linux().cpuset_mems());
    }
  }
  take_off(std::numeric_limits<std::size_t>::max());
  return cpusets;
}

// A runtime only logs the result of these.
Status SimulatedRuntime::Tell(nri::Event event, const nri::PodSandbox& pod,
                              const nri::Container& container) {
  const Status told = nri_.StateChange(event, pod, container, patience_);
  return told.code() == StatusCode::kUnavailable ? OkStatus() : told;
}

Status SimulatedRuntime::EndEntry(const Sandbox& sandbox, Entry entry) {
  if (entry.container.state() == nri::CONTAINER_STOPPED) {
    return OkStatus();
  }
  entry.container.set_state(nri::CONTAINER_STOPPED);
  KeepEntry(sandbox.spec.uid, entry);
  return Tell(nri::STOP_CONTAINER, sandbox.pod, entry.container);
}

Status SimulatedRuntime::EndContainer(const std::string& pod_name, const std::string& container) {
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, Find(pod_name));
  for (const Entry& entry : sandbox.entries) {
    if (entry.container.name() == container) {
      QRM_RETURN_IF_ERROR(EndEntry(sandbox, entry));
    }
  }
  return OkStatus();
}

Status SimulatedRuntime::Stop(const Sandbox& sandbox) {
  for (const Entry& entry : sandbox.entries) {
    QRM_RETURN_IF_ERROR(EndEntry(sandbox, entry));
  }
  if (!sandbox.ready) {
    return OkStatus();
  }
  cri_.PutPod(CriPod(sandbox.pod, cri::SANDBOX_NOTREADY));
  {
    const MutexLock lock(mutex_);
    sandboxes_.at(sandbox.spec.uid).ready = false;
  }
  return sandbox.restored ? OkStatus() : Tell(nri::STOP_POD_SANDBOX, sandbox.pod);
}

Status SimulatedRuntime::FinishPod(const std::string& name) {
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, Find(name));
  return Stop(sandbox);
}

Status SimulatedRuntime::RemovePod(const std::string& name) {
  QRM_ASSIGN_OR_RETURN(const Sandbox sandbox, Find(name));
  const Status stopped = Stop(sandbox);
  Forget(sandbox);  // also when qrmd has died meanwhile
  QRM_RETURN_IF_ERROR(stopped);
  for (const Entry& entry : sandbox.entries) {
    QRM_RETURN_IF_ERROR(Tell(nri::REMOVE_CONTAINER, sandbox.pod, entry.container));
  }
  return sandbox.restored ? OkStatus() : Tell(nri::REMOVE_POD_SANDBOX, sandbox.pod);
}

Status SimulatedRuntime::RefuseSandbox(const PodSpec& spec) {
  nri::PodSandbox pod = MakePod(spec);
  pod.set_id(pod.id() + "-refused");
  return nri_.StateChange(nri::RUN_POD_SANDBOX, pod, {}, patience_);
}

void SimulatedRuntime::Restart() {
  {
    const MutexLock lock(mutex_);
    for (auto& [uid, sandbox] : sandboxes_) {
      sandbox.restored = true;
    }
  }
  nri_.Disconnect();
}

std::pair<std::chrono::steady_clock::time_point, std::chrono::steady_clock::time_point>
SimulatedRuntime::CreationOf(const std::string& pod_name) const {
  const Sandbox sandbox = Find(pod_name).value();
  return {sandbox.entries.back().asked, sandbox.entries.back().answered};
}

nlohmann::ordered_json SimulatedRuntime::RunOptions(const std::string& pod_name) const {
  const Sandbox sandbox = Find(pod_name).value();
  const std::string& first = sandbox.entries.front().container.name();
  const auto latest =
      std::find_if(sandbox.entries.rbegin(), sandbox.entries.rend(),
                   [&](const Entry& entry) { return entry.container.name() == first; });
  const nri::LinuxCPU cpusets = CpusetsOf(*latest);
  auto options = nlohmann::ordered_json::object();
  for (const nri::KeyValue& env : latest->adjustment.env()) {
    options["envs"][env.key()] = env.value();
  }
  for (const auto& [key, value] : latest->adjustment.annotations()) {
    options["annotations"][key] = value;
  }
  if (!cpusets.cpus().empty()) {
    options["linux_container_resources"]["cpusetCpus"] = cpusets.cpus();
  }
  if (!cpusets.mems().empty()) {
    options["linux_container_resources"]["cpusetMems"] = cpusets.mems();
  }
  const auto& linux_part = latest->adjustment.linux();
  for (const auto& [file, value] : linux_part.resources().unified()) {
    options["linux_container_resources"]["unified"][file] = value;
  }
  for (const nri::HugepageLimit& limit : linux_part.resources().hugepage_limits()) {
    options["linux_container_resources"]["hugepageLimits"][limit.page_size()] = limit.limit();
  }
  if (linux_part.resources().has_rdt_class()) {
    options["rdt_class"] = linux_part.resources().rdt_class().value();
  }
  return options;
}

cri::LinuxContainerResources SimulatedRuntime::Updated(const std::string& pod_name,
                                                       const std::string& container) const {
  const Sandbox sandbox = Find(pod_name).value();
  const auto latest =
      std::find_if(sandbox.entries.rbegin(), sandbox.entries.rend(),
                   [&](const Entry& entry) { return entry.container.name() == container; });
  cri::LinuxContainerResources values;
  if (latest != sandbox.entries.rend()) {
    for (const auto& [before, update] : cri_.UpdatesOf(latest->container.id())) {
      values.MergeFrom(update.linux());
    }
  }
  return values;
}

}  // namespace qrm::test
