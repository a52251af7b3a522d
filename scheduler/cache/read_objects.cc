// Reads only the fields that decide about a place, whatever else the object has.
#include "scheduler/cache/read_objects.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/pod_texts.h"
#include "api/quantity.h"
#include "plugins/rules/device_nodes.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// Of a value that is not what it should be. Units: bytes.
constexpr std::size_t kMostShown = 60;

/// The child `key`, or null JSON. Errors: kInvalidArgument when `object` is neither null nor a
/// mapping.
StatusOr<json> Child(const json& object, const char* key) {
  if (!object.is_object() && !object.is_null()) {
    return Errorf(StatusCode::kInvalidArgument, "{} is asked of {}, which is not a mapping", key,
                  Escaped(Cut(object.dump(), kMostShown)));
  }
  const auto found = object.is_null() ? object.end() : object.find(key);
  return found == object.end() ? json() : *found;
}

StatusOr<StringMap> ReadTexts(const json& object, const char* key) {
  QRM_ASSIGN_OR_RETURN(const json texts, Child(object, key));
  StringMap read;
  for (const auto& [name, text] : texts.items()) {
    if (!text.is_string()) {
      return Errorf(StatusCode::kInvalidArgument, "{} {} is {}, which is not a text; quote it", key,
                    Quoted(name), Escaped(Cut(text.dump(), kMostShown)));
    }
    read.emplace(name, text.get<std::string>());
  }
  return read;
}

StatusOr<PodContainer> ReadResources(const json& owner) {
  QRM_ASSIGN_OR_RETURN(const json resources, Child(owner, "resources"));
  QRM_ASSIGN_OR_RETURN(const json requests, Child(resources, "requests"));
  QRM_ASSIGN_OR_RETURN(const json limits, Child(resources, "limits"));
  PodContainer read;
  QRM_ASSIGN_OR_RETURN(read.requests, ReadAmounts(requests));
  QRM_ASSIGN_OR_RETURN(read.limits, ReadAmounts(limits));
  for (const auto& [name, limit] : read.limits) {
    if (!requests.contains(name)) {
      read.requests[name] = limit;
    }
  }
  for (Amounts* amounts : {&read.requests, &read.limits}) {
    std::erase_if(*amounts, [](const auto& amount) { return amount.second == 0; });
  }
  return read;
}

StatusOr<PodContainer::Kind> KindOf(const json& container, const char* list) {
  if (std::string_view(list) == "containers") {
    return PodContainer::Kind::kApp;
  }
  QRM_ASSIGN_OR_RETURN(const std::string policy, ReadText(container, "restartPolicy"));
  return policy == "Always" ? PodContainer::Kind::kSidecar : PodContainer::Kind::kInit;
}

Status ReadContainers(const json& spec, const char* list, Pod& pod) {
  QRM_ASSIGN_OR_RETURN(const json containers, Child(spec, list));
  for (const json& container : containers) {
    QRM_ASSIGN_OR_RETURN(std::string name, ReadText(container, "name"));
    StatusOr<PodContainer> read = ReadResources(container);
    QRM_RETURN_IF_ERROR(Annotate(read.status(), "container " + Quoted(name)));
    read->name = std::move(name);
    QRM_ASSIGN_OR_RETURN(read->kind, KindOf(container, list));
    pod.containers.push_back(*std::move(read));
  }
  return OkStatus();
}

Status ReadSpec(const json& object, Pod& pod) {
  QRM_ASSIGN_OR_RETURN(const json spec, Child(object, "spec"));
  QRM_ASSIGN_OR_RETURN(pod.node, ReadText(spec, "nodeName"));
  QRM_ASSIGN_OR_RETURN(pod.runtime_class, ReadText(spec, "runtimeClassName"));
  QRM_ASSIGN_OR_RETURN(pod.priority_class, ReadText(spec, "priorityClassName"));
  QRM_RETURN_IF_ERROR(ReadContainers(spec, "initContainers", pod));
  QRM_RETURN_IF_ERROR(ReadContainers(spec, "containers", pod));
  QRM_ASSIGN_OR_RETURN(const json overhead, Child(spec, "overhead"));
  QRM_ASSIGN_OR_RETURN(pod.overhead, ReadAmounts(overhead));
  QRM_ASSIGN_OR_RETURN(const PodContainer whole, ReadResources(spec));
  // Of the pod as a whole: only decides the QoS class.
  pod.qos_class = QosClassOf(whole.requests.empty() ? pod.containers : std::vector{whole});
  return OkStatus();
}

