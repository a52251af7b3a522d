// Rebuilds a node's holdings from its pods, as the node's plugins do after a restart.
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/pod_texts.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/placement/node_model.h"
#include "plugins/placement/walk.h"
#include "plugins/rules/device_nodes.h"
#include "plugins/rules/qos_annotations.h"
#include "scheduler/cache/packed_pod.h"
#include "scheduler/topology/node_texts.h"
#include "scheduler/topology/numa_verdicts.h"
#include "scheduler/topology/placement_note.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {
namespace {

constexpr char kRoleAnnotation[] = "kubernetes.io/pod-role";

/// What is free by NUMA node, as a part of all that can be given.
struct FreeParts {
  std::map<int, double> cpus;
  std::map<int, double> memory;
};

using HoldingsPtr = std::shared_ptr<const placement::NodeHoldings>;

/// Nodes of one configuration, and what they have in common.
struct NodeKind {
  placement::NodeModelPtr model;
  HoldingsPtr nothing;  // held
  std::unique_ptr<VerdictsByHoldings> verdicts = std::make_unique<VerdictsByHoldings>();
};
using NodeKindPtr = std::shared_ptr<const NodeKind>;

/// Keeps what pods have of their own, and of other pods nothing: those with a decision as holdings,
/// the others, which are placed beside these, as they are.
class NumaResource final : public ExtendedResource {
 public:
  NumaResource(NodeKindPtr kind, std::shared_ptr<Questions> questions,
               std::shared_ptr<TextPool> texts)
      : kind_(std::move(kind)),
        questions_(std::move(questions)),
        texts_(std::move(texts)),
        decided_(kind_->nothing) {
    Settle();
  }

  void AddPod(const Pod& pod) override {
    if (const std::optional<placement::PodPlacement> decided = ReadPlacement(model(), pod)) {
      AddDecided(placement::HoldingsOf(model(), *decided));
    } else if (placement::MayHold(model(), DemandsOf(model(), pod))) {
      undecided_.emplace(pod.uid, Pack(pod, *texts_));
    } else {
      return;
    }
    Settle();
  }
  void RemovePod(const Pod& pod) override {
    placement::NodeHoldings left = *decided_;
    if (placement::DropPod(pod.uid, left)) {
      Decided(std::move(left));
    } else if (undecided_.erase(pod.uid) == 0) {
      return;
    }
    Settle();
  }

  Admission AdmitPod(const Pod& pod) const override { return {.refusal = Judge(pod).refusal}; }
  std::optional<int> Score(const Pod& pod) const override { return Judge(pod).score; }

  StatusOr<StringMap> Decide(const Pod& pod) const override {
    QRM_ASSIGN_OR_RETURN(const placement::PlacedPod placed,
                         placement::PlacePod(model(), DemandsOf(model(), pod), *held_));
    const std::string note = WritePlacement(placed.placement);
    return note.empty() ? StringMap() : StringMap{{kPlacement, note}};
  }

  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<NumaResource>(*this);
  }

  nlohmann::json Dump() const override {
    nlohmann::json dump = {{"exclusive", nlohmann::json::object()},
                           {"bound", nlohmann::json::object()},
                           {"nics", nlohmann::json::object()}};
    for (const auto& [key, holding] : held_->cpu.exclusive) {
      dump["exclusive"][key.pod_uid][key.container] = ToString(holding.cpus);
    }
    for (const auto& [key, binding] : held_->memory) {
      dump["bound"][key.pod_uid][key.container] = ToString(memory::NodesOf(binding));
    }
    for (const auto& [key, use] : held_->nic.uses()) {
      dump["nics"][key.pod_uid][key.container] = use.nic.interface;
    }
    return dump;
  }

 private:
  const placement::NodeModel& model() const { return *kind_->model; }

  void AddDecided(placement::NodeHoldings more) {
    placement::NodeHoldings all = *decided_;
    all.cpu.exclusive.merge(more.cpu.exclusive);
    all.cpu.shared.merge(more.cpu.shared);
    all.memory.merge(more.memory);
    all.nic.Merge(more.nic);
    Decided(std::move(all));
  }
  void Decided(placement::NodeHoldings holdings) {
    placement::SettlePools(model(), holdings);
    decided_ = std::make_shared<const placement::NodeHoldings>(std::move(holdings));
  }
  void Settle() {
    held_ = decided_;
    for (const auto& [uid, pod] : undecided_) {
      // A pod that the node cannot place holds nothing there: it is rejected.
      if (StatusOr<placement::PlacedPod> placed =
              placement::PlacePod(model(), DemandsOf(model(), Unpack(*pod)), *held_);
          placed.ok()) {
        held_ = std::make_shared<const placement::NodeHoldings>(std::move(placed->after));
      }
    }
    verdicts_ = kind_->verdicts->Of(*held_);
  }

