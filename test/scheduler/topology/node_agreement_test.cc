// The node admits what the filter places, and rejects what the filter rejects; a dry run says both,
// with the same values.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "api/pod_texts.h"
#include "manager/daemon/node_config.h"
#include "plugins/cpu/fit_config.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/topology/placement_note.h"
#include "scheduler/topology/resource_types.h"
#include "test/scheduler/topology/node_core.h"
#include "test/support/captured_machine.h"
#include "test/support/rounds.h"
#include "test/support/temp_dir.h"
#include "topology/discovery.h"

namespace qrm::scheduler::node_agreement_test {
namespace {

using test::NodeCore;

const std::filesystem::path kMachines = QRM_MACHINES_DIR;

/// Nodes of different sizes and policies.
const char* const kConfigs[] = {
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] core:4 pu:2",
        topology-policy: single-numa-node, plugins: {cpu: {reserved-cpus: "0,8", static: true},
        memory: {static: true}}})",
    R"({machine: "synthetic:package:1 numa:4(memory=8GiB) core:4 pu:1",
        topology-policy: restricted, topology-scope: pod,
        plugins: {cpu: {reserved-cpus: "0", static: true}, memory: {static: true}}})",
    R"({machine: "synthetic:package:2 numa:4(memory=4GiB) core:2 pu:2",
        topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: "0", roles: {db: {numa: one, whole-cores: true}}},
                  memory: {roles: {db: {numa: one}}},
                  nic: {request: mbps, nics: [{interface: eth0, numa-node: 0, egress-mbps: 1000, ingress-mbps: 1000},
                              {interface: eth1, numa-node: 5, egress-mbps: 1000, ingress-mbps: 1000}]}}})",
    // Several containers on several nodes, which make way for others there.
    R"({machine: "synthetic:package:1 numa:4(memory=2GiB) core:8 pu:2",
        topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: "0", roles: {db: {numa: fewest, share-numa-with: ["*"]}}},
                  memory: {static: true, roles: {db: {numa: fewest, share-numa-with: ["*"]}}}}})",
    // Containers beside a pool, and isolated CPUs first.
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] core:4 pu:2",
        topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: {count: 2}, isolated-cpus: "8-11",
                        rules: [{select: {role: db}, grant: data}],
                        grants: {data: {isolated: prefer, plus: helpers, share-numa-with: ["*"]}},
                        pools: {helpers: {cpus: 2-3}}}, memory: {static: true}}})",
    // Names that are mapped, a pool sized by limits, pods that opt out, and a namespace that may
    // not have roles.
    R"({machine: "synthetic:package:1 numa:2(memory=16GiB) core:8 pu:1", topology-policy: best-effort,
        resource-names-map: {example.com/milli: {resource: cpu, scale: 1m}}, skip-annotation: example.com/skip,
        permissions: [{namespaces: [free], allow: [opt-out, own-cpus, reserved-cpus], roles: ["*"], pools: ["*"]},
                      {namespaces: [poor], allow: [own-cpus]}],
        plugins: {cpu: {reserved-cpus: "0", static: true,
                        pools: {batch: {roles: [db], size: {per: limit, min: 1, max: 6}}}},
                  memory: {static: true}}})",
    // The options of kubelet's static policy.
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] core:4 pu:2", topology-policy: none,
        plugins: {cpu: {reserved-cpus: "0,1", static: {full-pcpus-only: true, strict-cpu-reservation: true}},
                  memory: {static: true}}})",
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] core:4 pu:2", topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: "0", static: {distribute-cpus-across-numa: true}}}})",
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] l3:2 core:4 pu:2", topology-policy: restricted,
        plugins: {cpu: {reserved-cpus: "0", static: {prefer-align-cpus-by-uncorecache: true}}}})",
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] core:8 pu:2", topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: "0", static: {distribute-cpus-across-cores: true}}}})",
    // Many nodes, of which containers need several, and one hint for all containers of a pod.
    R"({machine: "synthetic:package:4 numa:4(memory=1GiB) core:2 pu:2", topology-policy: best-effort,
        topology-scope: pod, prefer-closest-numa-nodes: true,
        plugins: {cpu: {reserved-cpus: "0", static: true}, memory: {static: true}}})",
    R"({machine: "synthetic:package:8 numa:8(memory=2GiB) core:2 pu:1", topology-policy: restricted,
        plugins: {cpu: {reserved-cpus: "0", static: true}, memory: {static: true}}})",
    // Pools with instances, and pools that lend and borrow.
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] core:8 pu:1", topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: "0", pools: {team: {roles: [db], size: {min: 1, max: 4}, instances: {by: pod}}}},
                  memory: {static: true}}})",
    R"({machine: "synthetic:package:2 [numa(memory=16GiB)] core:8 pu:1", topology-policy: none,
        plugins: {cpu: {reserved-cpus: "0", static: true,
                        pools: {online: {roles: [db], size: {min: 2, max: 8}, priority: 1, borrow: {idle: numa},
                                         lend: {to: [offline], keep: 1}},
                                offline: {size: {min: 1}, borrow: {idle: all}}, default: {size: {min: 1}}}}}})",
    // A pool that is not overcommitted, beside exclusive CPUs by annotation.
    R"({machine: "synthetic:package:2 numa:2(memory=8GiB) core:4 pu:1", topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: "0", default-pool: share,
                        pools: {share: {size: {min: 1, max: 6, overcommit: refuse}, priority: 1},
                                reclaim: {size: {min: 1}}, default: {size: {min: 1}}}},
                  memory: {static: true}}})",
    // A pool for each NUMA node.
    R"({machine: "synthetic:package:2 numa:2(memory=8GiB) core:4 pu:1", topology-policy: best-effort,
        plugins: {cpu: {reserved-cpus: "0", static: true, rules: [{select: {role: db}, pool: shared}],
                        pools: {shared: {size: {}, instances: {by: numa-node}, borrow: {idle: numa}},
                                default: {size: {min: 1}}}},
                  memory: {static: true}}})",
    // Memory of kinds.
    R"({machine: "synthetic:package:2 numa:2(memory=4GiB) core:4 pu:1", topology-policy: best-effort,
        memory-kinds: {1: hbm, 3: hbm},
        plugins: {cpu: {reserved-cpus: "0", roles: {db: {numa: any, share-numa-with: ["*"]}}},
                  memory: {roles: {db: {numa: any, kinds: [hbm, dram], share-numa-with: ["*"]}}}}})",
};

