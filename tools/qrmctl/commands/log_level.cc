// qrmctl log-level [LEVEL]

#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"

namespace qrm::manager::cli {

int RunLogLevel(const Args& args, std::ostream& out, std::ostream& err) {
  std::string level;
  CommandLine line("log-level",
                   "Shows which lines qrmd logs, or changes that until qrmd ends or rereads its\n"
                   "configuration.",
                   "qrmctl log-level debug");
  line.Output().ControlSocket().Optional("LEVEL", level, "debug, info, warning or error");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  v1::SetLogLevelRequest request;
  request.set_level(level);
  const auto answer = ControlClient(line).Ask<v1::SetLogLevelResponse>(request);
  return Show(line, answer, out, err, [&](const v1::SetLogLevelResponse& set) {
    if (!level.empty()) {
      out << "log level: " << set.former_level() << " -> ";
    }
    out << set.level() << '\n';
  });
}

}  // namespace qrm::manager::cli
