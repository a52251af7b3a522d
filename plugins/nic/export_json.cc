// Writes the nic plugin's state.
#include <nlohmann/json.hpp>

#include "plugins/nic/state.h"
#include "plugins/placement/pod_entries_json.h"

namespace qrm::nic {
namespace {

using nlohmann::ordered_json;

constexpr char kNoNode[] = "none";  // the key of NICs that are near no node

ordered_json BandwidthJson(uint64_t capacity, double used) {
  return {
      {"Capacity", capacity}, {"Allocated", used}, {"Free", static_cast<double>(capacity) - used}};
}

ordered_json NicJson(const NicInfo& nic, const Load& load) {
  ordered_json json = {{"interface_name", nic.id.interface}};
  if (nic.node) {
    json["nuam_node"] = *nic.node;  // the proposal's spelling, which its readers expect
  }
  json["address"] = ordered_json::object();
  if (!nic.ipv4.empty()) {
    json["address"]["ipv4"] = nic.ipv4;
  }
  if (!nic.ipv6.empty()) {
    json["address"]["ipv6"] = nic.ipv6;
  }
  if (!nic.id.netns.empty()) {
    json["netns"] = nic.id.netns;
  }
  if (!nic.problem.empty()) {
    json["problem"] = nic.problem;
  }
  if (nic.egress_mbps > 0) {
    json["egress_state"] = BandwidthJson(nic.egress_mbps, load.mbps);
  }
  if (nic.ingress_mbps > 0) {
    json["ingress_state"] = BandwidthJson(nic.ingress_mbps, load.mbps);
  }
  return json;
}

}  // namespace

std::string ExportJson(const View& view, const sdk::Grants& grants) {
  ordered_json nodes = ordered_json::object();
  for (const int node : view.machine.node_mask()) {
    nodes[std::to_string(node)]["nics"] = ordered_json::array();
  }
  for (const NicInfo& nic : view.nics) {
    const std::string key = nic.node ? std::to_string(*nic.node) : kNoNode;
    nodes[key]["nics"].push_back(NicJson(nic, view.state.LoadOf(nic.id)));
  }
  const ordered_json state = {{"machineState", std::move(nodes)},
                              {"pod_entries", placement::PodEntriesJson(grants)}};
  return state.dump(4);
}

}  // namespace qrm::nic
