// qrmctl permissions
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/proto/qrm/v1/control.pb.h"
#include "api/proto/qrm/v1/permissions.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

void PrintRules(const v1::GetPermissionsResponse& permissions, std::ostream& out) {
  Table table({"NAMESPACES", "ALLOWED", "POOLS", "ROLES", "RESOURCES", "CLASSES", "DRIVERS"});
  const auto list = [](const auto& words) { return fmt::format("{}", fmt::join(words, ",")); };
  for (const v1::PermissionRule& rule : permissions.rules()) {
    table.Add({list(rule.namespaces()), list(rule.allow()), list(rule.pools()), list(rule.roles()),
               list(rule.resources()), list(rule.classes()), list(rule.drivers())});
  }
  table.Print(out);
}

}  // namespace

int RunPermissions(const Args& args, std::ostream& out, std::ostream& err) {
  std::string pod_namespace;
  CommandLine line("permissions",
                   "Lists the rules for what pods may ask for. The first rule that names a pod's\n"
                   "namespace decides. The last two rules are the defaults.",
                   "qrmctl permissions --namespace team-a");
  line.Output().ControlSocket().Option(
      "--namespace", pod_namespace, "only the rule that decides for this namespace", "NAMESPACE");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  v1::GetPermissionsRequest request;
  request.set_namespace_(pod_namespace);
  const auto permissions = ControlClient(line).Ask<v1::GetPermissionsResponse>(request);
  return Show(line, permissions, out, err,
              [&](const v1::GetPermissionsResponse& rules) { PrintRules(rules, out); });
}

}  // namespace qrm::manager::cli
