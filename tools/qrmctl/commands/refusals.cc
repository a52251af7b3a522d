// qrmctl refusals
#include <optional>

#include <fmt/format.h>

#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/keep_rows.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

Status PrintTable(const v1::ListRefusalsResponse& response, const std::string& since,
                  const Listing& listing, std::ostream& out) {
  if (response.refusals().empty()) {
    out << (since == kEver ? "There are no recent rejections.\n"
                           : fmt::format("No container was rejected in the last {}.\n", since));
    return OkStatus();
  }
  Table table({"LAST", "TIMES", "NAMESPACE", "POD", "CONTAINER", "WHY"});
  for (const v1::Refusal& refusal : response.refusals()) {
    table.Add({TimeText(refusal.last_unix_millis()), std::to_string(refusal.times()),
               refusal.pod_namespace(), refusal.pod_name(), refusal.container(),
               refusal.message()});
  }
  QRM_RETURN_IF_ERROR(table.SortBy(listing.sort_by));
  table.Print(out);
  return OkStatus();
}

}  // namespace

int RunRefusals(const Args& args, std::ostream& out, std::ostream& err) {
  std::string since = kEver;
  CommandLine line(
      "refusals",
      "Lists rejected containers with the reasons, latest first. Equal rejections of a\n"
      "container are one line with a count. qrmctl explain POD shows more.",
      "qrmctl refusals --since 1h");
  line.Output().ControlSocket().Listed().Watch().Option(
      "--since", since, "only rejections of this last time (default: all recent rejections)",
      "DURATION");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const std::optional<int64_t> from = SinceOf(since);
  if (!from.has_value()) {
    return line.Misuse(fmt::format("\"{}\" is not a duration; write one such as 10m or 2h", since),
                       err);
  }
  v1::ListRefusalsRequest request;
  request.set_since_unix_millis(*from);
  auto answer = ControlClient(line).Ask<v1::ListRefusalsResponse>(request);
  if (answer.ok()) {
    KeepNamespace(line.listing().pod_namespace, *answer->mutable_refusals(),
                  [](const v1::Refusal& refusal) { return refusal.pod_namespace(); });
  }
  return Show(line, answer, out, err, [&](const v1::ListRefusalsResponse& refusals) {
    return PrintTable(refusals, since, line.listing(), out);
  });
}

}  // namespace qrm::manager::cli
