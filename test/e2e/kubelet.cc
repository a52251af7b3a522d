// Makes and removes pods by CRI calls, as kubelet does.
#include "test/e2e/kubelet.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "api/base/errorf.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "api/proto/runtime/v1/api.pb.h"

namespace qrm::test {

namespace cri = ::runtime::v1;

namespace {

using manager::cli::kCpuPeriodUs;

std::string LogName(const PodSpec& pod, const ContainerSpec& container, uint32_t attempt) {
  return fmt::format("{}-{}-{}.log", pod.uid, container.name, attempt);
}

/// Kubelet's name of a pod's cgroup with the systemd driver: "kubepods-burstable-poduid_1.slice".
std::string SliceOf(std::string path) {
  std::replace(path.begin(), path.end(), '-', '_');
  std::replace(path.begin(), path.end(), '/', '-');
  return path.substr(1) + ".slice";
}

}  // namespace

CgroupValues ValuesFor(const ContainerSpec& container) {
  const bool is_empty = container.milli_cpus == 0 && container.memory_bytes == 0;
  const bool is_guaranteed = container.cpu_limit && container.memory_bytes > 0;
  const std::string_view qos_class = is_guaranteed ? "Guaranteed"
                                     : is_empty    ? "BestEffort"
                                                   : "Burstable";
  CgroupValues values;
  static_cast<manager::cli::CgroupValues&>(values) = manager::cli::KubeletValues(
      {.milli_cpus = container.milli_cpus,
       .milli_cpu_limit = container.cpu_limit ? container.milli_cpus : container.milli_limit,
       .memory_bytes = container.memory_bytes,
       .memory_limit_bytes = container.memory_bytes},
      qos_class, manager::cli::MachineBytes());
  if (!is_guaranteed) {
    values.qos_path = is_empty ? "/besteffort" : "/burstable";
  }
  return values;
}

StringMap ContainerLabels(const PodSpec& pod) {
  return {{"io.kubernetes.pod.name", pod.name},
          {"io.kubernetes.pod.namespace", pod.pod_namespace},
          {"io.kubernetes.pod.uid", pod.uid},
          {"io.kubernetes.container.name", pod.container.name}};
}

StringMap SandboxLabels(const PodSpec& pod) {
  StringMap labels = pod.labels;
  labels["io.kubernetes.pod.name"] = pod.name;
  labels["io.kubernetes.pod.namespace"] = pod.pod_namespace;
  labels["io.kubernetes.pod.uid"] = pod.uid;
  return labels;
}

struct Kubelet::Impl {
  explicit Impl(Options opts) : options(std::move(opts)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(16 << 20);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);  // the runtime is restarted
    stub = cri::RuntimeService::NewStub(grpc::CreateCustomChannel(
        "unix:" + options.socket, grpc::InsecureChannelCredentials(), arguments));
  }

  /// Makes one call and waits for it.
  template <typename Request, typename Response>
  StatusOr<Response> Call(grpc::Status (cri::RuntimeService::Stub::*method)(grpc::ClientContext*,
                                                                            const Request&,
                                                                            Response*),
                          const Request& request, const std::string& what) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + options.timeout);
    Response response;
    const auto begin = std::chrono::steady_clock::now();
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    options.on_call(what, std::chrono::steady_clock::now() - begin);
    if (!status.ok()) {
      return Errorf(static_cast<StatusCode>(status.error_code()), "cannot {}: {}", what,
                    status.error_message());
    }
    return response;
  }

  cri::PodSandboxConfig SandboxConfig(const PodSpec& spec, uint32_t attempt) const;
  cri::ContainerConfig ContainerConfig(const PodSpec& spec, const ContainerSpec& container,
                                       uint32_t attempt) const;
  StatusOr<std::string> RunSandbox(const PodSpec& spec, uint32_t attempt);
  StatusOr<std::string> RunContainer(const RunningPod& pod, const ContainerSpec& container,
                                     uint32_t attempt);
  Status RemoveSandbox(const std::string& sandbox_id);

  Options options;
  std::unique_ptr<cri::RuntimeService::Stub> stub;
};

cri::PodSandboxConfig Kubelet::Impl::SandboxConfig(const PodSpec& spec, uint32_t attempt) const {
  const CgroupValues values = ValuesFor(spec.container);
  cri::PodSandboxConfig config;
  config.mutable_metadata()->set_name(spec.name);
  config.mutable_metadata()->set_uid(spec.uid);
  config.mutable_metadata()->set_namespace_(spec.pod_namespace);
  config.mutable_metadata()->set_attempt(attempt);
  config.set_log_directory(options.log_directory);
  config.mutable_dns_config()->add_servers("127.0.0.1");
  const StringMap labels = SandboxLabels(spec);
  config.mutable_labels()->insert(labels.begin(), labels.end());
  config.mutable_annotations()->insert(spec.annotations.begin(), spec.annotations.end());
  cri::LinuxPodSandboxConfig& linux_config = *config.mutable_linux();
  const std::string path = "/kubepods" + values.qos_path + "/pod" + spec.uid;
  linux_config.set_cgroup_parent(options.cgroup_driver == CgroupDriver::kSystemd
                                     ? SliceOf(path)
                                     : options.cgroup_parent + path);
  linux_config.mutable_resources()->set_cpu_shares(values.cpu_shares);
  linux_config.mutable_resources()->set_cpu_quota(values.cpu_quota_us);
  linux_config.mutable_resources()->set_cpu_period(kCpuPeriodUs);
  linux_config.mutable_resources()->set_memory_limit_in_bytes(values.memory_limit_bytes);
  // The host's network needs no CNI plugin.
  linux_config.mutable_security_context()->mutable_namespace_options()->set_network(cri::NODE);
  return config;
}

