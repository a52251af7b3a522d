// qrmctl admit --dry-run -f FILE
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"
#include "api/proto/core/v1/pod.pb.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/explain_text.h"
#include "tools/qrmctl/pod_file.h"

namespace qrm::manager::cli {
namespace {

using ::k8s::io::api::core::v1::Pod;

constexpr char kAdmitted[] = "admitted";
constexpr char kRejected[] = "rejected";

std::string NameOf(const Pod& pod) {
  return Escaped(pod.metadata().namespace_() + "/" + pod.metadata().name());
}

std::string ResultText(const std::string& result) {
  if (result == kAdmitted) {
    return "would be admitted";
  }
  return result == kRejected ? "would be rejected" : "would be skipped";
}

void PrintTable(const Pod& pod, const v1::DryRunResponse& answer, std::ostream& out) {
  out << NameOf(pod) << ' ' << ResultText(answer.result()) << '\n';
  for (const v1::Decision& decision : answer.decisions()) {
    const Document document = InnerDocument(decision);
    out << fmt::format("\ncontainer {}: {}\n", Escaped(decision.container()),
                       ResultText(document.value("result", std::string())));
    PrintDecision(document, out);
  }
  out << (answer.notes().empty() ? "" : "\n");
  for (const std::string& note : answer.notes()) {
    out << "note: " << Escaped(note) << '\n';
  }
}

Document DocumentOf(const Pod& pod, const v1::DryRunResponse& answer) {
  Document document = {{"pod", NameOf(pod)}};
  document.update(ToDocument(answer));
  document["decisions"] = DecisionsDocument(answer.decisions());
  return document;
}

/// A pod that cannot be read, by us or by qrmd, is a misuse; all else that fails is not.
int Refuse(const CommandLine& line, const Status& status, std::ostream& err) {
  const int failed = line.Fail(status, err);
  return status.code() == StatusCode::kInvalidArgument ? kMisuse : failed;
}

}  // namespace

int RunAdmit(const Args& args, std::ostream& out, std::ostream& err) {
  std::string path;
  bool dry_run = false;
  CommandLine line(
      "admit",
      "Shows whether this node would admit a pod now, and what its containers would get.\n"
      "Nothing changes and nothing is reserved, so the pod may still be rejected when it is\n"
      "created. Exit code 1: it would be rejected, or qrmd is not ready.",
      "qrmctl admit --dry-run -f pod.yaml");
  line.Output()
      .ControlSocket()
      .Flag("--dry-run", dry_run, "required: only the runtime admits pods")
      .Option("-f,--filename", path,
              "a Pod, or a Deployment or the like, in YAML or JSON; - for standard input", "FILE");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  if (!dry_run) {
    return line.Misuse("only the runtime admits pods; --dry-run shows what would happen", err);
  }
  if (path.empty()) {
    return line.Misuse("no pod given; name its file with -f", err);
  }
  const auto file = ReadPodAt(path);
  if (!file.ok()) {
    return Refuse(line, file.status(), err);
  }
  v1::DryRunRequest request;
  request.set_pod(file->pod->SerializeAsString());
  const auto answer = ControlClient(line).Ask<v1::DryRunResponse>(request);
  if (!answer.ok()) {
    return Refuse(line, answer.status(), err);
  }
  if (line.format().IsText()) {
    PrintTable(*file->pod, *answer, out);
  } else {
    Print(DocumentOf(*file->pod, *answer), line.format(), out);
  }
  return answer->result() == kRejected
             ? line.Fail({StatusCode::kResourceExhausted, answer->message()}, err)
             : kDone;
}

}  // namespace qrm::manager::cli
