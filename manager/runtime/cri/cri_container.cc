// Reads a container's status: CRI's fields first, then those that only the OCI spec has.
#include "manager/runtime/cri/cri_container.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/proto/runtime/v1/api.pb.h"

namespace qrm::manager {
namespace {

using Json = nlohmann::json;
namespace cri = ::runtime::v1;

/// The value at `path` of `json`, if it exists and is an integer.
template <typename T>
std::optional<T> NumberAt(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  if (!json.contains(pointer) || !json.at(pointer).is_number_integer()) {
    return std::nullopt;
  }
  return json.at(pointer).get<T>();
}

template <typename T>
std::optional<T> UnlessZero(int64_t value) {
  return value == 0 ? std::nullopt : std::optional<T>(static_cast<T>(value));
}

LinuxResources FromWire(const cri::LinuxContainerResources& wire) {
  return {.cpu_shares = UnlessZero<uint64_t>(wire.cpu_shares()),
          .cpu_quota_us = UnlessZero<int64_t>(wire.cpu_quota()),
          .cpu_period_us = UnlessZero<uint64_t>(wire.cpu_period()),
          .memory_limit_bytes = UnlessZero<int64_t>(wire.memory_limit_in_bytes()),
          .memory_swap_limit_bytes = UnlessZero<int64_t>(wire.memory_swap_limit_in_bytes()),
          .cpuset_cpus = wire.cpuset_cpus(),
          .cpuset_mems = wire.cpuset_mems(),
          .unified = {wire.unified().begin(), wire.unified().end()}};
}

/// Runtimes older than CRI's `resources` field show resources in the OCI spec only.
LinuxResources FromSpec(const Json& info) {
  return {
      .cpu_shares = NumberAt<uint64_t>(info, "/runtimeSpec/linux/resources/cpu/shares"),
      .cpu_quota_us = NumberAt<int64_t>(info, "/runtimeSpec/linux/resources/cpu/quota"),
      .cpu_period_us = NumberAt<uint64_t>(info, "/runtimeSpec/linux/resources/cpu/period"),
      .memory_limit_bytes = NumberAt<int64_t>(info, "/runtimeSpec/linux/resources/memory/limit")};
}

}  // namespace

void AddStatus(const cri::ContainerStatusResponse& response, RuntimeContainer& container) {
  const auto text = response.info().find("info");
  const Json info =
      text == response.info().end() ? Json() : ParseJson(text->second).value_or(Json());
  container.resources = response.status().has_resources()
                            ? FromWire(response.status().resources().linux())
                            : FromSpec(info);
  container.oom_score_adj = NumberAt<int64_t>(info, "/runtimeSpec/process/oomScoreAdj");
  container.pid = NumberAt<uint32_t>(info, "/pid").value_or(0);
  const Json::json_pointer cgroups_path("/runtimeSpec/linux/cgroupsPath");
  if (info.contains(cgroups_path) && info.at(cgroups_path).is_string()) {
    container.cgroups_path = info.at(cgroups_path).get<std::string>();
  }
}

}  // namespace qrm::manager