cri::ContainerConfig Kubelet::Impl::ContainerConfig(const PodSpec& spec,
                                                    const ContainerSpec& container,
                                                    uint32_t attempt) const {
  cri::ContainerConfig config;
  config.mutable_metadata()->set_name(container.name);
  config.mutable_metadata()->set_attempt(attempt);
  config.mutable_image()->set_image(options.image);
  config.set_log_path(LogName(spec, container, attempt));
  StringMap labels = ContainerLabels(spec);
  labels["io.kubernetes.container.name"] = container.name;
  config.mutable_labels()->insert(labels.begin(), labels.end());
  (*config.mutable_annotations())["io.kubernetes.container.restartCount"] = std::to_string(attempt);
  *config.mutable_linux()->mutable_resources() = manager::cli::ToCri(ValuesFor(container));
  cri::NamespaceOption& namespaces =
      *config.mutable_linux()->mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(cri::NODE);
  namespaces.set_pid(cri::CONTAINER);
  return config;
}

Status Kubelet::Impl::RemoveSandbox(const std::string& sandbox_id) {
  cri::StopPodSandboxRequest stop;
  stop.set_pod_sandbox_id(sandbox_id);
  QRM_RETURN_IF_ERROR(
      Call(&cri::RuntimeService::Stub::StopPodSandbox, stop, "stop the sandbox").status());
  cri::RemovePodSandboxRequest remove;
  remove.set_pod_sandbox_id(sandbox_id);
  return Call(&cri::RuntimeService::Stub::RemovePodSandbox, remove, "remove the sandbox").status();
}

Kubelet::Kubelet(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Kubelet::~Kubelet() = default;

StatusOr<std::string> Kubelet::Impl::RunSandbox(const PodSpec& spec, uint32_t attempt) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = SandboxConfig(spec, attempt);
  QRM_ASSIGN_OR_RETURN(
      const cri::RunPodSandboxResponse ran,
      Call(&cri::RuntimeService::Stub::RunPodSandbox, request, "run pod " + spec.name));
  return ran.pod_sandbox_id();
}

StatusOr<std::string> Kubelet::Impl::RunContainer(const RunningPod& pod,
                                                  const ContainerSpec& container,
                                                  uint32_t attempt) {
  using Stub = cri::RuntimeService::Stub;
  const std::string what = " container " + container.name + " of pod " + pod.spec.name;
  cri::CreateContainerRequest create;
  create.set_pod_sandbox_id(pod.sandbox_id);
  *create.mutable_config() = ContainerConfig(pod.spec, container, attempt);
  *create.mutable_sandbox_config() = SandboxConfig(pod.spec, pod.sandboxes - 1);
  QRM_ASSIGN_OR_RETURN(const cri::CreateContainerResponse created,
                       Call(&Stub::CreateContainer, create, "create" + what));
  cri::StartContainerRequest start;
  start.set_container_id(created.container_id());
  QRM_RETURN_IF_ERROR(Call(&Stub::StartContainer, start, "start" + what).status());
  return created.container_id();
}

StatusOr<RunningPod> Kubelet::RunPod(const PodSpec& spec) {
  RunningPod pod{.spec = spec,
                 .log_file = impl_->options.log_directory + "/" + LogName(spec, spec.container, 0)};
  QRM_ASSIGN_OR_RETURN(pod.sandbox_id, impl_->RunSandbox(spec, 0));
  const StatusOr<std::string> container = impl_->RunContainer(pod, spec.container, 0);
  if (!container.ok()) {
    const Status removed = impl_->RemoveSandbox(pod.sandbox_id);
    return removed.ok() ? container.status() : Annotate(container.status(), MessageOf(removed));
  }
  pod.container_id = *container;
  return pod;
}

StatusOr<std::string> Kubelet::AddContainer(const RunningPod& pod, const ContainerSpec& container,
                                            uint32_t attempt) {
  return impl_->RunContainer(pod, container, attempt);
}

