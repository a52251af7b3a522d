// For any requests in any order, hints are exactly the nodes where all containers can have what
// they were promised. For every union of NUMA nodes, the promised memory is at most the existing
// memory.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/memory/policy.h"
#include "plugins/memory/state.h"
#include "test/plugins/example_machine.h"
#include "test/support/rounds.h"

namespace qrm::memory::hall_property_test {
namespace {

constexpr char kConfig[] = R"(
roles:
  one: {share-numa-with: ["*"]}
  fewest: {numa: fewest, share-numa-with: ["*"]}
  even: {numa: even, share-numa-with: ["*"]}
)";
constexpr const char* kRoles[] = {"one", "fewest", "even"};
constexpr char kHugepages[] = "hugepages-2";

NumaMask MaskOf(int bits) {
  NumaMask mask;
  for (int node = 0; bits >> node != 0; ++node) {
    if ((bits >> node & 1) != 0) {
      mask.Add(node);
    }
  }
  return mask;
}

/// The amount that `request` must have on `nodes`, by docs/configuration-plugins.md.
std::vector<MemoryBlock> DemandsOn(const ContainerRequest& request, const NumaMask& nodes) {
  const MemoryBytes asked = *BytesOf(request);
  std::vector<MemoryBlock> demands;
  for (const auto& [type, bytes] : asked) {
    if (type != kOrdinaryMemory || request.pod_role != "even") {
      demands.push_back({.nodes = nodes, .type = type, .bytes = bytes});
      continue;
    }
    const auto count = static_cast<uint64_t>(nodes.Count());
    uint64_t more_by_one = bytes % count;
    for (const int node : nodes) {
      demands.push_back(
          {.nodes = {node}, .type = type, .bytes = bytes / count + (more_by_one > 0 ? 1 : 0)});
      more_by_one -= more_by_one > 0 ? 1 : 0;
    }
  }
  return demands;
}

/// One random history of containers on one random machine.
class History {
 public:
  explicit History(unsigned seed) : random_(seed) {
    config_ = *ParseMemoryConfig(*config::Section::Parse(kConfig, "memory.yaml"));
    MachineParts parts;
    const int nodes = 1 + Below(5);
    for (int id = 0; id < nodes; ++id) {
      const auto pages = static_cast<uint64_t>(Below(5));
      const auto ordinary = static_cast<uint64_t>(Below(12));
      parts.nodes.push_back(
          {.id = id, .memory_bytes = ordinary + 2 * pages, .hugepages = {{2, pages}}});
      has_[kOrdinaryMemory][id] = ordinary;
      has_[kHugepages][id] = 2 * pages;
    }
    machine_ = Machine(std::move(parts));
  }

