// qrmctl status
#include <fmt/format.h>

#include "api/base/foreign_text.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/colours.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

std::string AgoText(double seconds) {
  return seconds < 0 ? "never" : AgeText(seconds) + " ago";
}

std::string RuntimeText(const v1::RuntimeStatus& runtime) {
  const std::string name =
      runtime.name().empty() ? "not known yet" : runtime.name() + " " + runtime.version();
  return fmt::format("{}, CRI {}", name, runtime.cri_reachable() ? "reachable" : "not reachable");
}

std::string NriText(const v1::RuntimeStatus& runtime) {
  return fmt::format(
      "{}, {}, {}, synchronized {}", runtime.nri_connected() ? "connected" : "not connected",
      CountText(runtime.nri_connects(), "connect"),
      CountText(runtime.nri_disconnects(), "disconnect"), AgoText(runtime.seconds_since_sync()));
}

std::string ReconcileText(const v1::ReconcileStatus& reconcile) {
  return fmt::format("every {}s, last {}, {}, {}, {}", AmountText(reconcile.period_seconds()),
                     AgoText(reconcile.seconds_since_last()), CountText(reconcile.runs(), "run"),
                     CountText(reconcile.updates(), "update"),
                     CountText(reconcile.failures(), "failure")) +
         (reconcile.deferred_updates() == 0
              ? ""
              : fmt::format(", {} deferred", CountText(reconcile.deferred_updates(), "update"))) +
         (reconcile.drift_repairs() == 0
              ? ""
              : ", " + CountText(reconcile.drift_repairs(), "drift repair"));
}

std::string PodsText(const v1::GetStatusResponse& status) {
  const std::string text = fmt::format("{} with {}", CountText(status.pods(), "pod"),
                                       CountText(status.containers(), "container"));
  return status.pending_removals() == 0
             ? text
             : fmt::format("{}, {} to be reported to plugins that are not running", text,
                           CountText(status.pending_removals(), "removal"));
}

std::string ReadyText(const v1::GetStatusResponse& status) {
  if (!status.ready()) {
    return "no";
  }
  return status.degraded_reasons().empty() ? "yes" : "yes, degraded";
}

std::string ModeText(const std::string& mode) {
  if (mode == "nri") {
    return "NRI: containers are pinned before they start";
  }
  return mode == "observer" ? "observer: containers are pinned after their creation"
                            : "none: containers are not seen";
}

void AddProblem(const std::string& problem, Sheet& sheet) {
  if (!problem.empty()) {
    sheet.Add("  Problem", problem);
  }
}

void PrintList(const std::string& title,
               const google::protobuf::RepeatedPtrField<std::string>& lines, std::ostream& out) {
  if (lines.empty()) {
    return;
  }
  out << (HasColours(out) ? Bold(title) : title) << ":\n";
  for (const std::string& line : lines) {
    out << "  " << Escaped(line) << '\n';
  }
}

/// The parts of the node, one line each.
void PrintSubsystems(const v1::GetStatusResponse& status, std::ostream& out) {
  Table table({"SUBSYSTEM", "STATE", "FOR", "ABOUT", "NEXT"});
  for (const v1::Subsystem& line : status.subsystems()) {
    table.Add(
        {line.name(), line.state(), AgeText(line.seconds_in_state()), line.about(), line.next()});
  }
  out << '\n';
  table.Print(out);
}

void PrintStatus(const v1::GetStatusResponse& status, bool wide, std::ostream& out) {
  const bool is_older = status.subsystems().empty();  // qrmd of a former release
  const bool all = wide || is_older;                  // else the table below has it
  Sheet sheet;
  sheet.Add("Ready", ReadyText(status));
  sheet.Add("Version", status.version());
  sheet.Add("Up", AgeText(status.uptime_seconds()));
  if (all) {
    sheet.Add("Admitted", PodsText(status));
  }
  sheet.Add("Policy", status.topology_policy());
  if (all) {
    sheet.Add("State", status.state_path());
    sheet.Add("Runtime", RuntimeText(status.runtime()));
  }
  sheet.Add("Mode", ModeText(status.runtime().mode()));
  if (all) {
    sheet.Add("NRI", NriText(status.runtime()));
  }
  AddProblem(status.runtime().problem(), sheet);
  sheet.Add("Reconcile", ReconcileText(status.reconcile()));
  AddProblem(status.reconcile().last_problem(), sheet);
  sheet.Print(out);
  if (!is_older) {
    PrintSubsystems(status, out);
  }
  PrintList("Not ready because", status.not_ready_reasons(), out);
  PrintList("Degraded because", status.degraded_reasons(), out);
  PrintList("Warnings since start", status.warnings(), out);
}

}  // namespace

int RunStatus(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("status",
                   "Shows whether qrmd is ready, and a line for each part of the node: its state,\n"
                   "since when, and the next command. -o wide shows more about qrmd.",
                   "qrmctl status -o json");
  line.Output().ControlSocket().Watch();
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto answer = ControlClient(line).Ask<v1::GetStatusResponse>(v1::GetStatusRequest());
  return Show(line, answer, out, err, [&](const v1::GetStatusResponse& status) {
    PrintStatus(status, line.format().kind == OutputFormat::kWide, out);
  });
}

}  // namespace qrm::manager::cli