Status Kubelet::RemoveContainer(const std::string& container_id) {
  using Stub = cri::RuntimeService::Stub;
  cri::StopContainerRequest stop;
  stop.set_container_id(container_id);
  stop.set_timeout(2);
  QRM_RETURN_IF_ERROR(
      impl_->Call(&Stub::StopContainer, stop, "stop container " + container_id).status());
  cri::RemoveContainerRequest remove;
  remove.set_container_id(container_id);
  return impl_->Call(&Stub::RemoveContainer, remove, "remove container " + container_id).status();
}

Status Kubelet::RemovePod(const RunningPod& pod) {
  QRM_RETURN_IF_ERROR(RemoveContainer(pod.container_id));
  return impl_->RemoveSandbox(pod.sandbox_id);
}

Status Kubelet::RestartContainer(RunningPod& pod) {
  const uint32_t attempt = pod.containers++;
  QRM_ASSIGN_OR_RETURN(std::string fresh, AddContainer(pod, pod.spec.container, attempt));
  QRM_RETURN_IF_ERROR(RemoveContainer(pod.container_id));
  pod.container_id = std::move(fresh);
  pod.log_file =
      impl_->options.log_directory + "/" + LogName(pod.spec, pod.spec.container, attempt);
  return OkStatus();
}

Status Kubelet::ReplaceSandbox(RunningPod& pod) {
  const std::string old = pod.sandbox_id;
  QRM_ASSIGN_OR_RETURN(pod.sandbox_id, impl_->RunSandbox(pod.spec, pod.sandboxes++));
  QRM_RETURN_IF_ERROR(RestartContainer(pod));
  return impl_->RemoveSandbox(old);
}

Status Kubelet::Resize(const std::string& container_id, const CgroupValues& values,
                       const std::string& cpus) {
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(container_id);
  cri::LinuxContainerResources& resources = *request.mutable_linux();
  resources.set_cpu_shares(values.cpu_shares);
  resources.set_cpu_quota(values.cpu_quota_us);
  resources.set_cpu_period(kCpuPeriodUs);
  resources.set_memory_limit_in_bytes(values.memory_limit_bytes);
  resources.set_cpuset_cpus(cpus);
  return impl_
      ->Call(&cri::RuntimeService::Stub::UpdateContainerResources, request,
             "resize container " + container_id)
      .status();
}

StatusOr<std::vector<ListedContainer>> Kubelet::ListContainers() {
  QRM_ASSIGN_OR_RETURN(
      const cri::ListContainersResponse response,
      impl_->Call(&cri::RuntimeService::Stub::ListContainers, {}, "list containers"));
  std::vector<ListedContainer> listed;
  for (const cri::Container& container : response.containers()) {
    const bool running = container.state() == cri::CONTAINER_RUNNING;
    if (running || container.state() == cri::CONTAINER_CREATED) {
      listed.push_back({.id = container.id(),
                        .pod_uid = container.labels().at("io.kubernetes.pod.uid"),
                        .name = container.metadata().name(),
                        .running = running});
    }
  }
  return listed;
}

Status Kubelet::RemovePodsBut(const std::set<std::string>& uids) {
  QRM_ASSIGN_OR_RETURN(const cri::ListPodSandboxResponse response,
                       impl_->Call(&cri::RuntimeService::Stub::ListPodSandbox, {}, "list pods"));
  Status last;
  for (const cri::PodSandbox& sandbox : response.items()) {
    if (uids.contains(sandbox.metadata().uid())) {
      continue;
    }
    if (const Status removed = impl_->RemoveSandbox(sandbox.id()); !removed.ok()) {
      last = removed;
    }
  }
  return last;
}

StatusOr<nlohmann::json> Kubelet::Inspect(const std::string& container_id) {
  cri::ContainerStatusRequest request;
  request.set_container_id(container_id);
  request.set_verbose(true);
  QRM_ASSIGN_OR_RETURN(const cri::ContainerStatusResponse response,
                       impl_->Call(&cri::RuntimeService::Stub::ContainerStatus, request,
                                   "inspect container " + container_id));
  const auto info = response.info().find("info");
  nlohmann::json document = nlohmann::json::parse(
      info == response.info().end() ? std::string() : info->second, nullptr, false);
  if (document.is_discarded()) {
    return Errorf(StatusCode::kInternal,
                  "cannot inspect container {}: the runtime's answer has no \"info\" in JSON; "
                  "check that it is containerd",
                  container_id);
  }
  return document;
}

StatusOr<std::vector<std::string>> Kubelet::ReadLog(const RunningPod& pod) {
  std::ifstream file(pod.log_file);
  if (!file) {
    return Errorf(StatusCode::kNotFound, "cannot read {}: {}", pod.log_file, std::strerror(errno));
  }
  // TIME stdout F TEXT
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    std::size_t text = 0;
    for (int field = 0; field < 3 && text != std::string::npos; ++field) {
      text = line.find(' ', text == 0 ? 0 : text + 1);
    }
    if (text != std::string::npos) {
      lines.push_back(line.substr(text + 1));
    }
  }
  return lines;
}

}  // namespace qrm::test
