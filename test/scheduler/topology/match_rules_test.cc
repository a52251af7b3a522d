#include "scheduler/topology/match_rules.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler::match_rules_test {
namespace {

using Kind = PodContainer::Kind;

constexpr double kMi = 1 << 20;
constexpr double kGi = 1 << 30;
constexpr double kG = 1e9;

PodContainer Asking(Amounts requests, Kind kind = Kind::kApp) {
  std::erase_if(requests, [](const auto& request) { return request.second == 0; });
  return {.kind = kind, .requests = std::move(requests)};
}

Pod Guaranteed(std::vector<PodContainer> containers) {
  return {.uid = "u", .name = "p", .qos_class = "Guaranteed", .containers = std::move(containers)};
}
Pod OfClass(const std::string& qos_class, Amounts requests) {
  return {
      .uid = "u", .name = "p", .qos_class = qos_class, .containers = {Asking(std::move(requests))}};
}
/// `count` times the same container.
std::vector<PodContainer> Times(int count, const PodContainer& container) {
  return std::vector<PodContainer>(static_cast<std::size_t>(count), container);
}
std::vector<PodContainer> Join(std::vector<PodContainer> first,
                               const std::vector<PodContainer>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

MatchNode MakeNode(TopologyScope scope, const std::vector<Amounts>& zones) {
  MatchNode node{.single_numa_node = true, .scope = scope};
  for (std::size_t id = 0; id < zones.size(); ++id) {
    for (const auto& [name, amount] : zones[id]) {
      node.zones[static_cast<int>(id)][name] = ToSchedulerUnits(name, amount);
      node.allocatable.insert(name);
    }
  }
  return node;
}

constexpr char kNic[] = "vendor/nic";
constexpr char kOldNic[] = "vendor/old-nic";
constexpr char kExt[] = "vendor/ext";
constexpr char kHp[] = "hugepages-2Mi";

MatchNode NodeA() {
  return MakeNode(TopologyScope::kContainer, {{{"cpu", 4}, {"memory", 8 * kGi}, {kNic, 10}},
                                              {{"cpu", 8}, {"memory", 8 * kGi}, {kNic, 10}}});
}
MatchNode NodeB() {
  MatchNode node = MakeNode(TopologyScope::kContainer,
                            {{{"cpu", 2}, {"memory", 4 * kGi}, {kHp, 128 * kMi}, {kNic, 5}},
                             {{"cpu", 4}, {"memory", 4 * kGi}, {kHp, 128 * kMi}, {kNic, 2}}});
  node.allocatable.insert(kOldNic);
  return node;
}
MatchNode NodeP() {
  return MakeNode(TopologyScope::kPod, {{{"cpu", 2}, {"memory", 4 * kGi}, {kNic, 5}},
                                        {{"cpu", 4}, {"memory", 4 * kGi}, {kNic, 2}}});
}
MatchNode NodeX() {
  MatchNode node = NodeP();
  node.zones.erase(1);
  return node;
}
MatchNode NodeE() {
  MatchNode node = NodeA();
  node.allocatable.insert(kExt);
  return node;
}
MatchNode NodeH(TopologyScope scope) {
  return MakeNode(scope, {{{"cpu", 30}, {"memory", 60 * kGi}, {kHp, 384 * kMi}, {kNic, 16}},
                          {{"cpu", 32}, {"memory", 64 * kGi}, {kHp, 512 * kMi}, {kNic, 32}}});
}

PodContainer App(double cpu, double memory, double hugepages = 0, double nics = 0) {
  return Asking({{"cpu", cpu}, {"memory", memory}, {kHp, hugepages}, {kNic, nics}});
}
PodContainer Init(double cpu, double memory) {
  return Asking({{"cpu", cpu}, {"memory", memory}}, Kind::kInit);
}

struct MatchCase {
  std::string name;
  MatchNode node;
  Pod pod;
  std::string want;
};

class MatchRowsTest : public testing::TestWithParam<MatchCase> {};

TEST_P(MatchRowsTest, DecidesAsTheUpstreamPlugin) {
  EXPECT_EQ(MatchRefusal(GetParam().node, GetParam().pod), GetParam().want);
}

// Source: the unit tests of scheduler-plugins, pkg/noderesourcetopology, as facts/scheduler.md
// retells them.
const char* const kContainer = "cannot align container";
const char* const kInit = "cannot align init container";
const char* const kPod = "cannot align pod";
const TopologyScope kByContainer = TopologyScope::kContainer;
const TopologyScope kByPod = TopologyScope::kPod;

std::vector<MatchCase> NodeRows() {
  const auto g = [](Amounts requests) { return Guaranteed({Asking(std::move(requests))}); };
  return {
      {"BSmall", NodeB(), g({{"cpu", 2}, {"memory", 2 * kGi}, {kNic, 3}}), ""},
      {"EExtended", NodeE(), g({{"cpu", 2}, {"memory", 2 * kGi}, {kNic, 3}, {kExt, 1}}), ""},
      {"AWholeZone", NodeA(), g({{"cpu", 8}, {"memory", 8 * kGi}}), ""},
      {"ACpuTooLarge", NodeA(), g({{"cpu", 9}, {"memory", kGi}, {kNic, 3}}), kContainer},
      {"BHugepages", NodeB(), g({{"cpu", 2}, {"memory", 2 * kGi}, {kHp, 64 * kMi}, {kNic, 3}}), ""},
      {"BHugepagesTooLarge", NodeB(),
       g({{"cpu", 2}, {"memory", 2 * kGi}, {kHp, 256 * kMi}, {kNic, 3}}), kContainer},
      {"AZeroIsIgnored", NodeA(), g({{"cpu", 2}, {"memory", 2 * kGi}, {kHp, 0}, {kNic, 3}}), ""},
      {"BHostLevel", NodeB(), g({{"cpu", 2}, {"memory", 2 * kGi}, {kHp, 64 * kMi}, {kOldNic, 3}}),
       ""},
      {"BEphemeral", NodeB(),
       g({{"cpu", 2}, {"memory", 2 * kGi}, {"ephemeral-storage", 100 * kMi}}), ""},
      {"PNicsOnly", NodeP(), OfClass("BestEffort", {{kNic, 5}}), ""},
      {"PTooManyNics", NodeP(), OfClass("BestEffort", {{kNic, 20}}), kPod},
      {"ATooManyNics", NodeA(), OfClass("BestEffort", {{kNic, 20}}), kContainer},
      {"PBurstableCpuIgnored", NodeP(), OfClass("Burstable", {{"cpu", 20}, {kNic, 5}}), ""},
      {"PBurstableNics", NodeP(), OfClass("Burstable", {{"cpu", 2}, {kNic, 6}}), kPod},
      {"BBurstableNics", NodeB(), OfClass("Burstable", {{"cpu", 4}, {kNic, 11}}), kContainer},
      {"BBurstableMemoryIgnored", NodeB(), OfClass("Burstable", {{"memory", 5 * kGi}, {kNic, 5}}),
       ""},
      {"PSumTooLarge", NodeP(), Guaranteed(Times(3, App(3, kGi))), kPod},
      {"PSumFits", NodeP(), Guaranteed(Times(3, App(1, kGi))), ""},
      {"XSecondZoneDropped", NodeX(), Guaranteed(Times(3, App(1, kGi))), kPod},
  };
}

std::vector<MatchCase> ManyContainers() {
  const std::vector<PodContainer> two = Times(2, App(20, 40 * kG));
  const auto by_container = [](std::vector<PodContainer> all) {
    return std::pair(NodeH(kByContainer), Guaranteed(std::move(all)));
  };
  std::vector<MatchCase> cases;
  const auto add = [&cases](const std::string& name, std::pair<MatchNode, Pod> row,
                            const std::string& want) {
    cases.push_back({name, std::move(row.first), std::move(row.second), want});
  };
  add("TwoLarge", by_container(two), "");
  add("SecondZoneThenFirst",
      by_container({App(2, 6 * kG, 500 * kMi, 16), App(2, 6 * kG, 50 * kMi, 8)}), "");
  add("InitTooLarge", by_container(Join({Init(40, 40 * kG)}, Times(2, App(1, 4 * kG)))), kInit);
  add("InitsDoNotAddUp",
      by_container(Join(Times(3, Init(30, 10 * kG)), Join(two, {App(2, 6 * kG)}))), "");
  add("ThirdDoesNotFit",
      by_container(Join(Times(2, Init(30, 10 * kG)), Join(two, {App(20, 6 * kG)}))), kContainer);
  add("OneInitTooLarge",
      by_container({Init(20, 50 * kG), Init(40, 50 * kG), Init(3, 50 * kG), App(20, 40 * kG),
                    App(2, 6 * kG)}),
      kInit);
  const auto by_pod = [](std::vector<PodContainer> all) {
    return std::pair(NodeH(kByPod), Guaranteed(std::move(all)));
  };
  add("PodFits", by_pod({App(2, 2 * kGi), App(4, 8 * kGi), App(26, 32 * kGi, 512 * kMi, 26)}), "");
  add("PodCpuTooLarge", by_pod({App(2, 2 * kGi), App(8, 8 * kGi), App(26, 26 * kGi, 52 * kMi, 26)}),
      kPod);
  add("PodMemoryTooLarge",
      by_pod({App(2, 4 * kGi), App(4, 16 * kGi), App(26, 52 * kGi, 52 * kMi, 26)}), kPod);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(OneContainer, MatchRowsTest, testing::ValuesIn(NodeRows()),
                         [](const auto& param_info) { return param_info.param.name; });
INSTANTIATE_TEST_SUITE_P(SeveralContainers, MatchRowsTest, testing::ValuesIn(ManyContainers()),
                         [](const auto& param_info) { return param_info.param.name; });

/// The rules once more, with a list of candidate zones instead of masks and sums.
class Model {
 public:
  Model(const MatchNode& node, const Pod& pod) : node_(node), pod_(pod) {}

  std::string Decide() {
    const bool asks = pod_.qos_class != "BestEffort" || AsksVendor();
    if (!node_.single_numa_node || !asks) {
      return "";
    }
    if (node_.scope == TopologyScope::kPod) {
      std::map<std::string, double> sum;
      for (const PodContainer& container : pod_.containers) {
        for (const auto& [name, amount] : container.requests) {
          sum[name] += container.kind == Kind::kApp ? amount : 0;
        }
      }
      for (const PodContainer& container : pod_.containers) {
        for (const auto& [name, amount] : container.requests) {
          sum[name] = container.kind == Kind::kApp ? sum[name] : std::max(sum[name], amount);
        }
      }
      return Zones(sum).empty() ? "cannot align pod" : "";
    }
    for (const PodContainer& container : pod_.containers) {
      const std::vector<int> zones = Zones(container.requests);
      if (zones.empty()) {
        return container.kind == Kind::kApp    ? "cannot align container"
               : container.kind == Kind::kInit ? "cannot align init container"
                                               : "cannot align sidecar container";
      }
      if (container.kind == Kind::kApp) {
        Take(zones.front(), container.requests);
      }
    }
    return "";
  }

 private:
  bool AsksVendor() const {
    return std::any_of(pod_.containers.begin(), pod_.containers.end(), [](const auto& c) {
      return std::any_of(c.requests.begin(), c.requests.end(),
                         [](const auto& r) { return r.first.find('/') != std::string::npos; });
    });
  }
  bool Counts(const std::string& name) const {
    return pod_.qos_class == "Guaranteed" || name.find('/') != std::string::npos ||
           name == "ephemeral-storage";
  }
  std::vector<int> Zones(const std::map<std::string, double>& request) const {
    std::vector<int> fitting;
    for (int zone = 0; zone < 64; ++zone) {
      const bool fits = std::all_of(request.begin(), request.end(), [&](const auto& entry) {
        return entry.second == 0 || FitsZone(zone, entry.first, entry.second);
      });
      if (fits) {
        fitting.push_back(zone);
      }
    }
    return fitting;
  }
  bool FitsZone(int zone, const std::string& name, double amount) const {
    if (name.find('/') != std::string::npos || name.find("huge") == 0) {
      if (!node_.allocatable.contains(name)) {
        return false;
      }
    }
    const bool listed = std::any_of(node_.zones.begin(), node_.zones.end(),
                                    [&](const auto& any) { return any.second.contains(name); });
    if (!listed) {
      return name.find('/') != std::string::npos || name == "ephemeral-storage";
    }
    const auto found = node_.zones.find(zone);
    if (found == node_.zones.end() || !found->second.contains(name)) {
      return false;
    }
    const double factor = name == "cpu" ? 1000 : 1;
    return !Counts(name) ||
           static_cast<double>(found->second.at(name)) >= std::round(amount * factor);
  }
  void Take(int zone, const std::map<std::string, double>& request) {
    const auto found = node_.zones.find(zone);
    for (const auto& [name, amount] : request) {
      if (found != node_.zones.end() && found->second.contains(name) && Counts(name)) {
        found->second[name] -= std::llround(amount * (name == "cpu" ? 1000 : 1));
      }
    }
  }

  MatchNode node_;
  Pod pod_;
};

class RandomRows {
 public:
  MatchNode Node() {
    MatchNode node{.single_numa_node = Pick(10) != 0,
                   .scope = Pick(2) == 0 ? TopologyScope::kContainer : TopologyScope::kPod};
    for (int zones = Pick(5); zones > 0; --zones) {
      SchedulerAmounts& amounts = node.zones[Pick(4) == 0 ? Pick(64) : zones];
      for (const char* name : kNames) {
        if (Pick(5) != 0) {
          amounts[name] = int64_t{Pick(9)} * (std::string(name) == "cpu" ? 500 : 1);
        }
      }
    }
    for (const char* name : kNames) {
      if (Pick(6) != 0) {
        node.allocatable.insert(name);
      }
    }
    return node;
  }
  Pod MakePod() {
    Pod pod{.uid = "u", .name = "p"};
    pod.qos_class = std::vector<std::string>{"Guaranteed", "Burstable", "BestEffort"}[Index(3)];
    for (int inits = Pick(3); inits > 0; --inits) {
      Add(pod, Pick(3) == 0 ? Kind::kSidecar : Kind::kInit);
    }
    for (int apps = 1 + Pick(3); apps > 0; --apps) {
      Add(pod, Kind::kApp);
    }
    return pod;
  }

 private:
  static constexpr const char* kNames[] = {"cpu",        "memory",     "hugepages-2Mi",
                                           "vendor/nic", "vendor/gpu", "ephemeral-storage"};
  int Pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  std::size_t Index(int count) { return static_cast<std::size_t>(Pick(count)); }
  void Add(Pod& pod, Kind kind) {
    PodContainer container{.kind = kind};
    for (const char* name : kNames) {
      if (const double amount = Pick(2) == 0 ? Pick(6) : 0; amount > 0) {
        container.requests[name] = std::string(name) == "cpu" ? amount / 2 : amount;
      }
    }
    pod.containers.push_back(std::move(container));
  }

  std::mt19937 random_{20261122};
};

TEST(MatchModelTest, AgreesWithTheModelOnRandomRows) {
  constexpr int kRows = 100'000;
  RandomRows random;
  int refused = 0;
  for (int row = 0; row < kRows; ++row) {
    const MatchNode node = random.Node();
    const Pod pod = random.MakePod();
    const std::string decided = MatchRefusal(node, pod);
    ASSERT_EQ(decided, Model(node, pod).Decide()) << "row " << row;
    refused += decided.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, kRows / 10);
  EXPECT_LT(refused, kRows * 9 / 10);
}

TEST(ReadMatchNodeTest, ReadsZonesPolicyAndScope) {
  const MatchNode node = ReadMatchNode(nlohmann::json::parse(R"({
    "topologyPolicies": ["BestEffort"],
    "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"},
                   {"name": "topologyManagerScope", "value": "pod"},
                   {"name": "topologyManagerPolicy", "value": "numeric"}],
    "zones": [{"name": "node-1", "type": "Node",
               "resources": [{"name": "cpu", "available": "1500m"},
                             {"name": "memory", "available": 4096},
                             {"name": "vendor/nic", "available": "many"}]},
              {"name": "node-64", "type": "Node"}, {"name": "node-2", "type": "Socket"},
              {"name": "zone-3", "type": "Node"}]})"));
  EXPECT_TRUE(node.single_numa_node);
  EXPECT_EQ(node.scope, TopologyScope::kPod);
  EXPECT_EQ(node.zones, (std::map<int, SchedulerAmounts>{{1, {{"cpu", 1500}, {"memory", 4096}}}}));
}

TEST(ReadMatchNodeTest, ReadsTheOldPolicyWithoutAttributes) {
  const MatchNode node =
      ReadMatchNode(nlohmann::json::parse(R"({"topologyPolicies": ["SingleNUMANodePodLevel"]})"));
  EXPECT_TRUE(node.single_numa_node);
  EXPECT_EQ(node.scope, TopologyScope::kPod);
}

TEST(MatchResourceTest, JoinsTheTopologyWithTheNodesNames) {
  HandleRegistry handles;
  handles.Register(kNumaMatch, MakeMatchHandle);
  const auto cache = *ClusterCache::Make(handles);
  const auto body = std::make_shared<const nlohmann::json>(nlohmann::json::parse(R"({
    "metadata": {"name": "n1"},
    "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
    "zones": [{"name": "node-0", "type": "Node",
               "resources": [{"name": "vendor/nic", "available": "2"}]}]})"));
  cache->SetObject(kTopologies, {.name = "n1", .body = body});
  cache->SetNode({.name = "n1"});
  const auto refusal = [&](double nics) {
    return RefusalOf(*cache->Publish(), handles, OfClass("BestEffort", {{"vendor/nic", nics}}),
                     "n1");
  };
  EXPECT_EQ(refusal(1), "cannot align container");
  cache->SetNode({.name = "n1", .allocatable = {{"vendor/nic", 2}}});
  EXPECT_EQ(refusal(2), "");
  EXPECT_EQ(refusal(3), "cannot align container");
  cache->DeleteObject(kTopologies, "n1", "");
  EXPECT_EQ(refusal(3), "");
}

}  // namespace
}  // namespace qrm::scheduler::match_rules_test