/// A pod is of each with the same probability.
constexpr std::array<const char*, 20> kNamespaces = {
    "ns", "ns", "ns", "ns", "ns", "ns", "ns", "ns",   "ns",   "ns",
    "ns", "ns", "ns", "ns", "ns", "ns", "ns", "poor", "free", "kube-system"};

/// A node, and what the scheduler receives about it.
struct AgreedNode {
  placement::NodeModelPtr model;
  std::string told;
};

/// Pods of all kinds, and their nodes.
class Agreement {
 public:
  Agreement(uint32_t seed, const std::vector<AgreedNode>& nodes) : random_(seed) {
    handles_.Register(kNuma, MakeNumaHandle);
    cache_ = *ClusterCache::Make(handles_);
    std::vector<Node> list;
    for (const AgreedNode& node : nodes) {
      const std::string name = "n" + std::to_string(list.size());
      list.push_back({.name = name, .annotations = {{kNodeConfig, node.told}}});
      models_[name] = node.model;
      cores_[name] = std::make_unique<NodeCore>(*node.model);
    }
    cache_->ReplaceNodes(std::move(list), "1");
    cache_->ReplacePods({.version = "1"});
  }

  /// Offers one more pod to a node, and now and then a pod ends.
  void Step() {
    if (Pick(4) == 0 && !where_.empty()) {
      End();
    }
    Pod made = MakePod();
    const std::string node = "n" + std::to_string(Pick(static_cast<int>(cores_.size())));
    Pod pod = For(node, std::move(made));
    const std::string refusal = RefusalOf(*cache_->Publish(), handles_, pod, node);
    StatusOr<StringMap> foretold = cores_.at(node)->Foretell(pod);
    const Status admitted = cores_.at(node)->Admit(pod);
    ASSERT_EQ(refusal.empty(), admitted.ok())
        << node << " " << pod.uid << ": " << refusal << " / " << admitted;
    // A dry run does not ask a driver which CPUs it would take.
    ASSERT_TRUE(foretold.ok() == admitted.ok() || (foretold.ok() && IsDriven(pod)))
        << foretold.status() << " / " << admitted;
    if (!admitted.ok()) {
      ++refused;
      return cores_.at(node)->Remove(pod.uid);
    }
    ++placed;
    driven += IsDriven(pod) ? 1 : 0;
    for (const auto& [what, value] : cores_.at(node)->ValuesOf(pod.uid)) {
      EXPECT_TRUE((*foretold)[what] == value || IsDriven(pod))
          << node << " " << pod.uid << " " << what << " " << value;
    }
    cache_->SetPod(pod);
    const auto decision = cache_->Assume(pod.uid, node);
    ASSERT_TRUE(decision.ok()) << decision.status();
    CheckSameCpus(pod, node, *decision);
    pod.node = node;
    pod.annotations.insert(decision->begin(), decision->end());
    cache_->SetPod(pod);
    where_[pod.uid] = node;
    pods_[pod.uid] = std::move(pod);
  }

