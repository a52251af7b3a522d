// Reads the views of the runtime, the checkpoint and the plugins.
#include "test/crash/pins.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "checkpoint/peer_json.h"
#include "checkpoint/store.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

Status ReadGrants(const Node& node, const std::string& plugin, const char* where, Pins& pins,
                  std::string Pinned::* field) {
  QRM_ASSIGN_OR_RETURN(const std::string text, node.ExportState(plugin));
  const nlohmann::json state = nlohmann::json::parse(text, nullptr, false);
  const nlohmann::json::json_pointer pods(where);
  if (state.is_object() && state.contains(pods)) {
    for (const auto& [uid, containers] : state.at(pods).items()) {
      for (const auto& [container, entry] : containers.items()) {
        pins[uid].*field = entry.at("allocation_result").get<std::string>();
      }
    }
  }
  return OkStatus();
}

std::string ValueOf(const AllocationByResource& allocations, const std::string& resource) {
  const auto found = allocations.find(resource);
  return found == allocations.end() ? std::string() : found->second->value;
}

}  // namespace

std::string ToString(const Pins& pins) {
  std::string text;
  for (const auto& [uid, pinned] : pins) {
    text += fmt::format("{}={}/{} ", uid, pinned.cpus, pinned.mems);
  }
  return text.empty() ? "nothing" : text;
}

Pins RunningPins(const SimulatedRuntime& runtime, const StringMap& name_by_uid) {
  Pins pins;
  for (const auto& [uid, name] : name_by_uid) {
    const auto options = runtime.RunOptions(name);
    const auto resources =
        options.value("linux_container_resources", nlohmann::ordered_json::object());
    pins[uid] = {.cpus = resources.value("cpusetCpus", ""),
                 .mems = resources.value("cpusetMems", "")};
  }
  return pins;
}

StatusOr<Pins> CheckpointedPins(const std::string& state_dir) {
  QRM_ASSIGN_OR_RETURN(const checkpoint::NodeState state,
                       checkpoint::InspectSqliteStore(state_dir));
  Pins pins;
  for (const auto& [key, allocations] : checkpoint::AllocationsOf(state)) {
    pins[key.pod_uid] = {.cpus = ValueOf(allocations, "cpu"),
                         .mems = ValueOf(allocations, "memory")};
  }
  return pins;
}

StatusOr<Pins> GrantedPins(const Node& node) {
  Pins pins;
  QRM_RETURN_IF_ERROR(ReadGrants(node, "cpu", "/pod_entries", pins, &Pinned::cpus));
  QRM_RETURN_IF_ERROR(
      ReadGrants(node, "memory", "/pod_resource_entries/memory", pins, &Pinned::mems));
  return pins;
}

Status ExpectOneOwner(const Pins& pins) {
  CpuSet taken;
  for (const auto& [uid, pinned] : pins) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(pinned.cpus));
    if (cpus.Empty() || cpus.Intersects(taken)) {
      return Errorf(StatusCode::kInternal, "CPUs have no or two owners: {}", ToString(pins));
    }
    taken |= cpus;
  }
  return OkStatus();
}

Status AwaitAgreement(const std::function<Pins()>& running,
                      const std::map<std::string, std::function<StatusOr<Pins>()>>& others,
                      std::chrono::milliseconds limit) {
  Status disagreement;
  const bool agree = Await(
      [&] {
        const Pins want = running();
        for (const auto& [who, ask] : others) {
          const StatusOr<Pins> say = ask();
          if (!say.ok()) {
            disagreement = say.status();
            return false;
          }
          if (*say != want) {
            disagreement = Errorf(StatusCode::kInternal, "no agreement: {} run, the {} {}",
                                  ToString(want), who, ToString(*say));
            return false;
          }
        }
        return true;
      },
      limit);
  return agree ? OkStatus() : disagreement;
}

}  // namespace qrm::test
