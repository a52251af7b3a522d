// Calls the runtime one call after another.
#include "tools/qrmctl/played_pod.h"

#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "api/base/errorf.h"
#include "api/base/unix_socket.h"
#include "api/proto/core/v1/pod.pb.h"
#include "api/proto/runtime/v1/api.grpc.pb.h"
#include "api/proto/runtime/v1/api.pb.h"
#include "api/quantity.h"
#include "api/rpc/channel.h"
#include "api/rpc/grpc_status.h"
#include "tools/qrmctl/cgroup_values.h"

namespace qrm::manager::cli {
namespace {

namespace cri = ::runtime::v1;
namespace core = ::k8s::io::api::core::v1;
using Quantities = google::protobuf::Map<std::string, core::Quantity>;

/// A runtime may pull its image of sandboxes first; qrmd and its plugins take their time, too.
constexpr std::chrono::minutes kCallTimeout{2};
constexpr double kMilli = 1000;

/// In units of 1 / `parts`, rounded up as kubelet does; 0 for what is not there.
int64_t AmountIn(const Quantities& quantities, const std::string& resource, double parts) {
  const auto found = quantities.find(resource);
  if (found == quantities.end()) {
    return 0;
  }
  const auto amount = ParseQuantity(found->second.string());
  return amount.ok() ? static_cast<int64_t>(std::ceil(*amount * parts)) : 0;
}

/// A limit without a request is the request.
ContainerAmounts AmountsOf(const core::ResourceRequirements& resources) {
  ContainerAmounts amounts{.milli_cpus = AmountIn(resources.requests(), "cpu", kMilli),
                           .milli_cpu_limit = AmountIn(resources.limits(), "cpu", kMilli),
                           .memory_bytes = AmountIn(resources.requests(), "memory", 1),
                           .memory_limit_bytes = AmountIn(resources.limits(), "memory", 1)};
  if (!resources.requests().contains("cpu")) {
    amounts.milli_cpus = amounts.milli_cpu_limit;
  }
  if (!resources.requests().contains("memory")) {
    amounts.memory_bytes = amounts.memory_limit_bytes;
  }
  return amounts;
}

google::protobuf::Map<std::string, std::string> LabelsOf(const core::ObjectMeta& pod) {
  google::protobuf::Map<std::string, std::string> labels;
  labels["io.kubernetes.pod.name"] = pod.name();
  labels["io.kubernetes.pod.namespace"] = pod.namespace_();
  labels["io.kubernetes.pod.uid"] = pod.uid();
  return labels;
}

}  // namespace

struct PlayedPod::Impl {
  Impl(PodFile pod_file, std::string_view qos, const PlaceOfPlay& where)
      : file(std::move(pod_file)),
        qos_class(qos),
        place(where),
        stub(cri::RuntimeService::NewStub(rpc::UnixChannel(where.runtime_socket))),
        images(cri::ImageService::NewStub(rpc::UnixChannel(where.runtime_socket))) {}

  /// Makes one call and waits for it.
  template <typename Stub, typename Request, typename Response>
  StatusOr<Response> Call(Stub& service,
                          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                          const Request& request, const std::string& what) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
    Response response;
    const Status status = rpc::FromGrpc((service.*method)(&context, request, &response));
    if (!status.ok()) {
      return Annotate(status, "cannot " + what);
    }
    return response;
  }

  std::string NameOf(int container) const {
    return "container " + file.pod->spec().containers(container).name();
  }
  Status CheckRuntime() const;
  Status CheckImage(const std::string& image);
  cri::PodSandboxConfig SandboxConfig() const;
  cri::ContainerConfig ContainerConfig(int container) const;
  Status RunContainer(int container);

  const PodFile file;
  const std::string qos_class;
  const PlaceOfPlay place;
  const std::unique_ptr<cri::RuntimeService::Stub> stub;
  const std::unique_ptr<cri::ImageService::Stub> images;
  std::string sandbox_id;                      // empty until there is one
  std::map<std::string, std::string> running;  // the containers' names, by the runtime's id
};

Status PlayedPod::Impl::CheckRuntime() const {
  return ProbeSocket(place.runtime_socket) == 0
             ? OkStatus()
             : Errorf(StatusCode::kUnavailable,
                      "cannot reach the container runtime: nothing that this user may reach "
                      "listens on {}; name its socket with --runtime-endpoint",
                      place.runtime_socket);
}

Status PlayedPod::Impl::CheckImage(const std::string& image) {
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(image);
  QRM_ASSIGN_OR_RETURN(
      const cri::ImageStatusResponse found,
      Call(*images, &cri::ImageService::Stub::ImageStatus, request, "look for image " + image));
  return found.has_image() ? OkStatus()
                           : Errorf(StatusCode::kNotFound,
                                    "cannot make the pod: the runtime has no image {}; pull it "
                                    "(crictl pull {}), or name another with --image",
                                    image, image);
}

