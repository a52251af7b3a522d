// Converts NRI's messages.
#include "manager/runtime/nri/nri_wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/pod_texts.h"
#include "api/proto/nri/v1alpha1/nri.pb.h"

namespace qrm::manager {
namespace {

constexpr const char* kContainerNameLabel = "io.kubernetes.container.name";
/// Set by kubelet on each container that it creates.
constexpr const char* kRestartCount = "io.kubernetes.container.restartCount";

/// The value of a wrapper message, unless it is absent or zero.
template <typename T, typename Wrapper>
std::optional<T> NonZero(bool present, const Wrapper& wrapper) {
  return present && wrapper.value() != 0 ? std::optional<T>(wrapper.value()) : std::nullopt;
}

StringMap ToStringMap(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

/// 0 without the annotation: NRI itself has no field for it.
uint32_t AttemptOf(const StringMap& annotations) {
  const auto count = annotations.find(kRestartCount);
  uint32_t attempt = 0;
  if (count != annotations.end()) {
    const std::string& text = count->second;
    std::from_chars(text.data(), text.data() + text.size(), attempt);
  }
  return attempt;
}

RuntimeContainerState FromWire(nri::ContainerState state) {
  switch (state) {
    case nri::CONTAINER_CREATED:
      return RuntimeContainerState::kCreated;
    case nri::CONTAINER_PAUSED:
      return RuntimeContainerState::kPaused;
    case nri::CONTAINER_RUNNING:
      return RuntimeContainerState::kRunning;
    case nri::CONTAINER_STOPPED:
      return RuntimeContainerState::kStopped;
    default:
      return RuntimeContainerState::kUnknown;
  }
}

/// A runtime takes a leading '-' in a key as an order to remove another plugin's value.
Status CheckKey(const char* what, const std::string& key) {
  if (!key.empty() && key.front() != '-') {
    return OkStatus();
  }
  return Errorf(
      StatusCode::kInvalidArgument,
      "cannot set {} \"{}\": its name is empty, or one that NRI reads as a removal; check "
      "the plugin",
      what, key);
}

void AddMount(const Mount& mount, nri::ContainerAdjustment& wire) {
  nri::Mount* added = wire.add_mounts();
  added->set_destination(mount.container_path);
  added->set_source(mount.host_path);
  added->set_type("bind");
  added->add_options("rbind");
  added->add_options("rprivate");
  added->add_options(mount.read_only ? "ro" : "rw");
}

/// The mode from which the runtime derives the permissions of the device cgroup.
uint32_t FileMode(const std::string& permissions) {
  const bool readable = permissions.find('r') != std::string::npos;
  const bool writable = permissions.find('w') != std::string::npos;
  return (readable ? 0444U : 0U) | (writable ? 0222U : 0U);
}

Status AddDevice(const DeviceSpec& device, nri::ContainerAdjustment& wire) {
  struct stat node{};
  if (::stat(device.host_path.c_str(), &node) != 0) {
    return Errorf(StatusCode::kInvalidArgument, "cannot add device {}: {}; check the plugin",
                  device.host_path, std::generic_category().message(errno));
  }
  if (!S_ISCHR(node.st_mode) && !S_ISBLK(node.st_mode)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot add device {}: it is not a device node; check the plugin",
                  device.host_path);
  }
  nri::LinuxDevice* added = wire.mutable_linux()->add_devices();
  added->set_path(device.container_path);
  added->set_type(S_ISCHR(node.st_mode) ? "c" : "b");
  added->set_major(gnu_dev_major(node.st_rdev));
  added->set_minor(gnu_dev_minor(node.st_rdev));
  added->mutable_file_mode()->set_value(FileMode(device.permissions));
  return OkStatus();
}

}  // namespace

LinuxResources FromWire(const nri::LinuxResources& wire) {
  LinuxResources resources;
  const nri::LinuxCPU& cpu = wire.cpu();
  resources.cpu_shares = NonZero<uint64_t>(cpu.has_shares(), cpu.shares());
  resources.cpu_quota_us = NonZero<int64_t>(cpu.has_quota(), cpu.quota());
  resources.cpu_period_us = NonZero<uint64_t>(cpu.has_period(), cpu.period());
  resources.memory_limit_bytes = NonZero<int64_t>(wire.memory().has_limit(), wire.memory().limit());
  resources.memory_swap_limit_bytes =
      NonZero<int64_t>(wire.memory().has_swap(), wire.memory().swap());
  resources.cpuset_cpus = cpu.cpus();
  resources.cpuset_mems = cpu.mems();
  for (const nri::HugepageLimit& limit : wire.hugepage_limits()) {
    resources.hugepage_limit_bytes[limit.page_size()] = limit.limit();
  }
  resources.unified = ToStringMap(wire.unified());
  return resources;
}

RuntimePod FromWire(const nri::PodSandbox& wire) {
  return {.id = wire.id(),
          .uid = wire.uid(),
          .pod_namespace = wire.namespace_(),
          .name = wire.name(),
          .labels = PodsOwn(wire.labels()),
          .annotations = PodsOwn(wire.annotations()),
          .runtime_handler = wire.runtime_handler(),
          .cgroup_parent = wire.linux().cgroup_parent(),
          .resources = FromWire(wire.linux().pod_resources()),
          .pid = wire.pid()};
}

RuntimeContainer FromWire(const nri::Container& wire) {
  RuntimeContainer container{.id = wire.id(),
                             .pod_id = wire.pod_sandbox_id(),
                             .name = wire.name(),
                             .state = FromWire(wire.state()),
                             .labels = Bounded(wire.labels()),
                             .annotations = Bounded(wire.annotations()),
                             .env = {wire.env().begin(), wire.env().end()},
                             .resources = FromWire(wire.linux().resources()),
                             .cgroups_path = wire.linux().cgroups_path(),
                             .pid = wire.pid()};
  container.attempt = AttemptOf(container.annotations);
  for (const nri::Mount& mount : wire.mounts()) {
    container.mount_paths.push_back(mount.destination());
  }
  for (const nri::LinuxDevice& device : wire.linux().devices()) {
    container.device_paths.push_back(device.path());
  }
  for (const nri::CDIDevice& device : wire.cdi_devices()) {
    container.cdi_devices.push_back(device.name());
  }
  if (wire.linux().has_oom_score_adj()) {
    container.oom_score_adj = wire.linux().oom_score_adj().value();
  }
  const auto label = container.labels.find(kContainerNameLabel);
  if (container.name.empty() && label != container.labels.end()) {
    container.name = label->second;
  }
  return container;
}

nri::LinuxResources ToWire(const LinuxResources& resources) {
  nri::LinuxResources wire;
  if (resources.cpu_shares) {
    wire.mutable_cpu()->mutable_shares()->set_value(*resources.cpu_shares);
  }
  if (resources.cpu_quota_us) {
    wire.mutable_cpu()->mutable_quota()->set_value(*resources.cpu_quota_us);
  }
  if (resources.cpu_period_us) {
    wire.mutable_cpu()->mutable_period()->set_value(*resources.cpu_period_us);
  }
  if (resources.memory_limit_bytes) {
    wire.mutable_memory()->mutable_limit()->set_value(*resources.memory_limit_bytes);
  }
  if (resources.memory_swap_limit_bytes) {
    wire.mutable_memory()->mutable_swap()->set_value(*resources.memory_swap_limit_bytes);
  }
  if (!resources.cpuset_cpus.empty()) {
    wire.mutable_cpu()->set_cpus(resources.cpuset_cpus);
  }
  if (!resources.cpuset_mems.empty()) {
    wire.mutable_cpu()->set_mems(resources.cpuset_mems);
  }
  for (const auto& [page_size, limit] : resources.hugepage_limit_bytes) {
    nri::HugepageLimit* added = wire.add_hugepage_limits();
    added->set_page_size(page_size);
    added->set_limit(limit);
  }
  wire.mutable_unified()->insert(resources.unified.begin(), resources.unified.end());
  return wire;
}

StatusOr<nri::ContainerAdjustment> ToWire(const ContainerAdjustment& adjustment) {
  nri::ContainerAdjustment wire;
  if (adjustment.resources != LinuxResources{}) {
    *wire.mutable_linux()->mutable_resources() = ToWire(adjustment.resources);
  }
  if (adjustment.oom_score_adj) {
    wire.mutable_linux()->mutable_oom_score_adj()->set_value(*adjustment.oom_score_adj);
  }
  if (!adjustment.rdt_class.empty()) {
    wire.mutable_linux()->mutable_resources()->mutable_rdt_class()->set_value(adjustment.rdt_class);
  }
  for (const auto& [key, value] : adjustment.envs) {
    QRM_RETURN_IF_ERROR(CheckKey("variable", key));
    nri::KeyValue* added = wire.add_env();
    added->set_key(key);
    added->set_value(value);
  }
  for (const auto& [key, value] : adjustment.annotations) {
    QRM_RETURN_IF_ERROR(CheckKey("annotation", key));
    (*wire.mutable_annotations())[key] = value;
  }
  for (const Mount& mount : adjustment.mounts) {
    QRM_RETURN_IF_ERROR(CheckKey("mount", mount.container_path));
    AddMount(mount, wire);
  }
  for (const DeviceSpec& device : adjustment.devices) {
    QRM_RETURN_IF_ERROR(CheckKey("device", device.container_path));
    QRM_RETURN_IF_ERROR(AddDevice(device, wire));
  }
  return wire;
}

nri::ContainerUpdate ToWire(const ContainerUpdate& update) {
  nri::ContainerUpdate wire;
  wire.set_container_id(update.container_id);
  nri::LinuxResources resources = ToWire(update.resources);
  resources.clear_hugepage_limits();
  *wire.mutable_linux()->mutable_resources() = std::move(resources);
  return wire;
}

namespace {

namespace nri = ::nri::pkg::api::v1alpha1;

using Version = std::array<int, 3>;

/// "v1.7.24~ds1" is {1, 7, 24}; parts that cannot be read are 0.
Version ParseVersion(const std::string& text) {
  Version version{};
  const char* at = text.c_str();
  if (*at == 'v') {
    ++at;
  }
  for (int& part : version) {
    char* end = nullptr;
    part = static_cast<int>(std::clamp(std::strtol(at, &end, 10), 0L, 1000000L));
    if (end == at || *end != '.') {
      break;
    }
    at = end + 1;
  }
  return version;
}

constexpr int32_t Bit(nri::Event event) {
  return 1 << (event - 1);
}

}  // namespace

int32_t SubscribedEvents() {
  // Every event costs the whole node a round trip, so subscribe only to events that change what
  // qrmd tracks. Updates of pods do not: their values come with each of their containers.
  return Bit(nri::RUN_POD_SANDBOX) | Bit(nri::STOP_POD_SANDBOX) | Bit(nri::REMOVE_POD_SANDBOX) |
         Bit(nri::CREATE_CONTAINER) | Bit(nri::START_CONTAINER) | Bit(nri::POST_START_CONTAINER) |
         Bit(nri::UPDATE_CONTAINER) | Bit(nri::STOP_CONTAINER) | Bit(nri::REMOVE_CONTAINER);
}

std::string KnownProblemOf(const RuntimeInfo& runtime) {
  if (runtime.name == "containerd" && ParseVersion(runtime.version) < Version{1, 7, 16}) {
    return fmt::format(
        "containerd {} can deadlock when an NRI plugin registers; upgrade to 1.7.16 or later",
        runtime.version);
  }
  return {};
}

}  // namespace qrm::manager