/// What `held` has of CPUs and memory counts where it is more than `amounts`.
Status RaiseTo(const json& held, Amounts& amounts) {
  QRM_ASSIGN_OR_RETURN(const Amounts read, ReadAmounts(held));
  for (const char* const name : {"cpu", "memory"}) {
    if (const auto amount = read.find(name); amount != read.end() && amount->second > 0) {
      double& counted = amounts[name];
      counted = std::max(counted, amount->second);
    }
  }
  return OkStatus();
}

/// A container that shrinks has what its status shows until kubelet has carried that out.
Status CountWhatShrinks(const json& status, const char* list, Pod& pod) {
  QRM_ASSIGN_OR_RETURN(const json containers, Child(status, list));
  for (const json& shown : containers) {
    QRM_ASSIGN_OR_RETURN(const std::string name, ReadText(shown, "name"));
    const auto container =
        std::find_if(pod.containers.begin(), pod.containers.end(),
                     [&](const PodContainer& each) { return each.name == name; });
    if (container == pod.containers.end()) {
      continue;
    }
    QRM_ASSIGN_OR_RETURN(const json allocated, Child(shown, "allocatedResources"));
    QRM_ASSIGN_OR_RETURN(const json resources, Child(shown, "resources"));
    QRM_ASSIGN_OR_RETURN(const json requests, Child(resources, "requests"));
    QRM_ASSIGN_OR_RETURN(const json limits, Child(resources, "limits"));
    QRM_RETURN_IF_ERROR(RaiseTo(allocated, container->requests));
    QRM_RETURN_IF_ERROR(RaiseTo(requests, container->requests));
    QRM_RETURN_IF_ERROR(RaiseTo(limits, container->limits));
  }
  return OkStatus();
}

Status ReadStatus(const json& object, Pod& pod) {
  QRM_ASSIGN_OR_RETURN(const json status, Child(object, "status"));
  QRM_RETURN_IF_ERROR(CountWhatShrinks(status, "initContainerStatuses", pod));
  QRM_RETURN_IF_ERROR(CountWhatShrinks(status, "containerStatuses", pod));
  QRM_ASSIGN_OR_RETURN(pod.nominated, ReadText(status, "nominatedNodeName"));
  QRM_ASSIGN_OR_RETURN(const std::string phase, ReadText(status, "phase"));
  pod.finished = phase == "Succeeded" || phase == "Failed";
  const auto conditions = status.find("conditions");
  pod.refused = conditions != status.end() && conditions->is_array() &&
                std::any_of(conditions->begin(), conditions->end(), [](const json& condition) {
                  return TextAt(condition, "/type") == "PodScheduled" &&
                         TextAt(condition, "/reason") == "Unschedulable";
                });
  return OkStatus();
}

/// The kind of the owner that controls the pod.
std::string ControllerOf(const json& meta) {
  const auto owners = meta.find("ownerReferences");
  if (owners == meta.end() || !owners->is_array()) {
    return {};
  }
  for (const json& owner : *owners) {
    if (owner.is_object() && owner.value("controller", json()) == true) {
      return TextAt(owner, "/kind");
    }
  }
  return {};
}

/// As a node passes it to its plugins.
void TellPriority(const json& object, Pod& pod) {
  const json::json_pointer path("/spec/priority");
  pod.annotations.erase(rules::kPodPriorityAnnotation);
  if (object.contains(path) && object.at(path).is_number_integer()) {
    pod.priority = object.at(path).get<int>();
    pod.annotations[rules::kPodPriorityAnnotation] = std::to_string(pod.priority);
  }
  pod.preempts = TextAt(object, "/spec/preemptionPolicy") != "Never";
}

