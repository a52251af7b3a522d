// qrmctl top
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/id_set.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/container_states.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

std::string CountOf(const std::string& cpus) {
  const auto parsed = CpuSet::Parse(cpus);
  return parsed.ok() ? std::to_string(parsed->Count()) : "0";
}

void PrintNodes(const v1::GetTopologyResponse& topology, std::ostream& out) {
  Table table({"NODE", "OWNED", "SHARED", "FREE", "MEMORY", "CONTAINERS"});
  for (const v1::NodeUse& use : topology.use()) {
    table.Add({std::to_string(use.node()), CountOf(use.exclusive_cpus()),
               CountOf(use.shared_cpus()), CountOf(use.free_cpus()), BytesText(use.memory_bytes()),
               std::to_string(use.containers_size())});
  }
  table.Print(out);
}

void PrintPools(const v1::GetPoolsResponse& pools, std::ostream& out) {
  Table table({"POOL", "CPUS", "COUNT", "CONTAINERS"});
  for (const v1::Pool& pool : pools.pools()) {
    table.Add({pool.name(), pool.cpus(), CountOf(pool.cpus()), std::to_string(pool.containers())});
  }
  table.PrintBelow(out);
}

/// The containers with CPUs or memory of a node.
void PrintContainers(const v1::GetTopologyResponse& topology, const v1::ListPodsResponse& unpinned,
                     std::ostream& out) {
  std::map<std::string, std::string> states = StatesOf(unpinned);
  Table table({"CONTAINER", "NODE", "CPUS", "MEMORY", "STATE"});
  for (const v1::NodeUse& use : topology.use()) {
    for (const v1::ContainerUse& container : use.containers()) {
      table.Add({container.container(), std::to_string(use.node()),
                 container.cpus() + (container.exclusive() ? "*" : ""),
                 container.memory_bytes() == 0 ? "" : BytesText(container.memory_bytes()),
                 states[container.container()]});
    }
  }
  table.PrintBelow(out);
}

}  // namespace

int RunTop(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line(
      "top",
      "Shows the allocated CPUs and memory of each NUMA node, pool and container; -w\n"
      "follows changes. * marks exclusive CPUs. Then the containers without an allocation.",
      "qrmctl top -w");
  line.Output().ControlSocket().Watch();
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const ControlClient client(line);
  const auto topology = client.Ask<v1::GetTopologyResponse>(v1::GetTopologyRequest());
  if (!topology.ok()) {
    return line.Fail(topology.status(), err);
  }
  // Without a cpu plugin, there are no pools.
  const v1::GetPoolsResponse pools =
      client.Ask<v1::GetPoolsResponse>(v1::GetPoolsRequest()).value_or(v1::GetPoolsResponse());
  const v1::ListPodsResponse unpinned = AskUnpinned(client);
  if (!line.format().IsText()) {
    Print({{"use", ToDocument(*topology)["use"]},
           {"pools", ToDocument(pools)["pools"]},
           {"unpinned", ToDocument(unpinned)["pods"]}},
          line.format(), out);
    return kDone;
  }
  PrintNodes(*topology, out);
  PrintPools(pools, out);
  PrintContainers(*topology, unpinned, out);
  PrintWithoutAllocation(unpinned, out);
  return kDone;
}

}  // namespace qrm::manager::cli
