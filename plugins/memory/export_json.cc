// Writes the memory plugin's state.
#include <nlohmann/json.hpp>

#include "plugins/memory/state.h"
#include "plugins/placement/pod_entries_json.h"

namespace qrm::memory {
namespace {

using nlohmann::ordered_json;

/// Pod UID -> container -> its bytes on `node`.
ordered_json EntriesOn(const MemoryState& state, int node) {
  ordered_json pods = ordered_json::object();
  for (const auto& [key, binding] : state) {
    if (const auto bytes = binding.bytes_by_node.find(node); bytes != binding.bytes_by_node.end()) {
      pods[key.pod_uid][key.container] = std::to_string(bytes->second);
    }
  }
  return pods;
}

}  // namespace

std::string ExportJson(const View& view, const sdk::Grants& grants) {
  ordered_json nodes = ordered_json::object();
  for (const auto& [node, book] : BooksOf(view)) {
    nodes[std::to_string(node)] = {
        {"Allocated", std::to_string(book.allocated)},
        {"allocatable", std::to_string(book.allocatable)},
        {"free", std::to_string(book.free)},
        {"pod_entries", EntriesOn(view.state, node)},
        {"systemReserved", std::to_string(book.system_reserved)},
        {"total", std::to_string(book.total)},
    };
  }
  ordered_json entries = ordered_json::object();
  if (!grants.empty()) {
    entries["memory"] = placement::PodEntriesJson(grants);
  }
  const ordered_json state = {
      {"machineState", {{"memory", std::move(nodes)}}},
      {"pod_resource_entries", std::move(entries)},
  };
  return state.dump(4);
}

}  // namespace qrm::memory
