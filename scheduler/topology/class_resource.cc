// Counts pods by what their annotations ask for, as the node does by its records.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoint/holdings.h"
#include "plugins/config/class_request.h"
#include "scheduler/topology/class_offer.h"
#include "scheduler/topology/node_texts.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

using ClassOfferPtr = std::shared_ptr<const ClassOffer>;

using Kind = PodContainer::Kind;

/// Class -> how many places of it a pod takes.
using Uses = std::map<std::string, int64_t>;

/// What `pod` asks for of `type`. Errors: those of FindClassRequest.
StatusOr<Uses> UsesOf(const Pod& pod, const config::ClassTypeName& type) {
  std::map<std::string, checkpoint::ClassHolders> holders;
  for (const PodContainer& container : pod.containers) {
    QRM_ASSIGN_OR_RETURN(const auto request,
                         config::FindClassRequest(pod.annotations, type, container.name));
    if (request.has_value() && !request->name.empty()) {
      holders[request->name].Add(
          container.kind == Kind::kInit ? ContainerType::kInit : ContainerType::kMain,
          /*restartable_init=*/false);
    }
  }
  Uses uses;
  for (const auto& [name, of_class] : holders) {
    const checkpoint::ClassUsers users = of_class.AtOnce();
    uses[name] =
        static_cast<int64_t>(type.level == sdk::ClassLevel::kPod ? users.pods : users.containers);
  }
  return uses;
}

/// Spares most pods the search for each type and container.
bool MayAskForClasses(const Pod& pod) {
  return std::ranges::any_of(pod.annotations,
                             [](const auto& each) { return config::IsClassKey(each.first); });
}

class ClassResource final : public ExtendedResource {
 public:
  explicit ClassResource(ClassOfferPtr offer) : offer_(std::move(offer)) {}

  void AddPod(const Pod& pod) override { Take(pod, 1); }
  void RemovePod(const Pod& pod) override { Take(pod, -1); }

  Admission AdmitPod(const Pod& pod) const override {
    if (!MayAskForClasses(pod)) {
      return {};
    }
    if (!config::CheckClassTypes(pod.annotations, config::TypeNames(offer_->types)).ok()) {
      return {.refusal = "the node has no such type of classes"};
    }
    std::vector<std::string> containers;
    containers.reserve(pod.containers.size());
    for (const PodContainer& container : pod.containers) {
      containers.push_back(container.name);
    }
    if (!config::CheckClassContainers(pod.annotations, containers).ok()) {
      return {.refusal = "a class key names a container that the pod does not have"};
    }
    for (const OfferedClassType& type : offer_->types) {
      if (std::string refusal = RefusalOf(pod, type); !refusal.empty()) {
        return {.refusal = std::move(refusal)};
      }
    }
    return {};
  }

  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<ClassResource>(*this);
  }
  nlohmann::json Dump() const override { return taken_; }

 private:
  std::string RefusalOf(const Pod& pod, const OfferedClassType& type) const {
    const std::string& type_name = type.type.name;
    const StatusOr<Uses> uses = UsesOf(pod, type.type);
    if (!uses.ok()) {
      return fmt::format("its annotations for {} contradict each other or name no class",
                         type_name);
    }
    for (const auto& [name, count] : *uses) {
      const auto offered = type.classes.find(name);
      if (offered == type.classes.end()) {
        return fmt::format("the node has no such class of {}", type_name);
      }
      if (offered->second.capacity != 0 &&
          TakenOf(type_name, name) + count > offered->second.capacity) {
        return fmt::format("all places of the class of {} are taken", type_name);
      }
    }
    return RefusalOfKeys(pod, type);
  }

  /// Of all keys, for whichever container.
  std::string RefusalOfKeys(const Pod& pod, const OfferedClassType& type) const {
    const std::string& type_name = type.type.name;
    const auto requests = config::AllClassRequests(pod.annotations, type_name);
    if (!requests.ok()) {
      return fmt::format("it has a key for {} that no container reads", type_name);
    }
    for (const config::ClassAnnotation* const request : *requests) {
      const std::string& name = request->second;
      const auto offered = type.classes.find(name);
      if (!name.empty() &&
          !offer_->MayAsk(pod.pod_namespace, type_name, name,
                          offered == type.classes.end() ? OfferedClass() : offered->second)) {
        return fmt::format("its namespace may not ask for that class of {} there", type_name);
      }
    }
    return {};
  }

  int64_t TakenOf(const std::string& type, const std::string& name) const {
    const auto found = taken_.find(type + "/" + name);
    return found == taken_.end() ? 0 : found->second;
  }

  void Take(const Pod& pod, int64_t times) {
    if (!MayAskForClasses(pod)) {
      return;
    }
    for (const OfferedClassType& type : offer_->types) {
      for (const auto& [name, count] : UsesOf(pod, type.type).value_or(Uses())) {
        const auto taken = taken_.try_emplace(type.type.name + "/" + name).first;
        taken->second += times * count;
        if (taken->second == 0) {
          taken_.erase(taken);
        }
      }
    }
  }

  ClassOfferPtr offer_;
  std::map<std::string, int64_t> taken_;  // "TYPE/CLASS" -> places
};

class ClassesHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadAnnotations("*.resources.*kubernetes.io/*");
    feed.ReadAnnotations("*.resources.qrm.io/*");
    offers_.Follow(feed, kNodeClasses, ReadClassOffer,
                   [&cache](const std::string& node, const ClassOfferPtr& offer) {
                     cache.SetExtendedResource(
                         node, offer == nullptr ? nullptr : std::make_shared<ClassResource>(offer));
                   });
    return OkStatus();
  }

  bool IsPublishedByNode() const override { return true; }

  // Runtimes read some keys, too: who uses only those may be meant for a node without qrmd.
  bool Wants(const Pod& pod) const override { return config::NamesClassType(pod.annotations); }

 private:
  NodeTexts<ClassOffer> offers_;
};

}  // namespace

std::unique_ptr<Handle> MakeClassesHandle() {
  return std::make_unique<ClassesHandle>();
}

}  // namespace qrm::scheduler
