// Rebuilds a node's holdings from its pods, as the node's plugins do after a restart.
#include "scheduler/topology/numa_resource.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/log.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "scheduler/topology/node_model.h"
#include "scheduler/topology/numa_plan.h"
#include "scheduler/topology/placement_note.h"

namespace qrm::scheduler {
namespace {

/// What is free by NUMA node, as a part of all that can be given.
struct FreeParts {
  std::map<int, double> cpus;
  std::map<int, double> memory;
};

class NumaResource final : public ExtendedResource {
 public:
  explicit NumaResource(NodeModelPtr model)
      : model_(std::move(model)), held_(NothingHeld(*model_)) {}

  void AddPod(const Pod& pod) override {
    std::optional<PodPlacement> decided = ReadPlacement(*model_, pod);
    if (decided.has_value()) {
      decided_.emplace(pod.uid, std::make_shared<const PodPlacement>(*std::move(decided)));
    } else if (!RequestsOf(*model_, pod).empty()) {
      undecided_.emplace(pod.uid, std::make_shared<const Pod>(pod));
    }
    Rebuild();
  }
  void RemovePod(const Pod& pod) override {
    decided_.erase(pod.uid);
    undecided_.erase(pod.uid);
    Rebuild();
  }

  Admission AdmitPod(const Pod& pod) const override {
    NodeHoldings held = held_;
    const Status placed = PlacePod(*model_, pod, held).status();
    return {.refusal = placed.ok() ? std::string() : MessageOf(placed)};
  }

  // Fuller NUMA nodes first: those that are free stay whole for pods that need all of one.
  std::optional<int> Score(const Pod& pod) const override {
    NodeHoldings after = held_;
    if (!PlacePod(*model_, pod, after).ok()) {
      return std::nullopt;
    }
    const FreeParts before = FreeOf(held_);
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

  StatusOr<StringMap> Decide(const Pod& pod) const override {
    NodeHoldings held = held_;
    QRM_ASSIGN_OR_RETURN(const PodPlacement placement, PlacePod(*model_, pod, held));
    const std::string note = WritePlacement(placement);
    return note.empty() ? StringMap() : StringMap{{kPlacement, note}};
  }

  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<NumaResource>(*this);
  }

  nlohmann::json Dump() const override {
    nlohmann::json dump = {{"exclusive", nlohmann::json::object()},
                           {"bound", nlohmann::json::object()},
                           {"nics", nlohmann::json::object()}};
    for (const auto& [key, holding] : held_.cpu.exclusive) {
      dump["exclusive"][key.pod_uid][key.container] = ToString(holding.cpus);
    }
    for (const auto& [key, binding] : held_.memory) {
      dump["bound"][key.pod_uid][key.container] = ToString(memory::NodesOf(binding));
    }
    for (const auto& [key, use] : held_.nic) {
      dump["nics"][key.pod_uid][key.container] = use.nic.interface;
    }
    return dump;
  }

 private:
  void Rebuild() {
    PodGrants grants;
    memory::SavedInits inits;
    for (const auto& [uid, placement] : decided_) {
      for (const auto& [resource, given] : placement->grants) {
        grants[resource].insert(given.begin(), given.end());
      }
      inits.insert(placement->inits.begin(), placement->inits.end());
    }
    const Machine& machine = model_->machine;
    held_.cpu = cpu::Rebuild(machine, model_->cpu, model_->pools, grants[cpu::kResource]).state;
    held_.memory =
        memory::Rebuild(machine, model_->memory, inits, grants[memory::kResource]).bindings;
    held_.nic = nic::Rebuild(model_->nic, grants[model_->nic.resource]);
    for (const auto& [uid, pod] : undecided_) {
      // One that the node cannot place holds nothing there: it is refused.
      (void)PlacePod(*model_, *pod, held_);
    }
  }

  FreeParts FreeOf(const NodeHoldings& held) const {
    FreeParts parts;
    const CpuSet all = model_->machine.cpu_set() - model_->cpu.reserved - model_->offline;
    const CpuSet free = all - cpu::ExclusiveCpus(held.cpu);
    for (const NumaNode& node : model_->machine.nodes()) {
      const int count = (node.cpus & all).Count();
      parts.cpus[node.id] =
          count == 0 ? 0 : static_cast<double>((node.cpus & free).Count()) / count;
    }
    for (const auto& [id, node] : memory::TableOf({model_->machine, model_->memory, held.memory})) {
      const MemoryAmounts& amounts = node.types.at(kOrdinaryMemory);
      parts.memory[id] = amounts.allocatable == 0 ? 0
                                                  : static_cast<double>(amounts.free) /
                                                        static_cast<double>(amounts.allocatable);
    }
    return parts;
  }

  NodeModelPtr model_;
  // By UID; copies of the resource share them.
  std::map<std::string, std::shared_ptr<const PodPlacement>> decided_;
  std::map<std::string, PodPtr> undecided_;
  NodeHoldings held_;  // what follows from both
};

/// Nodes of a kind have the same configuration, and share its model.
class NumaHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.SubscribeNodes([this, &cache](const std::string& name, const Node* node) {
      const std::string text = ConfigOf(node);
      const auto known = configs_.find(name);
      if (text == (known == configs_.end() ? std::string() : known->second)) {
        return;
      }
      configs_[name] = text;
      cache.SetExtendedResource(name, MakeResource(name, text));
      if (text.empty()) {
        configs_.erase(name);
      }
    });
    return OkStatus();
  }

  bool Wants(const Pod& pod) const override {
    return pod.labels.contains("katalyst.kubewharf.io/pod_role") ||
           pod.annotations.contains("kubernetes.io/pod-role") ||
           pod.annotations.contains("katalyst.kubewharf.io/qos_level");
  }

 private:
  static std::string ConfigOf(const Node* node) {
    if (node == nullptr) {
      return {};
    }
    const auto config = node->annotations.find(kNodeConfig);
    return config == node->annotations.end() ? std::string() : config->second;
  }

  std::shared_ptr<ExtendedResource> MakeResource(const std::string& node, const std::string& text) {
    if (text.empty()) {
      return nullptr;
    }
    NodeModelPtr model = models_[text].lock();
    if (model == nullptr) {
      StatusOr<NodeModelPtr> read =
          ReadNodeModel(text, fmt::format("annotation {} of node {}", kNodeConfig, node));
      if (!read.ok()) {
        log::Warning("configuration of a node not used",
                     {{"node", node}, {"error", MessageOf(read.status())}});
        return nullptr;
      }
      model = *std::move(read);
      std::erase_if(models_, [](const auto& entry) { return entry.second.expired(); });
      models_[text] = model;
    }
    return std::make_shared<NumaResource>(std::move(model));
  }

  std::map<std::string, std::string> configs_;                    // by node
  std::map<std::string, std::weak_ptr<const NodeModel>> models_;  // by configuration
};

}  // namespace

std::unique_ptr<Handle> MakeNumaHandle() {
  return std::make_unique<NumaHandle>();
}

}  // namespace qrm::scheduler
