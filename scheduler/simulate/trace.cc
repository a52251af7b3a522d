// Reads YAML as JSON, so that traces and the API server's answers have one reader.
#include "scheduler/simulate/trace.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "api/base/errorf.h"
#include "api/base/foreign_json.h"
#include "api/base/foreign_yaml.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// So that a slip of the pen does not fill the memory.
constexpr int kMostReplicas = 1'000'000;

/// A trace may have every object of a large cluster, and its user waits for it.
constexpr config::YamlBounds kTraceBounds{
    .bytes = std::size_t{1} << 30, .nodes = 50'000'000, .time = std::chrono::minutes(30)};

/// A plain scalar as JSON reads it, where it does; else a text.
json FromScalar(const YAML::Node& scalar) {
  const std::string& text = scalar.Scalar();
  if (scalar.Tag() == "!") {  // quoted
    return text;
  }
  const StatusOr<json> parsed = ParseJson(text);
  return parsed.ok() && parsed->is_primitive() ? *parsed : json(text);
}

json FromYaml(const YAML::Node& node) {
  if (node.IsScalar()) {
    return FromScalar(node);
  }
  if (node.IsSequence()) {
    json list = json::array();
    for (const YAML::Node& element : node) {
      list.push_back(FromYaml(element));
    }
    return list;
  }
  if (node.IsMap()) {
    json mapping = json::object();
    for (const auto& entry : node) {
      mapping[entry.first.Scalar()] = FromYaml(entry.second);
    }
    return mapping;
  }
  return {};
}

Status Wrong(const std::string& what, const json& value, std::string_view remedy) {
  return Errorf(StatusCode::kInvalidArgument, "{} is {}; {}", what,
                value.is_null() ? "missing" : value.dump().substr(0, 60), remedy);
}

Status CheckKeys(const json& entry, const std::set<std::string>& known) {
  if (!entry.is_object()) {
    return Wrong("it", entry, "write a mapping");
  }
  for (const auto& [key, value] : entry.items()) {
    if (!known.contains(key)) {
      return Errorf(StatusCode::kInvalidArgument, "it has no key '{}'; its keys are {}", key,
                    fmt::join(known, ", "));
    }
  }
  return OkStatus();
}

StatusOr<double> Number(const json& entry, const char* key, double fallback, double most) {
  const json value = entry.value(key, json(fallback));
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > most) {
    return Wrong(key, value, fmt::format("write a number from 0 to {}", most));
  }
  return value.get<double>();
}

/// The same object as often as `entry` says, each under a name of its own.
StatusOr<std::vector<json>> Copies(const json& entry, const char* key) {
  QRM_ASSIGN_OR_RETURN(const double replicas, Number(entry, "replicas", 1, kMostReplicas));
  const json object = entry.value(key, json());
  const std::string name = object.is_object() ? TextAt(object, "/metadata/name") : std::string();
  if (name.empty()) {
    return Wrong(fmt::format("{}.metadata.name", key), json(), "add it");
  }
  std::vector<json> copies(static_cast<std::size_t>(replicas), object);
  for (std::size_t i = 0; entry.contains("replicas") && i < copies.size(); ++i) {
    copies[i]["metadata"]["name"] = fmt::format("{}-{}", name, i);
  }
  return copies;
}

Status AddNodes(const json& entry, Trace& trace) {
  QRM_RETURN_IF_ERROR(CheckKeys(entry, {"replicas", "node"}));
  QRM_ASSIGN_OR_RETURN(const std::vector<json> copies, Copies(entry, "node"));
  for (const json& copy : copies) {
    QRM_ASSIGN_OR_RETURN(Node node, ReadNode(copy));
    node.resource_version.clear();
    trace.nodes.push_back(std::move(node));
  }
  return OkStatus();
}