  /// Offers each node one more pod, which is removed again.
  void CheckEverywhere() {
    const Pod made = MakePod();
    for (const auto& [node, core] : cores_) {
      const Pod pod = For(node, made);
      const std::string refusal = RefusalOf(*cache_->Publish(), handles_, pod, node);
      const Status admitted = core->Admit(pod);
      core->Remove(pod.uid);
      EXPECT_EQ(refusal.empty(), admitted.ok())
          << node << " " << pod.uid << ": " << refusal << " / " << admitted;
    }
  }

  void CheckRebuildIsEqual() {
    HandleRegistry handles;
    handles.Register(kNuma, MakeNumaHandle);
    const auto rebuilt = *ClusterCache::Make(handles);
    std::vector<Node> nodes;
    nodes.reserve(cores_.size());
    for (const auto& [name, core] : cores_) {
      nodes.push_back(*cache_->Publish()->Find(name)->node);
    }
    std::vector<Pod> pods;
    pods.reserve(pods_.size());
    for (const auto& [uid, pod] : pods_) {
      pods.push_back(pod);
    }
    rebuilt->ReplaceNodes(std::move(nodes),
                          "1");  // nodes first: their configurations name the annotations
    rebuilt->ReplacePods({.pods = std::move(pods), .version = "1"});
    EXPECT_EQ(rebuilt->Dump(), cache_->Dump());
  }

  int placed = 0;
  int refused = 0;
  int driven = 0;  ///< of the placed ones, those with a compute driver

 private:
  int Pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  void End() {
    const auto gone = std::next(where_.begin(), Pick(static_cast<int>(where_.size())));
    cores_.at(gone->second)->Remove(gone->first);
    cache_->DeletePod(gone->first, "");
    pods_.erase(gone->first);
    where_.erase(gone);
  }

  PodContainer Container(const std::string& name, PodContainer::Kind kind) {
    PodContainer container{.name = name, .kind = kind};
    container.requests["cpu"] = Pick(4) == 0 ? 0.5 : 1 + Pick(4);
    if (Pick(12) == 0) {
      container.requests["example.com/milli"] = 1000 * (1 + Pick(4));
    }
    container.requests["memory"] = static_cast<double>(int64_t{1} << (26 + Pick(6)));
    if (Pick(5) == 0) {
      container.requests["NIC"] = 100 * (1 + Pick(5));
    }
    return container;
  }
  bool HasElasticPools(const std::string& node) const {
    const auto& pools = models_.at(node)->cpu.pools;
    return std::any_of(pools.begin(), pools.end(),
                       [](const auto& pool) { return pool.second.size.has_value(); });
  }

  static bool IsDriven(const Pod& pod) { return pod.annotations.contains(kPodDriver); }

  /// `pod` without numa_exclusive where pools follow their containers: only the node knows which
  /// NUMA nodes are free of others then. Where a node has a compute driver, every other pod asks
  /// for it: with whole CPUs, without other annotations, and without init containers, whose CPUs a
  /// driver may give or not.
  Pod For(const std::string& node, Pod pod) const {
    const placement::NodeModel& model = *models_.at(node);
    if (HasElasticPools(node)) {
      pod.annotations.erase("katalyst.kubewharf.io/memory_enhancement");
    }
    if (!model.options.drivers.empty() && made_ % 2 == 0) {
      pod.annotations = {{kPodDriver, model.options.drivers.begin()->first}};
      std::erase_if(pod.containers, [](const PodContainer& container) {
        return container.kind == PodContainer::Kind::kInit;
      });
      for (PodContainer& container : pod.containers) {
        for (auto* amounts : {&container.requests, &container.limits}) {
          if (const auto cpus = amounts->find("cpu"); cpus != amounts->end()) {
            cpus->second = std::ceil(cpus->second);
          }
        }
      }
    }
    return pod;
  }

