// Writes the memory plugin's state.
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "plugins/memory/state.h"
#include "plugins/placement/pod_entries_json.h"

namespace qrm::memory {
namespace {

using nlohmann::ordered_json;

/// Bytes of `type` that the container has on `node`; absent when it has none there. For blocks on
/// several nodes, only the split of ordinary memory is known.
std::optional<uint64_t> BytesOn(const Binding& binding, const std::string& type, int node) {
  if (type == kOrdinaryMemory) {
    const auto bytes = binding.bytes_by_node.find(node);
    return bytes == binding.bytes_by_node.end() ? std::nullopt : std::optional(bytes->second);
  }
  for (const MemoryBlock& block : binding.blocks) {
    if (block.type == type && block.nodes == NumaMask{node}) {
      return block.bytes;
    }
  }
  return std::nullopt;
}

/// Pod UID -> container -> its bytes of `type` on `node`.
ordered_json EntriesOn(const Bindings& bindings, const std::string& type, int node) {
  ordered_json pods = ordered_json::object();
  for (const auto& [key, binding] : bindings) {
    if (const auto bytes = BytesOn(binding, type, node); bytes.has_value()) {
      pods[key.pod_uid][key.container] = std::to_string(*bytes);
    }
  }
  return pods;
}

ordered_json AmountsJson(const MemoryAmounts& amounts, ordered_json entries) {
  return {
      {"Allocated", std::to_string(amounts.reserved)},
      {"allocatable", std::to_string(amounts.allocatable)},
      {"free", std::to_string(amounts.free)},
      {"pod_entries", std::move(entries)},
      {"systemReserved", std::to_string(amounts.system_reserved)},
      {"total", std::to_string(amounts.total)},
  };
}

}  // namespace

std::string ExportJson(const View& view, const sdk::Grants& grants) {
  ordered_json types = {{kOrdinaryMemory, ordered_json::object()}};
  for (const auto& [id, node] : TableOf(view)) {
    for (const auto& [type, amounts] : node.types) {
      types[type][std::to_string(id)] = AmountsJson(amounts, EntriesOn(view.bindings, type, id));
    }
  }
  ordered_json entries = ordered_json::object();
  if (!grants.empty()) {
    entries["memory"] = placement::PodEntriesJson(grants);
  }
  const ordered_json state = {
      {"machineState", std::move(types)},
      {"pod_resource_entries", std::move(entries)},
  };
  return state.dump(4);
}

}  // namespace qrm::memory