Status ReadPodParts(const json& object, Pod& pod) {
  QRM_ASSIGN_OR_RETURN(const json meta, Child(object, "metadata"));
  QRM_ASSIGN_OR_RETURN(pod.uid, ReadText(meta, "uid"));
  QRM_ASSIGN_OR_RETURN(pod.pod_namespace, ReadText(meta, "namespace"));
  QRM_ASSIGN_OR_RETURN(pod.name, ReadText(meta, "name"));
  QRM_ASSIGN_OR_RETURN(pod.resource_version, ReadText(meta, "resourceVersion"));
  QRM_ASSIGN_OR_RETURN(const StringMap labels, ReadTexts(meta, "labels"));
  pod.labels = PodsOwn(labels);
  QRM_ASSIGN_OR_RETURN(pod.annotations, ReadTexts(meta, "annotations"));
  pod.controller_kind = ControllerOf(meta);
  pod.ending = !TextAt(meta, "/deletionTimestamp").empty();
  TellPriority(object, pod);
  if (pod.uid.empty() || pod.name.empty()) {
    return Errorf(StatusCode::kInvalidArgument, "metadata.{} is missing; add it",
                  pod.uid.empty() ? "uid" : "name");
  }
  QRM_RETURN_IF_ERROR(ReadSpec(object, pod));
  return ReadStatus(object, pod);
}

Status ReadNodeParts(const json& object, Node& node) {
  QRM_ASSIGN_OR_RETURN(const json meta, Child(object, "metadata"));
  QRM_ASSIGN_OR_RETURN(node.name, ReadText(meta, "name"));
  QRM_ASSIGN_OR_RETURN(node.resource_version, ReadText(meta, "resourceVersion"));
  QRM_ASSIGN_OR_RETURN(node.labels, ReadTexts(meta, "labels"));
  QRM_ASSIGN_OR_RETURN(node.annotations, ReadTexts(meta, "annotations"));
  if (node.name.empty()) {
    return Errorf(StatusCode::kInvalidArgument, "metadata.name is missing; add it");
  }
  QRM_ASSIGN_OR_RETURN(const json status, Child(object, "status"));
  QRM_ASSIGN_OR_RETURN(const json allocatable, Child(status, "allocatable"));
  QRM_ASSIGN_OR_RETURN(node.allocatable, ReadAmounts(allocatable));
  return OkStatus();
}

const json* FindAt(const json& body, const std::string& pointer) {
  const json::json_pointer path(pointer);
  return body.contains(path) ? &body.at(path) : nullptr;
}

}  // namespace

StatusOr<std::string> ReadText(const json& object, const char* key) {
  QRM_ASSIGN_OR_RETURN(const json text, Child(object, key));
  if (!text.is_string() && !text.is_null()) {
    return Errorf(StatusCode::kInvalidArgument, "{} is {}, which is not a text; quote it", key,
                  Escaped(Cut(text.dump(), kMostShown)));
  }
  return text.is_null() ? std::string() : text.get<std::string>();
}

StatusOr<Amounts> ReadAmounts(const json& list) {
  Amounts amounts;
  for (const auto& [name, value] : list.items()) {
    StatusOr<double> amount =
        ParseQuantity(value.is_string() ? value.get<std::string>() : value.dump());
    QRM_RETURN_IF_ERROR(Annotate(amount.status(), Quoted(name)));
    amounts[name] = *amount;
  }
  return amounts;
}

StatusOr<Pod> ReadPod(const json& object) {
  Pod pod;
  const Status read = ReadPodParts(object, pod);
  if (!read.ok()) {
    return Annotate(
        read, fmt::format("cannot read pod {}/{}", Quoted(pod.pod_namespace), Quoted(pod.name)));
  }
  return pod;
}

StatusOr<Node> ReadNode(const json& object) {
  Node node;
  const Status read = ReadNodeParts(object, node);
  if (!read.ok()) {
    return Annotate(read, fmt::format("cannot read node {}", Quoted(node.name)));
  }
  return node;
}

std::string TextAt(const json& body, const std::string& pointer) {
  const json* const text = FindAt(body, pointer);
  return text != nullptr && text->is_string() ? text->get<std::string>() : std::string();
}

std::optional<double> AmountAt(const json& body, const std::string& pointer) {
  const json* const value = FindAt(body, pointer);
  if (value == nullptr) {
    return std::nullopt;
  }
  const StatusOr<double> amount =
      ParseQuantity(value->is_string() ? value->get<std::string>() : value->dump());
  return amount.ok() ? std::optional(*amount) : std::nullopt;
}

}  // namespace qrm::scheduler
