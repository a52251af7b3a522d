// qrmctl explain POD
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/resource.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/explain_text.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli {
namespace {

/// How the container got its current values; `at_creation` are its first ones.
std::string HowText(const v1::Decision& decision, const Document& at_creation) {
  if (decision.updated_unix_millis() != 0) {
    return "by an update at " + TimeText(decision.updated_unix_millis());
  }
  const Document now(StringMap(decision.applied().begin(), decision.applied().end()));
  return now == at_creation ? "at its creation, " + TimeText(decision.unix_millis())
                            : "by an update before qrmd started";
}

void PrintApplied(const v1::Decision& decision, const Document& document, std::ostream& out) {
  if (decision.applied().empty()) {
    return;
  }
  out << "  Applied last\n   ";
  for (const auto& [property, value] :
       StringMap(decision.applied().begin(), decision.applied().end())) {
    out << fmt::format(" {}={}", Escaped(property), Escaped(value));
  }
  out << ", " << HowText(decision, document.value("applied", Document::object())) << '\n';
}

bool SamePod(const v1::Decision& a, const v1::Decision& b) {
  return a.pod_uid() == b.pod_uid();
}

/// The pod that came last is what was most probably asked about; others of its name follow.
void PrintEarlierPod(const v1::Decision& decision, std::ostream& out) {
  out << fmt::format("An earlier pod {}/{}, UID {}:\n", Escaped(decision.pod_namespace()),
                     Escaped(decision.pod_name()), Escaped(decision.pod_uid()));
}

void PrintDecisions(const v1::ExplainResponse& response, std::ostream& out) {
  for (int i = 0; i < response.decisions_size(); ++i) {
    const v1::Decision& decision = response.decisions(i);
    out << (i == 0 ? "" : "\n");
    if (i > 0 && !SamePod(decision, response.decisions(i - 1))) {
      PrintEarlierPod(decision, out);
    }
    const Document document = InnerDocument(decision);
    const std::string result =
        document.value("result", std::string(decision.admitted() ? "admitted" : "rejected"));
    out << fmt::format("{}/{} container {}: {} at {}\n", Escaped(decision.pod_namespace()),
                       Escaped(decision.pod_name()), Escaped(decision.container()), Escaped(result),
                       TimeText(decision.unix_millis()));
    PrintDecision(document, out);
    PrintApplied(decision, document, out);
  }
}

}  // namespace

int RunExplain(const Args& args, std::ostream& out, std::ostream& err) {
  std::string pod;
  CommandLine line("explain",
                   "Shows why a pod's containers were placed as they are, or rejected: requests,\n"
                   "hints of the plugins, their merge, and allocations.",
                   "qrmctl explain default/web");
  line.Output().ControlSocket().Required("POD", pod, "a name, NAMESPACE/NAME or a UID");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  v1::ExplainRequest request;
  request.set_pod(pod);
  const auto decisions = ControlClient(line).Ask<v1::ExplainResponse>(request);
  if (!decisions.ok()) {
    return line.Fail(decisions.status(), err);
  }
  if (line.format().IsText()) {
    PrintDecisions(*decisions, out);
  } else {
    Print({{"decisions", DecisionsDocument(decisions->decisions())}}, line.format(), out);
  }
  return kDone;
}

}  // namespace qrm::manager::cli
