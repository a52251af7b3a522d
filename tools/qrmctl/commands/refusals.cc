// qrmctl refusals
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "api/base/config_key.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

constexpr char kEver[] = "ever";

/// Milliseconds since 1970; absent for a text that is no duration.
std::optional<int64_t> SinceOf(const std::string& ago) {
  if (ago == kEver) {
    return 0;
  }
  const auto duration = config::ParseDuration(ago);
  if (!duration.has_value()) {
    return std::nullopt;
  }
  const auto since = std::chrono::system_clock::now() - *duration;
  return std::chrono::duration_cast<std::chrono::milliseconds>(since.time_since_epoch()).count();
}

void PrintTable(const v1::ListRefusalsResponse& response, const std::string& since,
                std::ostream& out) {
  if (response.refusals().empty()) {
    out << (since == kEver ? "No refusal is remembered.\n"
                           : fmt::format("Nobody was refused in the last {}.\n", since));
    return;
  }
  Table table({"LAST", "TIMES", "NAMESPACE", "POD", "CONTAINER", "WHY"});
  for (const v1::Refusal& refusal : response.refusals()) {
    table.Add({TimeText(refusal.last_unix_millis()), std::to_string(refusal.times()),
               refusal.pod_namespace(), refusal.pod_name(), refusal.container(),
               refusal.message()});
  }
  table.Print(out);
}

}  // namespace

int RunRefusals(const Args& args, std::ostream& out, std::ostream& err) {
  OutputFormat format = OutputFormat::kTable;
  std::string socket;
  std::string since = kEver;
  CommandLine line(
      "refusals",
      "Lists the containers that were refused a place, the latest first, and why. Equal\n"
      "refusals of a container are one line; qrmctl explain POD tells more of each.",
      "qrmctl refusals --since 1h");
  line.Output(format).ControlSocket(socket).Option(
      "--since", since, "only those of the last so much time (default: all that are remembered)",
      "DURATION");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const std::optional<int64_t> from = SinceOf(since);
  if (!from.has_value()) {
    return line.Misuse(fmt::format("\"{}\" is no duration; write one such as 10m or 2h", since),
                       err);
  }
  v1::ListRefusalsRequest request;
  request.set_since_unix_millis(*from);
  const auto refusals = ControlClient(socket).Ask<v1::ListRefusalsResponse>(request);
  if (!refusals.ok()) {
    return line.Fail(refusals.status(), err);
  }
  if (format == OutputFormat::kTable) {
    PrintTable(*refusals, since, out);
  } else {
    Print(ToDocument(*refusals), format, out);
  }
  return kDone;
}

}  // namespace qrm::manager::cli