  Pod MakePod() {
    const std::string uid = "u" + std::to_string(++made_);
    Pod pod{.uid = uid,
            .pod_namespace = kNamespaces.at(static_cast<std::size_t>(Pick(20))),
            .name = "p" + uid,
            .qos_class = Pick(4) == 0 ? "Burstable" : "Guaranteed"};
    if (Pick(2) == 0) {
      pod.labels["katalyst.kubewharf.io/pod_role"] = "db";
    }
    if (Pick(8) == 0) {
      pod.annotations["example.com/skip"] = "true";
    }
    if (Pick(8) == 0) {
      pod.annotations["katalyst.kubewharf.io/qos_level"] = "dedicated_cores";
      pod.annotations["katalyst.kubewharf.io/memory_enhancement"] =
          Pick(2) == 0 ? R"({"numa_exclusive": "true"})" : R"({"numa_binding": "true"})";
    }
    if (Pick(8) == 0) {
      pod.controller_kind = "DaemonSet";
    }
    if (Pick(4) == 0) {
      pod.containers.push_back(Container(
          "init", Pick(2) == 0 ? PodContainer::Kind::kInit : PodContainer::Kind::kSidecar));
    }
    for (int apps = 1 + Pick(2); apps > 0; --apps) {
      pod.containers.push_back(Container("app" + std::to_string(apps), PodContainer::Kind::kApp));
    }
    for (PodContainer& container : pod.containers) {
      if (pod.qos_class == "Guaranteed") {
        container.limits = container.requests;
      } else if (Pick(2) == 0) {
        container.limits["cpu"] = container.requests.at("cpu") + Pick(3);
      }
    }
    return pod;
  }

  /// Where pools follow their containers, only their node knows which CPUs a pool has, and where
  /// compute drivers choose, only their node knows which CPUs are left.
  void CheckSameCpus(const Pod& pod, const std::string& node, const StringMap& decision) const {
    if (HasElasticPools(node) || !models_.at(node)->options.drivers.empty()) {
      return;
    }
    Pod decided = pod;
    decided.annotations.insert(decision.begin(), decision.end());
    const auto placement = ReadPlacement(*models_.at(node), decided);
    CpuSet cpus;
    if (placement.has_value()) {
      for (const auto& [key, grant] : placement->grants.at(cpu::kResource)) {
        cpus |= grant.allocation->exclusive ? *CpuSet::Parse(grant.allocation->value) : CpuSet();
      }
    }
    EXPECT_EQ(ToString(cpus), ToString(cores_.at(node)->OwnCpus(pod.uid)))
        << pod.uid << " " << testing::PrintToString(decision);
  }

  std::mt19937 random_;
  HandleRegistry handles_;
  std::unique_ptr<ClusterCache> cache_;
  std::map<std::string, placement::NodeModelPtr> models_;
  std::map<std::string, std::unique_ptr<NodeCore>> cores_;
  std::map<std::string, std::string> where_;  // UID -> node
  std::map<std::string, Pod> pods_;
  int made_ = 0;
};

/// One of kConfigs in turn.
std::vector<AgreedNode> DescribedNodes(int count) {
  std::vector<AgreedNode> nodes;
  for (int i = 0; i < count; ++i) {
    const std::string config = kConfigs[static_cast<std::size_t>(i) % std::size(kConfigs)];
    const auto model = placement::ReadNodeModel(config, "kConfigs");
    EXPECT_TRUE(model.ok()) << model.status();
    nodes.push_back({*model, config});
  }
  return nodes;
}

// QRM_AGREEMENT_PODS=10000 plays the full size, on 200 nodes.
TEST(NodeAgreementTest, TheFilterAndADryRunDecideAsTheNode) {
  const int pods = qrm::test::RoundsBy("QRM_AGREEMENT_PODS", 250);
  Agreement agreement(1,
                      DescribedNodes(std::max(static_cast<int>(std::size(kConfigs)), pods / 50)));
  for (int i = 0; i < pods; ++i) {
    ASSERT_NO_FATAL_FAILURE(agreement.Step()) << "pod " << i;
    if (i % 50 == 0) {
      agreement.CheckEverywhere();
    }
  }
  agreement.CheckRebuildIsEqual();
  EXPECT_GT(agreement.placed, pods / 5);
  EXPECT_GT(agreement.refused, pods / 20);
}

/// `machine` with rules for roles or kubelet's static policies, as qrmd has it and as it reports
/// it.
AgreedNode PublishingNode(const Machine& machine, TopologyPolicy policy, TopologyScope scope,
                          const std::string& plugins, placement::DriverOptions drivers = {}) {
  manager::BuiltinOptions builtin;
  const auto sections = config::Section::Parse(plugins, "plugins");
  EXPECT_TRUE(sections.ok()) << sections.status();
  for (const auto& name : sections->Keys()) {
    builtin.sections.emplace(name, *sections->Child(name));
  }
  placement::AdmissionOptions admission;
  admission.merge.policy = policy;
  admission.scope = scope;
  admission.drivers = std::move(drivers);

  auto model = std::make_shared<placement::NodeModel>();
  model->machine = machine;
  model->options = admission;
  model->cpu = cpu::FitCpuConfig(machine, *cpu::ParseCpuConfig(builtin.sections.at("cpu")))->config;
  model->memory = *memory::ParseMemoryConfig(builtin.sections.at("memory"));
  model->nic = *nic::ParseNicConfig(builtin.sections.at("nic"));
  const auto told = manager::NodeConfig::Make(
      {.machine = machine, .builtin = builtin, .admission = admission, .pod_keys = {}});
  EXPECT_TRUE(told.ok()) << told.status();
  return {std::move(model), told->Text({}, {})};
}

