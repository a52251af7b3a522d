// qrmctl topology
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/container_states.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"
#include "tools/qrmctl/topology_picture.h"
#include "topology/describe.h"
#include "topology/discovery.h"

namespace qrm::manager::cli {
namespace {

constexpr std::size_t kIndent = 4;

/// "exclusive 1-2, shared 3, free 0, memory 2Gi", without empty parts.
std::string SharesText(const v1::NodeUse& use) {
  std::string text;
  const auto add = [&text](std::string_view what, const std::string& amount) {
    if (!amount.empty()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, amount);
    }
  };
  add("exclusive", use.exclusive_cpus());
  add("shared", use.shared_cpus());
  add("free", use.free_cpus());
  add("memory", use.memory_bytes() == 0 ? "" : BytesText(use.memory_bytes()));
  return text;
}

void PrintUse(const v1::NodeUse& use, std::map<std::string, std::string>& states,
              std::ostream& out) {
  out << "  node " << use.node() << ": " << SharesText(use) << '\n';
  Table table({"CONTAINER", "CPUS", "MEMORY", "STATE"});
  for (const v1::ContainerUse& container : use.containers()) {
    table.Add({container.container(), container.cpus() + (container.exclusive() ? "*" : ""),
               container.memory_bytes() == 0 ? "" : BytesText(container.memory_bytes()),
               states[container.container()]});
  }
  if (!table.empty()) {
    table.Print(out, kIndent);
  }
}

void PrintTopology(const v1::GetTopologyResponse& topology, const v1::ListPodsResponse& unpinned,
                   std::ostream& out) {
  out << topology.text();
  bool is_used = false;
  for (const v1::NodeUse& use : topology.use()) {
    is_used = is_used || !use.containers().empty();
  }
  if (is_used) {
    std::map<std::string, std::string> states = StatesOf(unpinned);
    out << "use\n";
    for (const v1::NodeUse& use : topology.use()) {
      PrintUse(use, states, out);
    }
  }
  PrintWithoutAllocation(unpinned, out);
}

Document TopologyDocument(const v1::GetTopologyResponse& topology) {
  Document document = Document::parse(topology.json(), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) {
    document = Document::object();
  }
  document["use"] = ToDocument(topology)["use"];
  return document;
}

void PrintDocument(const Document& topology, const CommandLine& line, std::ostream& out) {
  if (line.format().kind == OutputFormat::kSvg) {
    out << TopologySvg(topology);
  } else {
    Print(topology, line.format(), out);
  }
}

/// What the options name, in any number.
std::vector<MachineSource> NamedSources(bool local, const std::string& fsroot,
                                        const std::string& xml, const std::string& synthetic) {
  std::vector<MachineSource> sources;
  if (local) {
    sources.push_back({.kind = MachineSource::Kind::kLive});
  }
  if (!fsroot.empty()) {
    sources.push_back({MachineSource::Kind::kFsRoot, fsroot});
  }
  if (!xml.empty()) {
    sources.push_back({MachineSource::Kind::kXml, xml});
  }
  if (!synthetic.empty()) {
    sources.push_back({MachineSource::Kind::kSynthetic, synthetic});
  }
  return sources;
}

int ShowLive(const CommandLine& line, std::ostream& out, std::ostream& err) {
  const ControlClient client(line);
  const auto topology = client.Ask<v1::GetTopologyResponse>(v1::GetTopologyRequest());
  if (!topology.ok()) {
    return line.Fail(topology.status(), err);
  }
  if (line.format().IsText()) {
    PrintTopology(*topology, AskUnpinned(client), out);
    return kDone;
  }
  PrintDocument(TopologyDocument(*topology), line, out);
  return kDone;
}

int ShowDescribed(const CommandLine& line, const MachineSource& source, std::ostream& out,
                  std::ostream& err) {
  const auto machine = Discover(source);
  if (!machine.ok()) {
    return line.Fail(machine.status(), err);
  }
  if (line.format().IsText()) {
    out << DescribeMachine(*machine);
    return kDone;
  }
  PrintDocument(MachineToJson(*machine), line, out);
  return kDone;
}

}  // namespace

int RunTopology(const Args& args, std::ostream& out, std::ostream& err) {
  bool local = false;
  std::string fsroot;
  std::string xml;
  std::string synthetic;
  CommandLine line(
      "topology",
      "Shows the NUMA map of the node as qrmd sees it, with its users. Without qrmd, shows\n"
      "this or another machine. * marks exclusive CPUs.",
      "qrmctl topology -o svg > node.svg");
  line.OutputOrPicture()
      .ControlSocket()
      .Flag("--local", local, "this machine, without qrmd")
      .Option("--fsroot", fsroot, "a machine with copies of its /proc and /sys in DIR", "DIR")
      .Option("--xml", xml, "a machine that lstopo wrote to FILE", "FILE")
      .Option("--synthetic", synthetic, "a synthetic machine: \"package:2 [numa] core:4 pu:2\"",
              "TEXT");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const std::vector<MachineSource> sources = NamedSources(local, fsroot, xml, synthetic);
  if (sources.size() > 1) {
    return line.Misuse("one machine at a time", err);
  }
  return sources.empty() ? ShowLive(line, out, err)
                         : ShowDescribed(line, sources.front(), out, err);
}

}  // namespace qrm::manager::cli
