// qrmctl pods [POD]
#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/container_states.h"
#include "tools/qrmctl/control_client.h"
#include "tools/qrmctl/keep_rows.h"
#include "tools/qrmctl/label_selector.h"
#include "tools/qrmctl/pod_tables.h"

namespace qrm::manager::cli {

int RunPods(const Args& args, std::ostream& out, std::ostream& err) {
  std::string pod;
  std::string labels;
  bool unpinned = false;
  CommandLine line(
      "pods",
      "Lists the pods and their containers' allocations, or all details of a pod. * marks\n"
      "exclusive CPUs; ! marks a resource that is missing in the container.",
      "qrmctl pods default/web");
  line.Output()
      .ControlSocket()
      .Listed()
      .Option("-l,--selector", labels, "only pods with such labels: app=web,tier!=db", "LABELS")
      .Flag("--unpinned", unpinned,
            "only running containers that lack an allocation or a part of it, and why")
      .Watch()
      .Optional("POD", pod, "a name, NAMESPACE/NAME or a UID");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  const auto selector = LabelSelector::Parse(labels);
  if (!selector.ok()) {
    return line.Misuse(MessageOf(selector.status()), err);
  }
  v1::ListPodsRequest request;
  request.set_pod(pod);
  request.set_unpinned(true);
  request.set_since(line.format().kind != OutputFormat::kTable || unpinned || !pod.empty());
  auto pods = ControlClient(line).Ask<v1::ListPodsResponse>(request);
  if (!pods.ok()) {
    return line.Fail(pods.status(), err);
  }
  KeepNamespace(line.listing().pod_namespace, *pods->mutable_pods(),
                [](const v1::Pod& each) { return each.namespace_(); });
  KeepRows(*pods->mutable_pods(), [&](const v1::Pod& each) {
    return selector->Matches({each.labels().begin(), each.labels().end()});
  });
  if (unpinned) {
    KeepUnpinned(*pods);
  }
  const PodDetail detail = unpinned      ? PodDetail::kReasons
                           : pod.empty() ? PodDetail::kRows
                                         : PodDetail::kSheets;
  return ShowPods(line, pods, detail, out, err);
}

}  // namespace qrm::manager::cli
