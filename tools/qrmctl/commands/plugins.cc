// qrmctl plugins, qrmctl plugins forget
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/proto/qrm/v1/control.pb.h"
#include "api/resource.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

std::string StateText(const v1::Plugin& plugin) {
  if (!plugin.live()) {
    return "away";
  }
  return plugin.problem().empty() ? "live" : "suspect";
}

std::string OptionsText(const v1::Plugin& plugin) {
  std::string text;
  const auto add = [&text](bool on, const char* name) {
    text += on ? (text.empty() ? "" : ",") + std::string(name) : "";
  };
  add(plugin.with_topology_alignment(), "aligned");
  add(plugin.need_reconcile(), "reconciled");
  add(plugin.pre_start_required(), "pre-start");
  return text;
}

Status PrintPlugins(const v1::ListPluginsResponse& response, const CommandLine& line,
                    std::ostream& out) {
  const bool wide = line.format().kind == OutputFormat::kWide;
  std::vector<std::string> headers = {"RESOURCE", "STATE",    "REGISTERED BY",
                                      "AGE",      "ENDPOINT", "PROBLEM"};
  if (wide) {
    headers.emplace_back("OPTIONS");
  }
  Table table(headers);
  for (const v1::Plugin& plugin : response.plugins()) {
    std::vector<std::string> row = {
        plugin.resource_name(), StateText(plugin),
        plugin.registered_by(), AgeText(plugin.seconds_since_registration()),
        plugin.endpoint(),      plugin.problem()};
    if (wide) {
      row.push_back(OptionsText(plugin));
    }
    table.Add(std::move(row));
  }
  QRM_RETURN_IF_ERROR(
      table.PrintSorted(line.listing().sort_by, "No plugin has registered.\n", out));
  for (const std::string& note : response.notes()) {
    out << "note: " << note << '\n';
  }
  return OkStatus();
}

/// "CpusetCpus=1-2", or the amount.
std::string GivenText(const v1::Allocation& allocation) {
  if (!allocation.oci_property().empty()) {
    return allocation.oci_property() + "=" + allocation.value();
  }
  return allocation.quantity() == 0 ? ""
                                    : AmountOf(allocation.resource_name(), allocation.quantity());
}

void PrintRecords(const v1::ForgetPluginResponse& records, std::ostream& out) {
  Table table({"NAMESPACE", "POD", "CONTAINER", "RESOURCE", "HOLDS"});
  for (const v1::RecordedAllocation& given : records.allocations()) {
    table.Add({given.pod_namespace(), given.pod_name(), given.container(),
               given.allocation().resource_name(), GivenText(given.allocation())});
  }
  if (!table.empty()) {
    table.Print(out);
  }
  if (!records.pending_removals().empty()) {
    out << fmt::format("Not yet notified of these removed pods: {}\n",
                       fmt::join(records.pending_removals(), ", "));
  }
}

std::string CountsText(const v1::ForgetPluginResponse& records) {
  return fmt::format(
      "{} and {}", CountText(static_cast<uint64_t>(records.allocations_size()), "allocation"),
      CountText(static_cast<uint64_t>(records.pending_removals_size()), "pending removal"));
}

}  // namespace

int RunPluginsForget(const Args& args, std::ostream& out, std::ostream& err) {
  std::string plugin;
  bool yes = false;
  CommandLine line(
      "plugins forget",
      "Shows the recorded allocations of a plugin that is gone for good; --yes drops them.\n"
      "Running containers keep their values, which are then free for other containers.",
      "qrmctl plugins forget example.com/nic");
  line.Output()
      .ControlSocket()
      .Flag("--yes", yes, "drop the allocations")
      .Required("NAME", plugin, "the plugin's resource, as qrmctl plugins lists it");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  v1::ForgetPluginRequest request;
  request.set_resource_name(plugin);
  request.set_apply(yes);
  const auto answer = ControlClient(line).Ask<v1::ForgetPluginResponse>(request);
  return Show(line, answer, out, err, [&](const v1::ForgetPluginResponse& records) {
    PrintRecords(records, out);
    out << (yes ? fmt::format("Forgot {}: {} dropped.\n", plugin, CountsText(records))
                : fmt::format("Nothing has changed. To drop {}: qrmctl plugins forget {} --yes\n",
                              CountsText(records), plugin));
  });
}

int RunPlugins(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line(
      "plugins",
      "Lists the resource plugins: live, suspect (live, with a problem) or away (not\n"
      "running). qrmctl plugins forget NAME drops the records of a plugin that is gone.",
      "qrmctl plugins");
  line.Output().ControlSocket().Sorted().Watch();
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto answer = ControlClient(line).Ask<v1::ListPluginsResponse>(v1::ListPluginsRequest());
  return Show(line, answer, out, err, [&](const v1::ListPluginsResponse& plugins) {
    return PrintPlugins(plugins, line, out);
  });
}

}  // namespace qrm::manager::cli
