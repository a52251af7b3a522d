// The keys are those of Go types without JSON names: "NodeNames", not "nodeNames".
#include "scheduler/extender/messages.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

std::string Written(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// A pod of 1.5 MB has some 75,000 values, and 15,000 names come with it. Two calls are read at the
/// same time, at some 80 bytes a value.
constexpr JsonBounds kBodyBounds{.values = 150'000};

StatusOr<json> ParseBody(const std::string& body) {
  StatusOr<json> parsed = ParseJson(body, kBodyBounds);
  if (!parsed.ok() || !parsed->is_object()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read the question: it {}; send what kube-scheduler sends",
                  parsed.ok() ? "is not a JSON object" : MessageOf(parsed.status()));
  }
  return parsed;
}

StatusOr<Pod> PodIn(const json& question) {
  if (!question.contains("Pod")) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read the question: it has no Pod; send what kube-scheduler sends");
  }
  return ReadPod(question["Pod"]);
}

PreemptQuestion::Victims VictimsIn(const json& node) {
  PreemptQuestion::Victims victims;
  const json& violations = PartOf(node, "NumPDBViolations");
  victims.violations = violations.is_number_integer() ? violations.get<int>() : 0;
  for (const json& pod : PartOf(node, "Pods")) {
    if (std::string uid = TextIn(pod, "UID"); !uid.empty()) {
      victims.uids.push_back(std::move(uid));
    }
  }
  return victims;
}

}  // namespace

StatusOr<NodesQuestion> ParseNodesQuestion(const std::string& body) {
  QRM_ASSIGN_OR_RETURN(const json parsed, ParseBody(body));
  NodesQuestion question;
  QRM_ASSIGN_OR_RETURN(question.pod, PodIn(parsed));
  const json& names = PartOf(parsed, "NodeNames");
  if (!names.is_array()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot judge nodes: there are no NodeNames; set nodeCacheCapable: true for this "
                  "extender in the KubeSchedulerConfiguration");
  }
  question.nodes.reserve(names.size());
  for (const json& name : names) {
    if (name.is_string()) {
      question.nodes.push_back(name.get<std::string>());
    }
  }
  return question;
}

StatusOr<BindQuestion> ParseBindQuestion(const std::string& body) {
  QRM_ASSIGN_OR_RETURN(const json parsed, ParseBody(body));
  BindQuestion question;
  for (const auto& [key, place] :
       {std::pair("PodNamespace", &question.pod_namespace), std::pair("PodName", &question.pod),
        std::pair("PodUID", &question.uid), std::pair("Node", &question.node)}) {
    QRM_ASSIGN_OR_RETURN(*place, ReadText(parsed, key));
    if (place->empty()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot bind: the question has no {}; send what kube-scheduler sends", key);
    }
  }
  return question;
}

StatusOr<PreemptQuestion> ParsePreemptQuestion(const std::string& body) {
  QRM_ASSIGN_OR_RETURN(const json parsed, ParseBody(body));
  PreemptQuestion question;
  QRM_ASSIGN_OR_RETURN(question.pod, PodIn(parsed));
  const json& nodes = PartOf(parsed, "NodeNameToMetaVictims");
  if (!nodes.is_object()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot judge victims: there is no NodeNameToMetaVictims; set nodeCacheCapable: "
                  "true for this extender in the KubeSchedulerConfiguration");
  }
  for (const auto& [node, victims] : nodes.items()) {
    question.victims[node] = VictimsIn(victims);
  }
  return question;
}

std::string WriteFilter(const FilterAnswer& answer) {
  return Written({{"Nodes", nullptr},
                  {"NodeNames", answer.nodes},
                  {"FailedNodes", answer.refused},
                  {"FailedAndUnresolvableNodes", answer.unresolvable},
                  {"Error", ""}});
}

std::string WriteFilterFailure(const Status& why) {
  return Written({{"Nodes", nullptr},
                  {"NodeNames", json::array()},
                  {"FailedNodes", json::object()},
                  {"FailedAndUnresolvableNodes", json::object()},
                  {"Error", MessageOf(why)}});
}

std::string WriteScores(const std::vector<NodeScore>& scores) {
  json list = json::array();
  for (const NodeScore& score : scores) {
    list.push_back({{"Host", score.node}, {"Score", score.score}});
  }
  return Written(list);
}

std::string WriteBind(const Status& outcome) {
  return Written({{"Error", MessageOf(outcome)}});
}

std::string WritePreempt(const std::map<std::string, PreemptQuestion::Victims>& victims) {
  json nodes = json::object();
  for (const auto& [node, there] : victims) {
    json pods = json::array();
    for (const std::string& uid : there.uids) {
      pods.push_back({{"UID", uid}});
    }
    nodes[node] = {{"Pods", std::move(pods)}, {"NumPDBViolations", there.violations}};
  }
  return Written({{"NodeNameToMetaVictims", std::move(nodes)}});
}

}  // namespace qrm::scheduler
