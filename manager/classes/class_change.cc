// Finds the pod and container of a change, and checks that the class is available.
#include "manager/classes/class_change.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "api/base/cgroup.h"
#include "api/base/config_key.h"
#include "api/base/errorf.h"
#include "manager/state/pod_selector.h"
#include "plugins/config/class_request.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using checkpoint::PodRecord;
using sdk::ClassLevel;
using sdk::ClassTarget;

namespace {

StatusOr<const OfferedType*> FindMutable(const OfferedTypes& types, const ClassChange& change) {
  const OfferedType* const type = FindType(types, change.type);
  if (type == nullptr) {
    return Errorf(StatusCode::kNotFound, "this node has no type {}; it has {}", change.type,
                  types.empty() ? "none: set qos-classes and class-types"
                                : config::EnumerateWords(config::TypeNames(types), "and"));
  }
  if (!type->type.is_mutable) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "{} cannot change while a container runs; set the class in the pod's annotation "
                  "and recreate the pod",
                  change.type);
  }
  if ((type->type.level == ClassLevel::kPod) != change.container.empty()) {
    return Errorf(StatusCode::kInvalidArgument, "{} {}", change.type,
                  change.container.empty() ? "is given to containers; name one"
                                           : "is given to pods as a whole; name no container");
  }
  return type;
}

Status CheckClass(const NodeState& state, const OfferedType& type, const std::string& name,
                  const ClassAsker& asker) {
  Status may = CheckRoom(state, type, name, asker);
  if (may.ok()) {
    return may;
  }
  std::vector<std::string> names;
  names.reserve(type.type.classes.size());
  for (const sdk::ClassInfo& info : type.type.classes) {
    names.push_back(info.name);
  }
  return Errorf(may.code(), "{} class {}: {}; its classes are {}", type.type.name, name,
                MessageOf(may), config::EnumerateWords(names, "and"));
}

/// The class on record, else the one that the pod's annotations ask for; without target. Nothing is
/// on record of types that were off when the container was created; of immutable types, an empty
/// class is, if the container ran already.
std::optional<WantedClass> WantedBy(const OfferedType& type, const PodRecord& pod,
                                    const std::string& container, const ContainerRecord& record) {
  const std::string& type_name = type.type.name;
  const bool decided = record.classes.contains(type_name);
  const std::string name = ClassOf(record, type_name);
  if (!name.empty()) {
    const bool is_lost = type.type.problem.empty() && type.Find(name) == nullptr;
    return is_lost ? WantedClass{.target = {}, .lost = name}
                   : WantedClass{.target = {}, .name = name};
  }
  if (!decided || !type.type.is_mutable) {
    const auto request =
        config::FindClassRequest(pod.meta.annotations, {type_name, type.type.level}, container);
    if (!request.ok()) {
      const bool is_known = type.type.problem.empty() || !type.type.classes.empty();
      return WantedClass{.target = {},
                         .by = is_known ? MessageOf(request.status()) : type.type.problem};
    }
    if (request->has_value() && !(*request)->name.empty()) {
      return WantedClass{.target = {}, .asked = (*request)->name, .by = (*request)->key};
    }
  }
  return decided ? std::optional(WantedClass()) : std::nullopt;
}

}  // namespace

StatusOr<PlannedClassChange> PlanClassChange(const NodeState& state, const OfferedTypes& types,
                                             const ClassChange& change) {
  QRM_ASSIGN_OR_RETURN(const PodRecord* pod, FindMeantPod(state, change.pod));
  QRM_ASSIGN_OR_RETURN(const OfferedType* type, FindMutable(types, change));
  PlannedClassChange planned{.key = {pod->meta.uid, change.container}};
  for (const auto& [name, record] : pod->containers) {
    if (!change.container.empty() && name != change.container) {
      continue;
    }
    planned.former = ClassOf(*record, change.type);
    if (record->classes.contains(change.type)) {
      planned.before[name] = planned.former;
    }
    planned.change.put_containers.push_back(
        {.pod = pod->meta, .container = name, .record = *record});
    planned.change.put_containers.back().record.classes.Edit()[change.type] = change.name;
  }
  if (planned.change.put_containers.empty()) {
    return Errorf(StatusCode::kNotFound, "pod {} has no container {}; qrmctl pods {} lists them",
                  change.pod, change.container, change.pod);
  }
  if (!change.name.empty() && change.name != planned.former) {
    const ContainerRecord& record = planned.change.put_containers.front().record;
    const ClassAsker asker{.pod = pod->meta,
                           .container = change.container,
                           .type = record.type,
                           .restartable_init = record.restartable_init};
    QRM_RETURN_IF_ERROR(CheckClass(state, *type, change.name, asker));
    QRM_RETURN_IF_ERROR(CheckRivals(types, *type, change.name, *record.classes));
  }
  return planned;
}

StatusOr<ClassTarget> FindClassTarget(const ContainerKey& key, const LiveContainers& live) {
  const auto none = [&] {
    return Errorf(StatusCode::kNotFound, "the runtime has no container {} of pod {}", key.container,
                  key.pod_uid);
  };
  if (!key.container.empty()) {
    const auto found = live.Find(key);
    return found.has_value() && !found->cgroups_path.empty()
               ? StatusOr<ClassTarget>(ClassTarget{key, found->id, found->cgroups_path})
               : none();
  }
  const auto next = live.After(key, 1);
  if (next.empty() || next.front().first.pod_uid != key.pod_uid ||
      next.front().second.cgroups_path.empty()) {
    return none();
  }
  const LiveContainer& container = next.front().second;
  const std::string path = CgroupPath(container.cgroups_path);
  return ClassTarget{key, container.pod_id, path.substr(0, path.rfind('/'))};
}

WantedClasses WantedOf(const OfferedType& type, const NodeState& state,
                       const LiveContainers& live) {
  const bool of_pod = type.type.level == ClassLevel::kPod;
  WantedClasses all;
  state.ForEachPod([&](const PodRecord& pod) {
    // Other containers of a pod may have been created while a type of pods was off.
    const auto decided =
        std::find_if(pod.containers.begin(), pod.containers.end(), [&](const auto& entry) {
          return of_pod && entry.second->classes.contains(type.type.name);
        });
    for (const auto& [container, record] : pod.containers) {
      if (!live.Find({pod.meta.uid, container}).has_value()) {
        continue;
      }
      std::optional<WantedClass> wanted = WantedBy(
          type, pod, container, decided == pod.containers.end() ? *record : *decided->second);
      if (!wanted.has_value()) {
        continue;
      }
      const ContainerKey key{pod.meta.uid, of_pod ? SharedText() : container};
      if (auto target = FindClassTarget(key, live); target.ok()) {
        wanted->target = *std::move(target);
        all[key] = *std::move(wanted);
      }
    }
  });
  return all;
}

std::set<std::string> ClassesInUse(const std::string& type, const NodeState& state) {
  std::set<std::string> classes;
  state.ForEachPod([&](const PodRecord& pod) {
    for (const auto& [container, record] : pod.containers) {
      if (std::string name = ClassOf(*record, type); !name.empty()) {
        classes.insert(std::move(name));
      }
    }
  });
  return classes;
}

}  // namespace qrm::manager
