// Reads the wanted fields of a document without assuming that any value has the expected type.
#include "tools/qrmctl/pod_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "api/base/errorf.h"
#include "api/base/foreign_yaml.h"
#include "api/base/number.h"
#include "api/proto/core/v1/pod.pb.h"
#include "api/quantity.h"

namespace qrm::manager::cli {
namespace {

namespace core = ::k8s::io::api::core::v1;
using google::protobuf::RepeatedPtrField;

/// The largest object that etcd takes.
constexpr std::size_t kMaxBytes = 3 << 19;

/// A kind of object that has a pod, and where in it.
struct PodHolder {
  std::string_view kind;
  std::string_view owner;  ///< the kind that owns its pods; empty for none
  std::array<std::string_view, 4> path;
};

constexpr std::array<PodHolder, 7> kHolders = {{
    {"Pod", "", {}},
    {"Deployment", "ReplicaSet", {"spec", "template"}},
    {"DaemonSet", "DaemonSet", {"spec", "template"}},
    {"StatefulSet", "StatefulSet", {"spec", "template"}},
    {"ReplicaSet", "ReplicaSet", {"spec", "template"}},
    {"Job", "Job", {"spec", "template"}},
    {"CronJob", "Job", {"spec", "jobTemplate", "spec", "template"}},
}};

/// A node and its position in the document. Missing parts are null nodes; what is below a value of
/// the wrong type has that error. It is copied, never assigned to: that would change the document.
class Place {
 public:
  Place(const YAML::Node& node, const std::string& file, std::string path = "")
      : node_(node), file_(&file), path_(std::move(path)) {}

  bool IsNull() const { return node_.IsNull(); }

  /// Of a mapping or null.
  Place At(std::string_view key) const {
    const bool has_fields = IsNull() || node_.IsMap();
    Place field(IsNull() || !has_fields ? YAML::Node() : Child(std::string(key)), *file_,
                path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
    field.problem_ =
        has_fields ? problem_ : Wrong("which is not a mapping", "write fields below it");
    return field;
  }

  /// The scalar's text; empty when it is null.
  StatusOr<std::string> Text() const {
    QRM_RETURN_IF_ERROR(problem_);
    if (IsNull()) {
      return std::string();
    }
    return node_.IsScalar() ? StatusOr<std::string>(node_.Scalar())
                            : Wrong("which is not a text", "write a text");
  }
  StatusOr<std::string> TextAt(std::string_view key) const { return At(key).Text(); }

  /// The elements; none when it is null.
  StatusOr<std::vector<Place>> Elements() const {
    QRM_RETURN_IF_ERROR(problem_);
    std::vector<Place> elements;
    if (!IsNull() && !node_.IsSequence()) {
      return Wrong("which is not a list", "write a list");
    }
    for (const YAML::Node& element : node_) {
      elements.emplace_back(element, *file_, fmt::format("{}[{}]", path_, elements.size()));
    }
    return elements;
  }

  /// The entries of a mapping by their keys; none when it is null.
  StatusOr<std::vector<std::pair<std::string, Place>>> Entries() const {
    QRM_RETURN_IF_ERROR(problem_);
    std::vector<std::pair<std::string, Place>> entries;
    if (!IsNull() && !node_.IsMap()) {
      return Wrong("which is not a mapping", "write NAME: VALUE lines");
    }
    for (const auto& entry : node_) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      entries.emplace_back(name, Place(entry.second, *file_, fmt::format("{}.{}", path_, name)));
    }
    return entries;
  }

  /// A sentence about the value.
  Status Wrong(std::string_view problem, std::string_view remedy) const {
    constexpr std::size_t kShown = 60;
    const std::string value = node_.IsScalar()     ? node_.Scalar().substr(0, kShown)
                              : node_.IsSequence() ? "a list"
                              : node_.IsMap()      ? "a mapping"
                                                   : "missing";
    return Errorf(StatusCode::kInvalidArgument, "cannot read {}{}: {} is {}, {}; {}", *file_,
                  Line(), path_.empty() ? "the document" : path_,
                  node_.IsScalar() ? "'" + value + "'" : value, problem, remedy);
  }
  /// A sentence about a field that is not there.
  Status Missing(std::string_view field) const {
    return Errorf(StatusCode::kInvalidArgument, "cannot read {}{}: {}{}{} is missing; add it",
                  *file_, Line(), path_, path_.empty() ? "" : ".", field);
  }

  /// True for what YAML reads as a number or truth value: Kubernetes takes no such text.
  bool ReadsAsOther() const {
    double number = 0;
    bool flag = false;
    return node_.IsScalar() && node_.Tag() == "?" &&
           (YAML::convert<double>::decode(node_, number) ||
            YAML::convert<bool>::decode(node_, flag));
  }

 private:
  YAML::Node Child(const std::string& key) const {
    const YAML::Node& node = node_;  // looking up must not add the key
    const YAML::Node child = node[key];
    return child.IsDefined() ? child : YAML::Node();
  }
  std::string Line() const {
    const YAML::Mark mark = node_.Mark();
    return mark.is_null() ? "" : fmt::format(":{}", mark.line + 1);
  }

