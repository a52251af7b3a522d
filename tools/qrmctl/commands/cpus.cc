// qrmctl cpus [CPUS]
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

/// One CPU and its users.
struct CpuRow {
  int node = 0;
  std::string use;
  std::vector<std::string> containers;  ///< "namespace/pod/container"
};
using CpuRows = std::map<int, CpuRow>;

CpuSet CpusOf(const std::string& cpus) {
  return CpuSet::Parse(cpus).value_or(CpuSet());
}

CpuRows CpuRowsOf(const v1::GetTopologyResponse& topology) {
  CpuRows rows;
  for (const v1::NodeUse& use : topology.use()) {
    for (const auto& [name, cpus] :
         {std::pair("exclusive", use.exclusive_cpus()), std::pair("shared", use.shared_cpus()),
          std::pair("free", use.free_cpus())}) {
      for (const int cpu : CpusOf(cpus)) {
        rows[cpu] = {.node = use.node(), .use = name, .containers = {}};
      }
    }
  }
  for (const v1::NodeUse& use : topology.use()) {
    for (const v1::ContainerUse& container : use.containers()) {
      for (const int cpu : CpusOf(container.cpus())) {
        rows[cpu].containers.push_back(container.container());
      }
    }
  }
  return rows;
}

Document CpusDocument(const CpuRows& rows) {
  Document document = Document::array();
  for (const auto& [cpu, row] : rows) {
    document.push_back(
        {{"cpu", cpu}, {"node", row.node}, {"use", row.use}, {"containers", row.containers}});
  }
  return {{"cpus", document}};
}

void PrintCpus(const CpuRows& rows, std::ostream& out) {
  Table table({"CPU", "NODE", "USE", "CONTAINERS"});
  for (const auto& [cpu, row] : rows) {
    table.Add({std::to_string(cpu), std::to_string(row.node), row.use,
               fmt::format("{}", fmt::join(row.containers, ", "))});
  }
  table.Print(out);
}

}  // namespace

int RunCpus(const Args& args, std::ostream& out, std::ostream& err) {
  std::string named;
  CommandLine line("cpus",
                   "Lists the CPUs of the node and the containers on each of them. A container of\n"
                   "a shared pool is listed at each CPU of its pool.",
                   "qrmctl cpus 3");
  line.Output().ControlSocket().Optional("CPUS", named, "only these, such as 3 or 0-3,8");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const StatusOr<CpuSet> wanted = CpuSet::Parse(named);
  if (!wanted.ok()) {
    return line.Misuse(MessageOf(wanted.status()), err);
  }
  const auto topology = ControlClient(line).Ask<v1::GetTopologyResponse>(v1::GetTopologyRequest());
  if (!topology.ok()) {
    return line.Fail(topology.status(), err);
  }
  CpuRows rows = CpuRowsOf(*topology);
  for (const int cpu : *wanted) {
    if (!rows.contains(cpu)) {
      return line.Fail(Errorf(StatusCode::kNotFound,
                              "cannot show CPU {}: this node has none of that number; qrmctl "
                              "topology shows its CPUs",
                              cpu),
                       err);
    }
  }
  std::erase_if(rows, [&](const auto& row) { return !wanted->Empty() && !wanted->Has(row.first); });
  if (line.format().IsText()) {
    PrintCpus(rows, out);
  } else {
    Print(CpusDocument(rows), line.format(), out);
  }
  return kDone;
}

}  // namespace qrm::manager::cli