cri::PodSandboxConfig PlayedPod::Impl::SandboxConfig() const {
  const core::ObjectMeta& meta = file.pod->metadata();
  cri::PodSandboxConfig config;
  config.mutable_metadata()->set_name(meta.name());
  config.mutable_metadata()->set_uid(meta.uid());
  config.mutable_metadata()->set_namespace_(meta.namespace_());
  *config.mutable_labels() = LabelsOf(meta);
  config.mutable_labels()->insert(meta.labels().begin(), meta.labels().end());
  *config.mutable_annotations() = meta.annotations();
  config.mutable_linux()->set_cgroup_parent(place.cgroup_parent);
  config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(
      cri::NODE);
  return config;
}

cri::ContainerConfig PlayedPod::Impl::ContainerConfig(int container) const {
  const core::Container& spec = file.pod->spec().containers(container);
  const Program& program = file.programs[static_cast<std::size_t>(container)];
  cri::ContainerConfig config;
  config.mutable_metadata()->set_name(spec.name());
  config.mutable_image()->set_image(program.image);
  config.mutable_command()->Assign(program.command.begin(), program.command.end());
  config.mutable_args()->Assign(program.args.begin(), program.args.end());
  *config.mutable_labels() = LabelsOf(file.pod->metadata());
  (*config.mutable_labels())["io.kubernetes.container.name"] = spec.name();
  (*config.mutable_annotations())["io.kubernetes.container.restartCount"] = "0";
  *config.mutable_linux()->mutable_resources() =
      ToCri(KubeletValues(AmountsOf(spec.resources()), qos_class, MachineBytes()));
  cri::NamespaceOption& namespaces =
      *config.mutable_linux()->mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(cri::NODE);
  namespaces.set_pid(cri::CONTAINER);
  return config;
}

Status PlayedPod::Impl::RunContainer(int container) {
  cri::CreateContainerRequest create;
  create.set_pod_sandbox_id(sandbox_id);
  *create.mutable_config() = ContainerConfig(container);
  *create.mutable_sandbox_config() = SandboxConfig();
  QRM_ASSIGN_OR_RETURN(const cri::CreateContainerResponse created,
                       Call(*stub, &cri::RuntimeService::Stub::CreateContainer, create,
                            "create " + NameOf(container)));
  running.emplace(created.container_id(), NameOf(container));
  cri::StartContainerRequest start;
  start.set_container_id(created.container_id());
  return Call(*stub, &cri::RuntimeService::Stub::StartContainer, start,
              "start " + NameOf(container))
      .status();
}

PlayedPod::PlayedPod(PodFile file, std::string_view qos_class, const PlaceOfPlay& place)
    : impl_(std::make_unique<Impl>(std::move(file), qos_class, place)) {}

PlayedPod::~PlayedPod() = default;

Status PlayedPod::Run() {
  QRM_RETURN_IF_ERROR(impl_->CheckRuntime());
  for (const Program& program : impl_->file.programs) {
    QRM_RETURN_IF_ERROR(impl_->CheckImage(program.image));
  }
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = impl_->SandboxConfig();
  QRM_ASSIGN_OR_RETURN(const cri::RunPodSandboxResponse ran,
                       impl_->Call(*impl_->stub, &cri::RuntimeService::Stub::RunPodSandbox, request,
                                   "make the pod's sandbox"));
  impl_->sandbox_id = ran.pod_sandbox_id();
  for (int i = 0; i < impl_->file.pod->spec().containers_size(); ++i) {
    QRM_RETURN_IF_ERROR(impl_->RunContainer(i));
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> PlayedPod::NewlyEnded() {
  std::vector<std::string> ended;
  for (auto each = impl_->running.begin(); each != impl_->running.end();) {
    cri::ContainerStatusRequest request;
    request.set_container_id(each->first);
    QRM_ASSIGN_OR_RETURN(const cri::ContainerStatusResponse answer,
                         impl_->Call(*impl_->stub, &cri::RuntimeService::Stub::ContainerStatus,
                                     request, "read the status of " + each->second));
    const cri::ContainerStatus& status = answer.status();
    if (status.state() != cri::CONTAINER_EXITED) {
      ++each;
      continue;
    }
    ended.push_back(fmt::format("{} has ended with exit code {}{}; it is not restarted",
                                each->second, status.exit_code(),
                                status.message().empty() ? "" : " (" + status.message() + ")"));
    each = impl_->running.erase(each);
  }
  return ended;
}

// To stop and to remove a sandbox ends and removes its containers.
Status PlayedPod::Remove() {
  if (impl_->sandbox_id.empty()) {
    return OkStatus();
  }
  cri::StopPodSandboxRequest stop;
  stop.set_pod_sandbox_id(impl_->sandbox_id);
  QRM_RETURN_IF_ERROR(impl_
                          ->Call(*impl_->stub, &cri::RuntimeService::Stub::StopPodSandbox, stop,
                                 "stop the pod's sandbox " + impl_->sandbox_id)
                          .status());
  cri::RemovePodSandboxRequest remove;
  remove.set_pod_sandbox_id(impl_->sandbox_id);
  return impl_
      ->Call(*impl_->stub, &cri::RuntimeService::Stub::RemovePodSandbox, remove,
             "remove the pod's sandbox " + impl_->sandbox_id)
      .status();
}

}  // namespace qrm::manager::cli
