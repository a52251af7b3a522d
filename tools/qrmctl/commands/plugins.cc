// qrmctl plugins
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

void PrintPlugins(const v1::ListPluginsResponse& response, std::ostream& out) {
  Table table({"RESOURCE", "STATE", "REGISTERED BY", "AGE", "ENDPOINT", "PROBLEM"});
  for (const v1::Plugin& plugin : response.plugins()) {
    table.Add({plugin.resource_name(), StateText(plugin), plugin.registered_by(),
               AgeText(plugin.seconds_since_registration()), plugin.endpoint(), plugin.problem()});
  }
  if (table.empty()) {
    out << "No plugin has registered.\n";
    return;
  }
  table.Print(out);
}

}  // namespace

int RunPlugins(const Args& args, std::ostream& out, std::ostream& err) {
  OutputFormat format = OutputFormat::kTable;
  std::string socket;
  CommandLine line("plugins",
                   "Lists the resource plugins: live, suspect (live, with a problem) or away.",
                   "qrmctl plugins");
  line.Output(format).ControlSocket(socket);
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto plugins = ControlClient(socket).Ask<v1::ListPluginsResponse>(v1::ListPluginsRequest());
  if (!plugins.ok()) {
    return line.Fail(plugins.status(), err);
  }
  if (format == OutputFormat::kTable) {
    PrintPlugins(*plugins, out);
  } else {
    Print(ToDocument(*plugins), format, out);
  }
  return kDone;
}

}  // namespace qrm::manager::cli