Status AddPods(const json& entry, Trace& trace) {
  QRM_RETURN_IF_ERROR(CheckKeys(entry, {"at", "lifetime", "replicas", "pod"}));
  constexpr double kForever = 1e9;
  TracePod traced;
  QRM_ASSIGN_OR_RETURN(traced.at, Number(entry, "at", 0, kForever));
  if (entry.contains("lifetime")) {
    QRM_ASSIGN_OR_RETURN(traced.lifetime, Number(entry, "lifetime", 0, kForever));
  }
  QRM_ASSIGN_OR_RETURN(std::vector<json> copies, Copies(entry, "pod"));
  for (json& copy : copies) {
    const std::string in = TextAt(copy, "/metadata/namespace");
    copy["metadata"]["namespace"] = in.empty() ? "default" : in;
    if (TextAt(copy, "/metadata/uid").empty() || entry.contains("replicas")) {
      copy["metadata"]["uid"] =
          fmt::format("{}/{}", TextAt(copy, "/metadata/namespace"), TextAt(copy, "/metadata/name"));
    }
    QRM_ASSIGN_OR_RETURN(traced.pod, ReadPod(copy));
    traced.pod.resource_version.clear();
    trace.pods.push_back(traced);
  }
  return OkStatus();
}

Status AddObjects(const json& objects, Trace& trace) {
  for (const auto& [resource, list] : objects.items()) {
    if (!list.is_array()) {
      return Wrong("objects." + resource, list, "write a list of objects");
    }
    for (const json& body : list) {
      const std::string name = body.is_object() ? TextAt(body, "/metadata/name") : std::string();
      if (name.empty()) {
        return Wrong(fmt::format("objects.{}: metadata.name", resource), json(), "add it");
      }
      trace.objects[resource].push_back({.name = name, .body = std::make_shared<const json>(body)});
    }
  }
  return OkStatus();
}

using Adder = Status (*)(const json& entry, Trace& trace);

Status AddEach(const json& document, const char* key, Adder add, Trace& trace) {
  const json list = document.value(key, json::array());
  if (!list.is_array()) {
    return Wrong(key, list, "write a list");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    QRM_RETURN_IF_ERROR(Annotate(add(list[i], trace), fmt::format("{}[{}]", key, i)));
  }
  return OkStatus();
}

Status CheckNames(const Trace& trace) {
  std::set<std::string> seen;
  for (const Node& node : trace.nodes) {
    if (!seen.insert("node " + node.name).second) {
      return Errorf(StatusCode::kInvalidArgument, "node {} is there twice; rename one", node.name);
    }
  }
  for (const TracePod& traced : trace.pods) {
    if (!seen.insert("pod " + traced.pod.uid).second) {
      return Errorf(StatusCode::kInvalidArgument,
                    "pod {}/{} is there twice; rename one, or give them UIDs",
                    traced.pod.pod_namespace, traced.pod.name);
    }
  }
  return OkStatus();
}

Status Fill(const json& document, Trace& trace) {
  QRM_RETURN_IF_ERROR(CheckKeys(document, {"nodes", "objects", "pods"}));
  QRM_RETURN_IF_ERROR(AddEach(document, "nodes", AddNodes, trace));
  QRM_RETURN_IF_ERROR(AddObjects(document.value("objects", json::object()), trace));
  QRM_RETURN_IF_ERROR(AddEach(document, "pods", AddPods, trace));
  std::stable_sort(trace.pods.begin(), trace.pods.end(),
                   [](const TracePod& a, const TracePod& b) { return a.at < b.at; });
  return CheckNames(trace);
}

}  // namespace

StatusOr<Trace> ReadTrace(const std::string& text, const std::string& file) {
  QRM_ASSIGN_OR_RETURN(const YAML::Node document, config::ParseYaml(text, file, kTraceBounds));
  Trace trace;
  QRM_RETURN_IF_ERROR(Annotate(Fill(FromYaml(document), trace), "cannot read " + file));
  return trace;
}

}  // namespace qrm::scheduler
