// qrmctl --cluster why
#include "scheduler/extender/why.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/log.h"
#include "cluster/access.h"
#include "scheduler/topology/resource_types.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/scheduler_client.h"
#include "tools/qrmctl/table.h"

namespace qrm::manager::cli {
namespace {

constexpr char kDefaultUrl[] = "https://127.0.0.1:9755";
/// Where the chart of qrm-scheduler mounts its certificate.
constexpr char kDefaultCredentials[] = "/etc/qrm-tls";
constexpr char kFits[] = "fits";

/// Where the answer comes from.
struct Source {
  std::string url = kDefaultUrl;
  std::string credentials = kDefaultCredentials;
  std::string kubeconfig;
  std::string context;
  std::string resources = "numa";
};

std::vector<std::string> WordsOf(const std::string& list) {
  std::istringstream text(list);
  std::vector<std::string> words;
  for (std::string word; std::getline(text, word, ',');) {
    words.push_back(word);
  }
  return words;
}

/// What is wrong with the words; empty when nothing is.
std::string ProblemOf(const Source& source, const std::string& pod) {
  if (pod.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-./") != std::string::npos) {
    return fmt::format("\"{}\" is not a pod's name, NAMESPACE/NAME or UID", pod);
  }
  if (source.url != kDefaultUrl && !source.kubeconfig.empty()) {
    return "--url and --kubeconfig exclude each other; give one of them";
  }
  if (!ParseSchedulerUrl(source.url).ok()) {
    return MessageOf(ParseSchedulerUrl(source.url).status());
  }
  const std::vector<std::string> known = scheduler::ResourceTypes();
  for (const std::string& word : WordsOf(source.resources)) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      return fmt::format(
          "\"{}\" is not a resource; write some of {}, as in qrm-scheduler's "
          "configuration",
          word, fmt::join(known, ", "));
    }
  }
  return {};
}

StatusOr<nlohmann::json> Ask(const Source& source, const std::string& pod) {
  if (!source.kubeconfig.empty()) {
    log::SetLevel(log::Level::kError);  // what is in trouble is the answer
    const auto access = cluster::ReadKubeconfig(source.kubeconfig, source.context);
    const auto make_handles = [&]() -> StatusOr<scheduler::HandleRegistry> {
      return scheduler::RegisterResources(WordsOf(source.resources));
    };
    return access.ok() ? scheduler::WhyPodWaits(*access, make_handles, pod)
                       : StatusOr<nlohmann::json>(access.status());
  }
  QRM_ASSIGN_OR_RETURN(const SchedulerUrl url, ParseSchedulerUrl(source.url));
  QRM_ASSIGN_OR_RETURN(const std::string body,
                       AskScheduler(url, source.credentials, "/why?pod=" + pod));
  StatusOr<nlohmann::json> answer = ParseJson(body);
  if (!answer.ok() || !answer->is_object() || !answer->contains("state")) {
    return Errorf(StatusCode::kInternal,
                  "the server at {} is not a qrm-scheduler of this version; check --url",
                  source.url);
  }
  return answer;
}

void PrintTable(const nlohmann::json& why, std::ostream& out) {
  const std::string name =
      why.value("namespace", std::string()) + "/" + why.value("pod", std::string());
  if (!why.contains("nodes")) {
    out << fmt::format("Pod {} {} to node {}.\n", name, why.value("state", std::string()),
                       why.value("node", std::string()));
    return;
  }
  const auto nodes = why["nodes"].get<std::map<std::string, std::string>>();
  const auto refusing = std::count_if(nodes.begin(), nodes.end(),
                                      [](const auto& node) { return !node.second.empty(); });
  out << fmt::format("Pod {} waits; {} of {} nodes {} it.\n", name, refusing, nodes.size(),
                     refusing == 1 ? "rejects" : "reject");
  Table table({"NODE", "WHY"});
  for (const auto& [node, refusal] : nodes) {
    table.Add({node, refusal.empty() ? kFits : refusal});
  }
  if (!table.empty()) {
    table.Print(out);
  }
  if (refusing < static_cast<std::ptrdiff_t>(nodes.size())) {
    out << fmt::format(
        "On nodes where it fits, kube-scheduler's own checks decide: kubectl -n {} "
        "describe pod {}\n",
        why.value("namespace", std::string()), why.value("pod", std::string()));
  }
}

}  // namespace

int RunWhy(const Args& args, std::ostream& out, std::ostream& err) {
  std::string pod;
  Source source;
  CommandLine line("--cluster why",
                   "Shows for each node of the cluster why a pod waits: the answer that "
                   "qrm-scheduler\nwould give kube-scheduler now.",
                   "qrmctl --cluster why shop/db");
  line.Required("POD", pod, "its name, NAMESPACE/NAME or UID")
      .Output()
      .Option("--url", source.url,
              std::string("where qrm-scheduler serves (default: ") + kDefaultUrl +
                  ", in its pod or through a forwarded port)",
              "URL")
      .Option("--credentials", source.credentials,
              std::string("with https: directory of ca.crt, tls.crt and tls.key (default: ") +
                  kDefaultCredentials + ")",
              "DIRECTORY")
      .Option("--kubeconfig", source.kubeconfig, "judge in qrmctl, by lists from the API server",
              "FILE")
      .Option("--context", source.context, "which of its contexts (default: the current one)",
              "NAME")
      .Option("--resources", source.resources,
              "with --kubeconfig: resources of qrm-scheduler's configuration (default: numa)",
              "LIST");
  if (const auto exit = line.Parse(args, out, err); exit.has_value()) {
    return *exit;
  }
  if (const std::string problem = ProblemOf(source, pod); !problem.empty()) {
    return line.Misuse(problem, err);
  }
  const StatusOr<nlohmann::json> why = Ask(source, pod);
  if (!why.ok()) {
    return line.Fail(why.status(), err);
  }
  if (line.format().IsText()) {
    PrintTable(*why, out);
  } else {
    Print(Document(*why), line.format(), out);
  }
  return kDone;
}

}  // namespace qrm::manager::cli
