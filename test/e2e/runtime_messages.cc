// Builds the messages of NRI and CRI from the specs of pods.
#include "test/e2e/runtime_messages.h"

#include <string>

namespace qrm::test {
namespace {

template <typename Map>
void Copy(const StringMap& from, Map& to) {
  to.insert(from.begin(), from.end());
}

cri::ContainerState StateOf(const nri::Container& container) {
  switch (container.state()) {
    case nri::CONTAINER_CREATED:
      return cri::CONTAINER_CREATED;
    case nri::CONTAINER_STOPPED:
      return cri::CONTAINER_EXITED;
    default:
      return cri::CONTAINER_RUNNING;
  }
}

}  // namespace

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

nri::Container MakeContainer(const PodSpec& spec, uint32_t attempt) {
  const CgroupValues values = ValuesFor(spec.container);
  nri::Container container;
  container.set_id("container-" + spec.uid + "-" + spec.container.name +
                   (attempt == 0 ? "" : "-" + std::to_string(attempt)));
  container.set_pod_sandbox_id("sandbox-" + spec.uid);
  container.set_name(spec.container.name);
  Copy(ContainerLabels(spec), *container.mutable_labels());
  (*container.mutable_annotations())["io.kubernetes.container.restartCount"] =
      std::to_string(attempt);
  for (const std::string& id : spec.container.cdi_devices) {
    container.add_cdi_devices()->set_name(id);
  }
  container.mutable_linux()->set_cgroups_path("/qrm-test/" + container.id());
  nri::LinuxResources& resources = *container.mutable_linux()->mutable_resources();
  resources.mutable_cpu()->mutable_shares()->set_value(static_cast<uint64_t>(values.cpu_shares));
  resources.mutable_cpu()->mutable_quota()->set_value(values.cpu_quota_us);
  resources.mutable_cpu()->mutable_period()->set_value(100000);
  resources.mutable_cpu()->set_cpus(spec.container.cpus);
  resources.mutable_memory()->mutable_limit()->set_value(values.memory_limit_bytes);
  container.mutable_linux()->mutable_oom_score_adj()->set_value(values.oom_score_adj);
  return container;
}

void Adjust(const nri::ContainerAdjustment& adjustment, nri::Container& container) {
  for (const nri::KeyValue& variable : adjustment.env()) {
    container.add_env(variable.key() + "=" + variable.value());
  }
  container.mutable_annotations()->insert(adjustment.annotations().begin(),
                                          adjustment.annotations().end());
  container.mutable_mounts()->MergeFrom(adjustment.mounts());
  container.mutable_linux()->mutable_devices()->MergeFrom(adjustment.linux().devices());
}

cri::PodSandbox CriPod(const nri::PodSandbox& from, cri::PodSandboxState state) {
  cri::PodSandbox pod;
  pod.set_id(from.id());
  pod.mutable_metadata()->set_name(from.name());
  pod.mutable_metadata()->set_uid(from.uid());
  pod.mutable_metadata()->set_namespace_(from.namespace_());
  *pod.mutable_labels() = from.labels();
  *pod.mutable_annotations() = from.annotations();
  pod.set_state(state);
  return pod;
}

cri::Container CriContainer(const nri::Container& from, uint32_t attempt) {
  cri::Container container;
  container.set_id(from.id());
  container.set_pod_sandbox_id(from.pod_sandbox_id());
  container.mutable_metadata()->set_name(from.name());
  container.mutable_metadata()->set_attempt(attempt);
  container.set_state(StateOf(from));
  *container.mutable_labels() = from.labels();
  return container;
}

cri::LinuxContainerResources CriResources(const nri::Container& from) {
  const nri::LinuxResources& values = from.linux().resources();
  cri::LinuxContainerResources resources;
  resources.set_cpu_shares(static_cast<int64_t>(values.cpu().shares().value()));
  resources.set_cpu_quota(values.cpu().quota().value());
  resources.set_cpu_period(static_cast<int64_t>(values.cpu().period().value()));
  resources.set_memory_limit_in_bytes(values.memory().limit().value());
  return resources;
}

}  // namespace qrm::test