  YAML::Node node_;
  const std::string* file_;
  std::string path_;
  Status problem_;
};

enum class ValuesAre { kTexts, kQuantities };

/// Calls `put(name, text)` for each entry.
template <typename Put>
Status ReadValues(const Place& place, ValuesAre values, Put put) {
  QRM_ASSIGN_OR_RETURN(const auto entries, place.Entries());
  for (const auto& [name, value] : entries) {
    QRM_ASSIGN_OR_RETURN(std::string text, value.Text());
    if (values == ValuesAre::kTexts && value.ReadsAsOther()) {
      return value.Wrong("which is not a text", "put it in quotes");
    }
    if (values == ValuesAre::kQuantities && !ParseQuantity(text).ok()) {
      return value.Wrong("which is not a quantity", "write one such as 2, 500m or 1Gi");
    }
    put(name, std::move(text));
  }
  return OkStatus();
}

Status ReadResources(const Place& place, core::ResourceRequirements& resources) {
  const auto into = [](google::protobuf::Map<std::string, core::Quantity>& quantities) {
    return [&quantities](const std::string& name, std::string text) {
      quantities[name].set_string(std::move(text));
    };
  };
  QRM_RETURN_IF_ERROR(ReadValues(place.At("requests"), ValuesAre::kQuantities,
                                 into(*resources.mutable_requests())));
  return ReadValues(place.At("limits"), ValuesAre::kQuantities, into(*resources.mutable_limits()));
}

Status ReadContainer(const Place& place, core::Container& container) {
  QRM_ASSIGN_OR_RETURN(*container.mutable_name(), place.TextAt("name"));
  if (container.name().empty()) {
    return place.Missing("name");
  }
  QRM_ASSIGN_OR_RETURN(*container.mutable_restart_policy(), place.TextAt("restartPolicy"));
  return ReadResources(place.At("resources"), *container.mutable_resources());
}

Status ReadContainers(const Place& place, RepeatedPtrField<core::Container>& containers) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Place> elements, place.Elements());
  for (const Place& element : elements) {
    QRM_RETURN_IF_ERROR(ReadContainer(element, *containers.Add()));
  }
  return OkStatus();
}

Status ReadPriority(const Place& place, core::PodSpec& spec) {
  QRM_ASSIGN_OR_RETURN(const std::string text, place.Text());
  if (text.empty()) {
    return OkStatus();
  }
  const auto priority = ParseNumber<int>(text);
  if (!priority.has_value()) {
    return place.Wrong("which is not a priority", "write a whole number such as 9000");
  }
  spec.set_priority(*priority);
  return OkStatus();
}

Status ReadSpec(const Place& place, core::PodSpec& spec) {
  QRM_RETURN_IF_ERROR(ReadContainers(place.At("initContainers"), *spec.mutable_init_containers()));
  QRM_RETURN_IF_ERROR(ReadContainers(place.At("containers"), *spec.mutable_containers()));
  if (spec.containers().empty()) {
    return place.Missing("containers");
  }
  QRM_ASSIGN_OR_RETURN(*spec.mutable_priority_class_name(), place.TextAt("priorityClassName"));
  QRM_ASSIGN_OR_RETURN(*spec.mutable_runtime_class_name(), place.TextAt("runtimeClassName"));
  QRM_RETURN_IF_ERROR(ReadPriority(place.At("priority"), spec));
  return ReadResources(place.At("resources"), *spec.mutable_resources());
}

Status ReadLabels(const Place& metadata, core::ObjectMeta& meta) {
  const auto into = [](google::protobuf::Map<std::string, std::string>& texts) {
    return [&texts](const std::string& name, std::string text) { texts[name] = std::move(text); };
  };
  QRM_RETURN_IF_ERROR(
      ReadValues(metadata.At("labels"), ValuesAre::kTexts, into(*meta.mutable_labels())));
  return ReadValues(metadata.At("annotations"), ValuesAre::kTexts,
                    into(*meta.mutable_annotations()));
}

Status ReadOwners(const Place& place, core::ObjectMeta& meta) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Place> owners, place.Elements());
  for (const Place& owner : owners) {
    QRM_ASSIGN_OR_RETURN(const std::string controller, owner.TextAt("controller"));
    core::OwnerReference& reference = *meta.add_owner_references();
    QRM_ASSIGN_OR_RETURN(*reference.mutable_kind(), owner.TextAt("kind"));
    reference.set_controller(controller == "true");
  }
  return OkStatus();
}

/// Who the pod is, by the metadata of the object that holds it.
Status ReadIdentity(const Place& metadata, core::ObjectMeta& meta) {
  QRM_ASSIGN_OR_RETURN(*meta.mutable_name(), metadata.TextAt("name"));
  if (meta.name().empty()) {
    QRM_ASSIGN_OR_RETURN(*meta.mutable_name(), metadata.TextAt("generateName"));
  }
  if (meta.name().empty()) {
    return metadata.Missing("name");
  }
  QRM_ASSIGN_OR_RETURN(*meta.mutable_namespace_(), metadata.TextAt("namespace"));
  if (meta.namespace_().empty()) {
    meta.set_namespace_("default");
  }
  return ReadOwners(metadata.At("ownerReferences"), meta);
}

