// qrmctl log-level [LEVEL]

#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"

namespace qrm::manager::cli {

int RunLogLevel(const Args& args, std::ostream& out, std::ostream& err) {
  OutputFormat format = OutputFormat::kTable;
  std::string socket;
  std::string level;
  CommandLine line("log-level",
                   "Shows which lines qrmd logs, or changes that until qrmd ends or rereads its\n"
                   "configuration.",
                   "qrmctl log-level debug");
  line.Output(format).ControlSocket(socket).Optional("LEVEL", level,
                                                     "debug, info, warning or error");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  v1::SetLogLevelRequest request;
  request.set_level(level);
  const auto set = ControlClient(socket).Ask<v1::SetLogLevelResponse>(request);
  if (!set.ok()) {
    return line.Fail(set.status(), err);
  }
  if (!format.IsText()) {
    PrintMessage(*set, format, out);
  } else if (level.empty()) {
    out << set->level() << '\n';
  } else {
    out << "log level: " << set->former_level() << " -> " << set->level() << '\n';
  }
  return kDone;
}

}  // namespace qrm::manager::cli