  void Step() {
    switch (Below(8)) {
      case 0:
        Remove(Below(pods_ + 1));
        break;
      case 1:
        Resize(Below(pods_ + 1));
        break;
      case 2:
        Restart();
        break;
      default:
        Admit();
    }
    CheckSplit();
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  View ViewOf() const { return {machine_, config_, bindings_}; }
  static ContainerKey KeyOf(int pod) { return {"pod" + std::to_string(pod) + "-uid", "c0"}; }

  /// Hall's condition, with `more` in addition to the present allocations.
  bool Holds(const std::vector<MemoryBlock>& more) const {
    for (const auto& [type, by_node] : has_) {
      for (int bits = 1; bits < 1 << by_node.size(); ++bits) {
        const NumaMask all = MaskOf(bits);
        uint64_t has = 0;
        uint64_t promised = 0;
        for (const int node : all) {
          has += by_node.at(node);
        }
        const auto count = [&, &type = type](const std::vector<MemoryBlock>& demands) {
          for (const MemoryBlock& demand : demands) {
            promised += demand.type == type && demand.nodes.IsSubsetOf(all) ? demand.bytes : 0;
          }
        };
        count(more);
        for (const auto& [key, demands] : demands_) {
          count(demands);
        }
        if (promised > has) {
          return false;
        }
      }
    }
    return true;
  }

  void Admit() {
    ContainerRequest request =
        test::Request("pod" + std::to_string(++pods_), kRoles[Below(3)], "memory", 1 + Below(14));
    if (Below(3) == 0) {
      request.requests.Edit()[kHugepages] = 2 * Below(5);
    }
    std::set<std::string> wanted;
    for (int bits = 1; bits < 1 << machine_.nodes().size(); ++bits) {
      const NumaMask mask = MaskOf(bits);
      if ((request.pod_role != "one" || mask.Count() == 1) && Holds(DemandsOn(request, mask))) {
        wanted.insert(ToString(mask));
      }
    }
    const StatusOr<HintList> hints = MemoryHints(ViewOf(), request);
    ASSERT_EQ(hints.ok(), !wanted.empty()) << hints.status();
    if (!hints.ok()) {
      ASSERT_FALSE(PlaceContainer(ViewOf(), request, {}).ok());
      return;
    }
    std::set<std::string> offered;
    for (const TopologyHint& hint : hints->hints()) {
      offered.insert(ToString(hint.nodes));
      const StatusOr<Decision> decision = PlaceContainer(ViewOf(), request, hint);
      ASSERT_TRUE(decision.ok()) << decision.status();
      ASSERT_EQ(decision->allocation.value, ToString(hint.nodes));
    }
    ASSERT_EQ(offered, wanted);
    const auto chosen = static_cast<std::size_t>(Below(static_cast<int>(hints->hints().size())));
    Place(request, hints->hints()[chosen]);
  }

  void Place(const ContainerRequest& request, const TopologyHint& hint) {
    StatusOr<Decision> decision = PlaceContainer(ViewOf(), request, hint);
    ASSERT_TRUE(decision.ok()) << decision.status();
    demands_[request.key] = DemandsOn(request, hint.nodes);
    grants_[request.key] = {.request = request, .allocation = decision->allocation};
    Note(request.key, *std::move(decision), bindings_);
    for (const auto& [key, allocation] : ChangedAllocations(bindings_, grants_)) {
      grants_.at(key).allocation = allocation;
    }
  }

  void Remove(int pod) {
    bindings_.erase(KeyOf(pod));
    demands_.erase(KeyOf(pod));
    grants_.erase(KeyOf(pod));
  }

  /// A resize in place: on the same nodes, or not at all.
  void Resize(int pod) {
    const auto grant = grants_.find(KeyOf(pod));
    if (grant == grants_.end()) {
      return;
    }
    ContainerRequest request = grant->second.request;
    const TopologyHint held{.nodes = NodesOf(bindings_.at(request.key)), .preferred = true};
    ASSERT_EQ(MemoryHints(ViewOf(), request)->hints(), std::vector<TopologyHint>{held});
    request.requests.Edit()["memory"] = 1 + Below(14);
    const auto former = bindings_.extract(request.key);
    const auto demands = demands_.extract(request.key);
    const bool fits = Holds(DemandsOn(request, held.nodes));
    const StatusOr<Decision> decision = PlaceContainer(ViewOf(), request, held);
    if (fits) {
      ASSERT_TRUE(decision.ok()) << decision.status();
      ASSERT_EQ(decision->allocation.value, ToString(held.nodes));
      Place(request, held);
      return;
    }
    ASSERT_TRUE(!decision.ok() ||
                NumaMask::Parse(decision->allocation.value)->IsSubsetOf(held.nodes));
    bindings_[request.key] = former.mapped();
    demands_[request.key] = demands.mapped();
  }

  void Restart() {
    Rebuilt rebuilt = Rebuild(machine_, config_, {}, grants_);
    ASSERT_TRUE(rebuilt.repairs.empty()) << rebuilt.repairs.front();
    ASSERT_EQ(rebuilt.bindings, bindings_);
    bindings_ = std::move(rebuilt.bindings);
  }

  /// The reported split proves that all containers have what they were promised.
  void CheckSplit() const {
    std::map<int, uint64_t> sums;
    for (const auto& [key, binding] : bindings_) {
      for (const auto& [node, bytes] : binding.bytes_by_node) {
        sums[node] += bytes;
      }
    }
    for (const auto& [node, bytes] : sums) {
      ASSERT_LE(bytes, has_.at(kOrdinaryMemory).at(node));
    }
    ASSERT_TRUE(Holds({}));
  }

  std::mt19937 random_;
  MemoryPluginConfig config_;
  Machine machine_;
  std::map<std::string, std::map<int, uint64_t>> has_;  // by type
  Bindings bindings_;
  std::map<ContainerKey, std::vector<MemoryBlock>> demands_;
  sdk::Grants grants_;
  int pods_ = 0;
};

TEST(MemoryHallTest, OffersExactlyTheNodesWhereAllCanHaveWhatTheyWerePromised) {
  for (unsigned seed = 1; seed <= test::Rounds(300); ++seed) {
    History history(seed);
    for (int step = 0; step < 40; ++step) {
      history.Step();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace qrm::memory::hall_property_test