/// A node whose compute driver gives any CPUs that it is offered.
AgreedNode DrivenNode(const std::string& machine, TopologyPolicy policy,
                      const std::string& plugins) {
  return PublishingNode(*Discover(*MachineSource::Parse("synthetic:" + machine)), policy,
                        TopologyScope::kContainer, plugins, {{"any", {.namespaces = {"*"}}}});
}

// Under these policies it does not matter which of the offered CPUs a driver gives.
TEST(NodeAgreementTest, WhatADriverHoldsCountsInTheFilterInADryRunAndForEveryOtherPolicy) {
  const int pods = qrm::test::RoundsBy("QRM_AGREEMENT_PODS", 250);
  Agreement agreement(
      1,
      {DrivenNode("package:2 numa:2(memory=16GiB) core:8 pu:1", TopologyPolicy::kSingleNumaNode,
                  R"({cpu: {reserved-cpus: "0", static: true}, memory: {static: true}, nic: {}})"),
       DrivenNode("package:2 [numa(memory=64GiB)] core:16 pu:1", TopologyPolicy::kBestEffort,
                  R"({cpu: {reserved-cpus: "0", pools: {batch: {cpus: 1-2}},
                               roles: {db: {numa: any, share-numa-with: ["*"]}}},
                         memory: {}, nic: {}})"),
       DrivenNode("package:1 [numa(memory=64GiB)] core:24 pu:1", TopologyPolicy::kNone,
                  R"({cpu: {reserved-cpus: "0", static: true}, memory: {}, nic: {}})")});
  for (int i = 0; i < pods; ++i) {
    ASSERT_NO_FATAL_FAILURE(agreement.Step()) << "pod " << i;
    if (i % 10 == 0) {
      agreement.CheckEverywhere();
    }
  }
  EXPECT_GT(agreement.driven, pods / 20);
  EXPECT_GT(agreement.placed, agreement.driven + pods / 20);
  EXPECT_GT(agreement.refused, pods / 20);
}

class PublishedMachineTest : public testing::TestWithParam<std::string> {};

TEST_P(PublishedMachineTest, TheFilterDecidesByWhatQrmdPublishesAsTheNode) {
  const qrm::test::TempDir scratch = qrm::test::TempDir::InMemory();
  const auto source = qrm::test::OpenCaptured(kMachines / GetParam(), scratch.path());
  ASSERT_TRUE(source.ok()) << source.status();
  const auto machine = Discover(*source);
  ASSERT_TRUE(machine.ok()) << machine.status();
  const std::string reserved =
      fmt::format("{},{}", machine->cpu_set().First(), machine->cpu_set().Last());
  const std::string nic = fmt::format(
      "nic: {{request: mbps, nics: [{{interface: q0, numa-node: {}, speed-mbps: 1000}}]}}",
      machine->nodes().front().id);
  const std::string by_static =
      fmt::format("{{cpu: {{static: true, reserved-cpus: \"{}\"}}, memory: {{static: true}}, {}}}",
                  reserved, nic);
  const std::string by_roles = fmt::format(
      "{{cpu: {{reserved-cpus: \"{}\", roles: {{db: {{numa: one, whole-cores: true, align-l3: "
      "true}}}}}}, memory: {{roles: {{db: {{numa: one}}}}}}, {}}}",
      reserved, nic);
  Agreement agreement(
      7,
      {PublishingNode(*machine, TopologyPolicy::kSingleNumaNode, TopologyScope::kContainer,
                      by_static),
       PublishingNode(*machine, TopologyPolicy::kRestricted, TopologyScope::kPod, by_static),
       PublishingNode(*machine, TopologyPolicy::kBestEffort, TopologyScope::kContainer, by_roles)});
  for (int i = 0; i < 60; ++i) {
    ASSERT_NO_FATAL_FAILURE(agreement.Step()) << "pod " << i;
  }
  EXPECT_GT(agreement.placed, 0);
}

std::string CaseName(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Captured, PublishedMachineTest,
                         testing::ValuesIn(qrm::test::CapturedMachines(kMachines)), CaseName);

}  // namespace
}  // namespace qrm::scheduler::node_agreement_test