StatusOr<PodHolder> HolderOf(const Place& document) {
  const Place place = document.At("kind");
  QRM_ASSIGN_OR_RETURN(const std::string kind, place.Text());
  const auto* found = std::find_if(kHolders.begin(), kHolders.end(),
                                   [&](const PodHolder& holder) { return holder.kind == kind; });
  if (kind.empty()) {
    return document.Missing("kind");
  }
  if (found == kHolders.end()) {
    return place.Wrong("which has no pod",
                       "give a Pod, or a Deployment, DaemonSet, StatefulSet, ReplicaSet, Job or "
                       "CronJob");
  }
  return *found;
}

StatusOr<std::vector<std::string>> ReadTexts(const Place& place) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Place> elements, place.Elements());
  std::vector<std::string> texts;
  for (const Place& element : elements) {
    QRM_ASSIGN_OR_RETURN(texts.emplace_back(), element.Text());
  }
  return texts;
}

StatusOr<std::vector<Program>> ReadPrograms(const Place& spec) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Place> elements, spec.At("containers").Elements());
  std::vector<Program> programs;
  for (const Place& element : elements) {
    Program& program = programs.emplace_back();
    QRM_ASSIGN_OR_RETURN(program.image, element.TextAt("image"));
    QRM_ASSIGN_OR_RETURN(program.command, ReadTexts(element.At("command")));
    QRM_ASSIGN_OR_RETURN(program.args, ReadTexts(element.At("args")));
  }
  return programs;
}

StatusOr<PodFile> ReadObject(const Place& document) {
  QRM_ASSIGN_OR_RETURN(const PodHolder holder, HolderOf(document));
  PodFile file{.pod = std::make_shared<core::Pod>()};
  core::Pod& pod = *file.pod;
  core::ObjectMeta& meta = *pod.mutable_metadata();
  QRM_RETURN_IF_ERROR(ReadIdentity(document.At("metadata"), meta));
  std::vector<Place> way = {document};
  for (const std::string_view step : holder.path) {
    if (!step.empty()) {
      way.push_back(way.back().At(step));
    }
  }
  if (!holder.owner.empty()) {
    meta.clear_owner_references();
    core::OwnerReference& owner = *meta.add_owner_references();
    owner.set_kind(std::string(holder.owner));
    owner.set_controller(true);
  }
  QRM_RETURN_IF_ERROR(ReadLabels(way.back().At("metadata"), meta));
  QRM_RETURN_IF_ERROR(ReadSpec(way.back().At("spec"), *pod.mutable_spec()));
  QRM_ASSIGN_OR_RETURN(file.programs, ReadPrograms(way.back().At("spec")));
  return file;
}

bool IsUtf8(const std::string& bytes) {
  try {
    (void)nlohmann::json(bytes).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

StatusOr<std::string> ReadText(std::istream& text, const std::string& file) {
  std::string bytes(kMaxBytes + 1, '\0');
  text.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(text.gcount()));
  if (text.bad() || (text.fail() && !text.eof())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read {}: no such file, or no right to; check the path", file);
  }
  if (bytes.size() > kMaxBytes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read {}: it has more than {} bytes, which is more than Kubernetes takes; "
                  "give one pod",
                  file, kMaxBytes);
  }
  if (!IsUtf8(bytes)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read {}: it is not UTF-8 text; save it as UTF-8", file);
  }
  return bytes;
}

/// The one document of the text. Errors: as ReadPod.
StatusOr<YAML::Node> LoadOne(const std::string& text, const std::string& file) {
  QRM_ASSIGN_OR_RETURN(std::vector<YAML::Node> documents, config::ParseYamlDocuments(text, file));
  documents.erase(std::remove_if(documents.begin(), documents.end(),
                                 [](const YAML::Node& node) { return node.IsNull(); }),
                  documents.end());
  if (documents.size() != 1) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read {}: it has {} documents; give one pod",
                  file, documents.size());
  }
  return documents.front();
}

}  // namespace

StatusOr<PodFile> ReadPod(std::istream& text, const std::string& file) {
  QRM_ASSIGN_OR_RETURN(const std::string bytes, ReadText(text, file));
  QRM_ASSIGN_OR_RETURN(const YAML::Node document, LoadOne(bytes, file));
  try {
    return ReadObject(Place(document, file));
  } catch (const YAML::Exception& error) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read {}:{}: {}; give YAML or JSON", file,
                  error.mark.line + 1, error.msg);
  }
}

StatusOr<PodFile> ReadPodAt(const std::string& path) {
  if (path == "-") {
    return ReadPod(std::cin, "standard input");
  }
  std::ifstream file(path, std::ios::binary);
  return ReadPod(file, path);
}

}  // namespace qrm::manager::cli