  Verdict Judge(const Pod& pod) const {
    const auto judge = [&]() -> Verdict {
      const StatusOr<placement::PlacedPod> placed =
          placement::PlacePod(model(), DemandsOf(model(), pod), *held_);
      if (!placed.ok()) {
        return {.refusal = MessageOf(placed.status())};
      }
      return {.score = ScoreOf(placed->after)};
    };
    // Rules by pods' names tell pods apart that are the same otherwise.
    return model().rules_name_pods ? judge() : verdicts_->Of(questions_->Of(pod), judge);
  }

  // Fuller NUMA nodes first: those that are free stay whole for pods that need all of one.
  std::optional<int> ScoreOf(const placement::NodeHoldings& after) const {
    const FreeParts before = FreeOf(*held_);
    const FreeParts left = FreeOf(after);
    double taken = 0;
    double weighted = 0;
    for (const auto& [from, to] :
         {std::pair(&before.cpus, &left.cpus), std::pair(&before.memory, &left.memory)}) {
      for (const auto& [node, part] : *from) {
        const double less = part - to->at(node);
        taken += less;
        weighted += less * (part + to->at(node)) / 2;
      }
    }
    return taken <= 0 ? std::nullopt
                      : std::optional(static_cast<int>(std::lround(100 * (1 - weighted / taken))));
  }

  FreeParts FreeOf(const placement::NodeHoldings& held) const {
    FreeParts parts;
    const CpuSet all = model().machine.cpu_set() - model().cpu.reserved - model().offline;
    const CpuSet free = all - cpu::ExclusiveCpus(held.cpu);
    for (const NumaNode& node : model().machine.nodes()) {
      const int count = (node.cpus & all).Count();
      parts.cpus[node.id] =
          count == 0 ? 0 : static_cast<double>((node.cpus & free).Count()) / count;
    }
    for (const auto& [id, node] : memory::TableOf({model().machine, model().memory, held.memory})) {
      const MemoryAmounts& amounts = node.types.at(kOrdinaryMemory);
      parts.memory[id] = amounts.allocatable == 0 ? 0
                                                  : static_cast<double>(amounts.free) /
                                                        static_cast<double>(amounts.allocatable);
    }
    return parts;
  }

  // Copies of the resource share what they point to, and none of it changes.
  NodeKindPtr kind_;
  std::shared_ptr<Questions> questions_;
  std::shared_ptr<TextPool> texts_;  // of undecided_
  HoldingsPtr decided_;
  std::map<std::string, PackedPodPtr> undecided_;  // by UID
  HoldingsPtr held_;                               // what follows from both
  std::shared_ptr<Verdicts> verdicts_;             // of what is held
};

/// Nodes of a kind have the same configuration, and share its model.
class NumaHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.ReadDecision(kPlacement);
    for (const char* key : {kRoleAnnotation, rules::kQosLevelKey, rules::kQosCpuKey,
                            rules::kQosMemoryKey, rules::kPodPriorityAnnotation, kPodDriver}) {
      feed.ReadAnnotations(key);
    }
    feed.ReadAnnotations(std::string(kContainerDriver) + "*");
    kinds_.Follow(feed, kNodeConfig, ReadKind,
                  [this, &cache, &feed](const std::string& node, const NodeKindPtr& kind) {
                    if (kind == nullptr) {
                      cache.SetExtendedResource(node, nullptr);
                      return;
                    }
                    for (const std::string& key : kind->model->pod_annotations) {
                      if (key.find('*') == std::string::npos) {  // a star in it is not a glob
                        feed.ReadAnnotations(key);
                      }
                    }
                    cache.SetExtendedResource(
                        node, std::make_shared<NumaResource>(kind, questions_, texts_));
                  });
    return OkStatus();
  }

  bool IsPublishedByNode() const override { return true; }

  bool Wants(const Pod& pod) const override {
    return pod.labels.contains("katalyst.kubewharf.io/pod_role") ||
           pod.annotations.contains(kRoleAnnotation) ||
           pod.annotations.contains(rules::kQosLevelKey);
  }

 private:
  static StatusOr<NodeKind> ReadKind(const std::string& text) {
    QRM_ASSIGN_OR_RETURN(placement::NodeModelPtr model,
                         placement::ReadNodeModel(text, std::string("annotation ") + kNodeConfig));
    auto nothing = std::make_shared<const placement::NodeHoldings>(placement::NothingHeld(*model));
    return NodeKind{.model = std::move(model), .nothing = std::move(nothing)};
  }

  const std::shared_ptr<Questions> questions_ = std::make_shared<Questions>();
  const std::shared_ptr<TextPool> texts_ = std::make_shared<TextPool>();
  NodeTexts<NodeKind> kinds_;
};

}  // namespace

std::unique_ptr<Handle> MakeNumaHandle() {
  return std::make_unique<NumaHandle>();
}

}  // namespace qrm::scheduler
