// Looks up requested classes, checks permissions, and counts users.
#include "manager/classes/class_choice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/glob.h"
#include "checkpoint/holdings.h"
#include "plugins/config/class_request.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using checkpoint::PodRecord;
using sdk::ClassInfo;
using sdk::ClassLevel;

namespace {

using checkpoint::ClassHolders;
using checkpoint::ClassUsers;
using config::ClassRequest;

ClassHolders HoldersOf(const PodRecord& pod, const OfferedType& type, const std::string& name,
                       const std::string& without = {}) {
  ClassHolders holders;
  for (const auto& [container, record] : pod.containers) {
    if (container != without && ClassOf(*record, type.type.name) == name) {
      holders.Add(*record);
    }
  }
  return holders;
}

uint64_t CountOf(const ClassUsers& users, const OfferedType& type) {
  return type.type.level == ClassLevel::kPod ? users.pods : users.containers;
}

/// The number of users if the asker had the class, too.
uint64_t CountWith(const NodeState& state, const OfferedType& type, const std::string& name,
                   const ClassAsker& asker) {
  const PodRecord* pod = state.FindPod(asker.pod.uid);
  ClassHolders with;
  uint64_t before = 0;
  if (pod != nullptr) {
    with = HoldersOf(*pod, type, name, asker.container);
    before = CountOf(HoldersOf(*pod, type, name).AtOnce(), type);
  }
  with.Add(asker.type, asker.restartable_init);
  return CountUsers(state, type, name) - before + CountOf(with.AtOnce(), type);
}

/// The pod-level class by the record of the pod's first container.
std::optional<std::string> ClassOfPod(const NodeState& state, const ClassAsker& asker,
                                      const OfferedType& type) {
  const PodRecord* pod = state.FindPod(asker.pod.uid);
  if (pod == nullptr || type.type.level != ClassLevel::kPod || pod->containers.empty()) {
    return std::nullopt;
  }
  const auto& classes = pod->containers.begin()->second->classes;
  const auto found = classes.find(type.type.name);
  return found == classes.end() ? std::nullopt : std::optional(found->second);
}

/// The choice for one type in one admission.
class Chooser {
 public:
  Chooser(const OfferedType& type, const ClassAsker& asker, const NodeState& state,
          const ClassPermission& may_ask)
      : type_(type), asker_(asker), state_(state), may_ask_(may_ask) {}

  /// Whether Choose returned a default, or nothing.
  bool IsDefault() const { return is_default_; }

  /// Absent if the asker gets no class of the type.
  StatusOr<std::optional<ChosenClass>> Choose() {
    if (const auto of_pod = ClassOfPod(state_, asker_, type_); of_pod.has_value()) {
      return std::optional(ChosenClass{*of_pod, "the pod's other containers"});
    }
    const StatusOr<std::optional<ClassRequest>> found = config::FindClassRequest(
        asker_.pod.annotations, {type_.type.name, type_.type.level}, asker_.container);
    if (!found.ok() && type_.type.classes.empty() && !type_.type.problem.empty()) {
      // The level of a plugin that has not registered is not known: it may differ from the default.
      return Errorf(StatusCode::kFailedPrecondition, "cannot choose a class of {}: {}",
                    type_.type.name, type_.type.problem);
    }
    QRM_ASSIGN_OR_RETURN(const std::optional<ClassRequest> request, found);
    const bool too_late = asker_.runs && !type_.type.is_mutable;
    is_default_ = !request.has_value();
    if (is_default_) {
      return too_late ? std::nullopt : Default();
    }
    if (too_late && !request->name.empty()) {
      QRM_RETURN_IF_ERROR(CheckRequest(*request));
      return std::optional(ChosenClass{"", request->key + ", which comes too late"});
    }
    if (!request->name.empty()) {
      QRM_RETURN_IF_ERROR(CheckRequest(*request));
    }
    return std::optional(ChosenClass{request->name, request->key});
  }

