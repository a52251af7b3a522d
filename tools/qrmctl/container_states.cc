// Asks for all pods, and keeps what is marked.
#include "tools/qrmctl/container_states.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/keep_rows.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

std::string FullName(const v1::Pod& pod, const v1::Container& container) {
  return fmt::format("{}/{}/{}", pod.namespace_(), pod.name(), container.name());
}

/// Whether the container runs without its allocation, or without a part of it.
bool IsUnpinned(const v1::Container& container) {
  static constexpr std::array kStates = {"skipped", "unpinned", "incomplete"};
  return std::find(kStates.begin(), kStates.end(), container.state()) != kStates.end();
}

}  // namespace

void KeepUnpinned(v1::ListPodsResponse& pods) {
  for (v1::Pod& pod : *pods.mutable_pods()) {
    KeepRows(*pod.mutable_containers(), IsUnpinned);
  }
  KeepRows(*pods.mutable_pods(), [](const v1::Pod& pod) { return pod.containers_size() > 0; });
}

v1::ListPodsResponse AskUnpinned(const ControlClient& client) {
  v1::ListPodsRequest request;
  request.set_unpinned(true);
  auto pods = client.Ask<v1::ListPodsResponse>(request).value_or(v1::ListPodsResponse());
  KeepUnpinned(pods);
  return pods;
}

std::map<std::string, std::string> StatesOf(const v1::ListPodsResponse& unpinned) {
  std::map<std::string, std::string> states;
  for (const v1::Pod& pod : unpinned.pods()) {
    for (const v1::Container& container : pod.containers()) {
      states[FullName(pod, container)] = container.state();
    }
  }
  return states;
}

void PrintWithoutAllocation(const v1::ListPodsResponse& unpinned, std::ostream& out) {
  Table table({"WITHOUT ALLOCATION", "STATE", "WHY"});
  for (const v1::Pod& pod : unpinned.pods()) {
    for (const v1::Container& container : pod.containers()) {
      if (container.allocations().empty()) {
        table.Add({FullName(pod, container), container.state(), container.why()});
      }
    }
  }
  table.PrintBelow(out);
}

}  // namespace qrm::manager::cli
