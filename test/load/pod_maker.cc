// Makes pods through CRI or on the simulated runtime.
#include "test/load/pod_maker.h"

#include <utility>

#include "test/e2e/runtime_messages.h"

namespace qrm::test {

ScriptedPodMaker::ScriptedPodMaker(const std::string& directory)
    : nri_socket_(directory + "/nri.sock"),
      cri_socket_(directory + "/cri.sock"),
      cri_(cri_socket_),
      nri_(nri_socket_) {
  nri_.SetInventory([this] {
    const MutexLock lock(mutex_);
    return inventory_;
  });
}

Status ScriptedPodMaker::Make(const PodSpec& spec, const std::vector<ContainerSpec>& containers) {
  const nri::PodSandbox pod = MakePod(spec);
  {
    const std::lock_guard hook(hook_);
    QRM_RETURN_IF_ERROR(nri_.StateChange(nri::RUN_POD_SANDBOX, pod));
  }
  {
    const MutexLock lock(mutex_);
    inventory_.pods.push_back(pod.SerializeAsString());
  }
  cri_.PutPod(CriPod(pod, cri::SANDBOX_READY));
  for (const ContainerSpec& container : containers) {
    QRM_RETURN_IF_ERROR(MakeContainer(pod, spec, container));
  }
  return OkStatus();
}

Status ScriptedPodMaker::MakeContainer(const nri::PodSandbox& pod, const PodSpec& spec,
                                       const ContainerSpec& container) {
  PodSpec with = spec;
  with.container = container;
  nri::Container made = test::MakeContainer(with);
  nri::CreateContainerResponse response;
  {
    const std::lock_guard hook(hook_);
    QRM_ASSIGN_OR_RETURN(response, nri_.CreateContainer(pod, made));
  }
  *made.mutable_linux()->mutable_resources()->mutable_cpu() =
      response.adjust().linux().resources().cpu();
  made.set_state(nri::CONTAINER_RUNNING);
  cri_.PutContainer(CriContainer(made));
  {
    const std::lock_guard hook(hook_);
    QRM_RETURN_IF_ERROR(nri_.StateChange(nri::POST_START_CONTAINER, pod, made));
  }
  const MutexLock lock(mutex_);
  cpus_[spec.uid + "/" + container.name] = made.linux().resources().cpu().cpus();
  inventory_.containers.push_back(made.SerializeAsString());
  return OkStatus();
}

std::map<std::string, std::string> ScriptedPodMaker::cpus() const {
  const MutexLock lock(mutex_);
  return cpus_;
}

Status ContainerdPodMaker::Make(const PodSpec& spec, const std::vector<ContainerSpec>& containers) {
  thread_local std::unique_ptr<Kubelet> kubelet;
  if (kubelet == nullptr) {
    kubelet = std::make_unique<Kubelet>(options_);
  }
  PodSpec with = spec;
  with.container = containers.front();
  QRM_ASSIGN_OR_RETURN(const RunningPod pod, kubelet->RunPod(with));
  for (std::size_t i = 1; i < containers.size(); ++i) {
    QRM_RETURN_IF_ERROR(kubelet->AddContainer(pod, containers[i]).status());
  }
  return OkStatus();
}

}  // namespace qrm::test