 private:
  std::optional<ChosenClass> Default() const {
    const ClassTypeRules& rules = *type_.rules;
    ChosenClass chosen{rules.default_class, "the default of " + type_.type.name};
    const std::string& pod_namespace = asker_.pod.pod_namespace;
    if (const auto placed = asker_.defaults.find(type_.type.name);
        placed != asker_.defaults.end() && !asker_.is_skipped) {
      chosen = {placed->second, asker_.defaults_by};
    } else if (const auto of = rules.namespace_defaults.find(pod_namespace);
               of != rules.namespace_defaults.end()) {
      chosen = {of->second, "the default of namespace " + pod_namespace};
    } else if (asker_.is_skipped) {
      return std::nullopt;
    } else if (const auto qos = rules.qos_defaults.find(asker_.pod.qos_class);
               qos != rules.qos_defaults.end()) {
      chosen = {qos->second, "the default of " + asker_.pod.qos_class + " pods"};
    }
    const bool has = !chosen.name.empty() && CheckRoom(state_, type_, chosen.name, asker_).ok();
    return has ? std::optional(std::move(chosen)) : std::nullopt;
  }

  Status CheckRequest(const ClassRequest& request) const {
    Status may = CheckRoom(state_, type_, request.name, asker_);
    if (may.ok() && !MayAsk(request.name)) {
      may = Errorf(StatusCode::kPermissionDenied, "namespace {} may not ask for it",
                   Quoted(asker_.pod.pod_namespace));
    }
    if (may.ok()) {
      return may;
    }
    return Errorf(may.code(), "{} asks for {} class {}, but {}; {}", request.key, type_.type.name,
                  request.name, MessageOf(may), Cure());
  }

  bool MayAsk(const std::string& name) const {
    return type_.IsOpenTo(name, asker_.pod) || may_ask_(type_.type.name + "/" + name);
  }

  /// The classes that the asker could have instead.
  std::string Cure() const {
    std::vector<std::string> usable;
    for (const ClassInfo& info : type_.type.classes) {
      if (MayAsk(info.name) && CheckRoom(state_, type_, info.name, asker_).ok()) {
        usable.push_back(info.name);
      }
    }
    return usable.empty() ? "no class of this type is available now: remove the annotation"
                          : fmt::format("it may use {}", fmt::join(usable, ", "));
  }

  const OfferedType& type_;
  const ClassAsker& asker_;
  const NodeState& state_;
  const ClassPermission& may_ask_;
  bool is_default_ = false;
};

}  // namespace

const ClassInfo* OfferedType::Find(const std::string& name) const {
  const auto found = std::find_if(type.classes.begin(), type.classes.end(),
                                  [&](const ClassInfo& info) { return info.name == name; });
  return found == type.classes.end() ? nullptr : &*found;
}

uint64_t OfferedType::CapacityOf(const ClassInfo& info) const {
  const auto rule = rules->classes.find(info.name);
  const uint64_t set = rule == rules->classes.end() ? 0 : rule->second.capacity;
  return set == 0 || info.capacity == 0 ? std::max(set, info.capacity)
                                        : std::min(set, info.capacity);
}

bool OfferedType::IsOpenTo(const std::string& name, const checkpoint::PodMeta& pod) const {
  const auto rule = rules->classes.find(name);
  return rule != rules->classes.end() &&
         (MatchesAnyGlob(rule->second.namespaces, pod.pod_namespace) ||
          (rule->second.HasRightsOfApiServer() && !IsStaticPod(pod)));
}

bool IsStaticPod(const checkpoint::PodMeta& pod) {
  const auto source = pod.annotations.find("kubernetes.io/config.source");
  return source != pod.annotations.end() && source->second != "api";
}

const OfferedType* FindType(const OfferedTypes& types, const std::string& name) {
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const OfferedType& type) { return type.type.name == name; });
  return found == types.end() ? nullptr : &*found;
}

std::string ClassOf(const ContainerRecord& record, const std::string& type) {
  const auto found = record.classes.find(type);
  return found == record.classes.end() ? std::string() : found->second;
}

uint64_t CountUsers(const NodeState& state, const OfferedType& type, const std::string& name) {
  const auto found = state.class_use().find({type.type.name, name});
  return found == state.class_use().end() ? 0 : CountOf(found->second, type);
}

Status CheckRoom(const NodeState& state, const OfferedType& type, const std::string& name,
                 const ClassAsker& asker) {
  const ClassInfo* info = type.Find(name);
  if (info == nullptr) {
    return Errorf(StatusCode::kNotFound, "{}",
                  type.type.problem.empty() ? "the node has no such class" : type.type.problem);
  }
  if (const std::string& problem = type.type.problem.empty() ? info->problem : type.type.problem;
      !problem.empty()) {
    return Errorf(StatusCode::kFailedPrecondition, "{}", problem);
  }
  const uint64_t capacity = type.CapacityOf(*info);
  if (capacity != 0 && CountWith(state, type, name, asker) > capacity) {
    return Errorf(StatusCode::kResourceExhausted, "the class is full (capacity {})", capacity);
  }
  return OkStatus();
}

Status CheckMayAsk(const OfferedTypes& types, const checkpoint::PodMeta& pod,
                   const ClassPermission& may_ask) {
  QRM_RETURN_IF_ERROR(config::CheckClassTypes(pod.annotations, config::TypeNames(types)));
  for (const OfferedType& type : types) {
    QRM_ASSIGN_OR_RETURN(const auto requests,
                         config::AllClassRequests(pod.annotations, type.type.name));
    for (const config::ClassAnnotation* const request : requests) {
      const std::string& name = request->second;
      if (!name.empty() && !type.IsOpenTo(name, pod) && !may_ask(type.type.name + "/" + name)) {
        return Errorf(StatusCode::kPermissionDenied,
                      "{} asks for {} class {}, but namespace {} may not ask for it; remove it "
                      "from the pod, or allow the class in a rule of permissions",
                      config::ShownAnnotation(*request), type.type.name, Quoted(name),
                      Quoted(pod.pod_namespace));
      }
    }
  }
  return OkStatus();
}

Status CheckRivals(const OfferedTypes& types, const OfferedType& type, const std::string& name,
                   const StringMap& others) {
  const ClassInfo* const info = type.Find(name);
  if (info == nullptr || info->files.empty()) {
    return OkStatus();
  }
  for (const OfferedType& other : types) {
    const auto found = others.find(other.type.name);
    const ClassInfo* const rival = found == others.end() ? nullptr : other.Find(found->second);
    if (rival == nullptr || &other == &type || other.type.level != type.type.level) {
      continue;
    }
    const auto file = std::find_if(info->files.begin(), info->files.end(),
                                   [&](const auto& each) { return rival->files.contains(each); });
    if (file != info->files.end()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "classes of {} and of {} both set {}, so that {} and {} cannot be given "
                    "together; ask for only one of them",
                    type.type.name, other.type.name, *file, name, rival->name);
    }
  }
  return OkStatus();
}

StringMap ToRecord(const ChosenClasses& classes) {
  StringMap record;
  for (const auto& [type, chosen] : classes) {
    record.emplace(type, chosen.name);
  }
  return record;
}

StatusOr<ChosenClasses> ChooseClasses(const OfferedTypes& types, const ClassAsker& asker,
                                      const NodeState& state, const ClassPermission& may_ask) {
  ChosenClasses chosen;
  StringMap record;
  std::vector<std::pair<const OfferedType*, ChosenClass>> defaults;
  for (const OfferedType& type : types) {
    Chooser chooser(type, asker, state, may_ask);
    QRM_ASSIGN_OR_RETURN(std::optional<ChosenClass> one, chooser.Choose());
    if (!one.has_value()) {
      continue;
    }
    if (chooser.IsDefault()) {
      defaults.emplace_back(&type, *std::move(one));
      continue;
    }
    if (const Status alone = CheckRivals(types, type, one->name, record); !alone.ok()) {
      return Annotate(alone, "cannot do what " + one->by + " asks for");
    }
    record.emplace(type.type.name, one->name);
    chosen.emplace(type.type.name, *std::move(one));
  }
  for (auto& [type, one] : defaults) {
    if (CheckRivals(types, *type, one.name, record).ok()) {
      record.emplace(type->type.name, one.name);
      chosen.emplace(type->type.name, std::move(one));
    }
  }
  QRM_RETURN_IF_ERROR(CheckMayAsk(types, asker.pod, may_ask));
  return chosen;
}

}  // namespace qrm::manager
