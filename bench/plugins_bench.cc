// The speed of the plugins themselves: hints and allocations beside few and many containers, on
// machines of few and many NUMA nodes, and the cost of a change of many pools.
//   plugins_bench [--smoke]
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/base/section.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "topology/discovery.h"

namespace qrm {
namespace {

constexpr int kRounds = 300;
constexpr int kSmokeRounds = 3;
constexpr int kPools = 20;

Machine MachineOf(int nodes) {
  StatusOr<Machine> machine =
      Discover({.kind = MachineSource::Kind::kSynthetic,
                .argument = fmt::format("package:{} [numa(memory=64GiB)] core:{} pu:2", nodes,
                                        512 / nodes)});
  QRM_CHECK(machine.ok());
  return *std::move(machine);
}

config::Section SectionOf(const std::string& text) {
  StatusOr<config::Section> section = config::Section::Parse(text, "bench");
  QRM_CHECK(section.ok());
  return *std::move(section);
}

/// Roles own and p0 to p19; the pools follow their containers.
std::string CpuKeys() {
  std::string text = "roles: {own: {numa: one, share-numa-with: [\"*\"]}}\npools:\n";
  for (int i = 0; i < kPools; ++i) {
    text += fmt::format("  p{0}: {{size: {{min: 1}}, roles: [p{0}]}}\n", i);
  }
  return text + "  default: {size: {min: 2}}\n";
}

constexpr char kMemoryKeys[] = "roles: {own: {numa: one, share-numa-with: [\"*\"]}}";

ContainerRequest RequestOf(int pod, const std::string& role, const std::string& resource,
                           double amount) {
  const std::string name = fmt::format("pod{}", pod);
  return {.key = {name + "-uid", "c"},
          .pod_namespace = "default",
          .pod_name = name,
          .pod_role = role,
          .resource = resource,
          .requests = {{resource, amount}},
          .native_qos_class = "Burstable"};
}

/// One plugin, and its allocations.
struct Node {
  std::unique_ptr<sdk::ResourcePlugin> plugin;
  sdk::Grants grants;

  void Admit(const ContainerRequest& request) {
    const StatusOr<HintList> hints = plugin->Hints(request);
    QRM_CHECK(hints.ok());
    const TopologyHint hint = hints->hints().empty() ? TopologyHint() : hints->hints().front();
    StatusOr<ResourceAllocation> given = plugin->Allocate(request, hint);
    QRM_CHECK(given.ok());
    grants[request.key] = {.request = request, .allocation = *std::move(given)};
  }
  void Remove(const ContainerKey& key) {
    plugin->Remove({key});
    grants.erase(key);
  }
  void Reconcile() {
    const auto changed = plugin->Reconcile(grants);
    QRM_CHECK(changed.ok());
    for (const auto& [key, allocation] : *changed) {
      grants.at(key).allocation = allocation;
    }
  }
};

Node MakeCpuNode(int nodes) {
  auto config = cpu::ParseCpuConfig(SectionOf(CpuKeys()));
  QRM_CHECK(config.ok());
  auto plugin = cpu::MakeCpuPlugin(*config, MachineOf(nodes));
  QRM_CHECK(plugin.ok());
  return {.plugin = *std::move(plugin)};
}

Node MakeMemoryNode(int nodes) {
  auto config = memory::ParseMemoryConfig(SectionOf(kMemoryKeys));
  QRM_CHECK(config.ok());
  auto plugin = memory::MakeMemoryPlugin(*config, MachineOf(nodes));
  QRM_CHECK(plugin.ok());
  return {.plugin = *std::move(plugin)};
}

/// A third of the containers have exclusive CPUs, the others share pools.
void Fill(Node& node, const std::string& resource, int containers, double amount) {
  for (int i = 0; i < containers; ++i) {
    node.Admit(RequestOf(i, i % 3 == 0 ? "own" : fmt::format("p{}", i % kPools), resource, amount));
  }
  node.Reconcile();
}

/// The median of hints and allocation of one more container, which is then removed.
double Placing(Node& node, const ContainerRequest& request, int rounds) {
  std::vector<double> samples;
  for (int i = 0; i < rounds; ++i) {
    samples.push_back(bench::MicrosecondsOf([&] { node.Admit(request); }));
    node.Remove(request.key);
    node.Reconcile();
  }
  return bench::Median(samples);
}

bool JudgePlacing(int rounds) {
  constexpr double kGiB = 1U << 30;
  constexpr double kFew = 100;
  constexpr double kOnManyNodes = 500;
  bool all = true;
  for (const int nodes : {2, 8, 64}) {
    for (const int containers : {10, 500}) {
      const double limit = nodes == 64 ? kOnManyNodes : kFew;
      Node cpu = MakeCpuNode(nodes);
      Fill(cpu, cpu::kResource, containers, 1);
      Node memory = MakeMemoryNode(nodes);
      Fill(memory, memory::kResource, containers, kGiB / 16);
      const std::pair<std::string, double> results[] = {
          {"exclusive CPUs", Placing(cpu, RequestOf(9999, "own", cpu::kResource, 2), rounds)},
          {"a pool", Placing(cpu, RequestOf(9999, "p7", cpu::kResource, 2), rounds)},
          {"memory", Placing(memory, RequestOf(9999, "own", memory::kResource, kGiB), rounds)}};
      for (const auto& [what, measured] : results) {
        all &=
            bench::Judge(fmt::format("place {}, {} nodes, {} containers", what, nodes, containers),
                         limit, measured, "us");
      }
    }
  }
  return all;
}

/// All containers of all pools get other CPUs: one pool grows, and the next reconcile reports all.
bool JudgeReplan(int rounds) {
  constexpr double kLimit = 2;
  constexpr double kMicrosPerMilli = 1000;
  Node node = MakeCpuNode(8);
  for (int i = 0; i < 500; ++i) {
    node.Admit(RequestOf(i, fmt::format("p{}", i % kPools), cpu::kResource, 2));
  }
  node.Reconcile();
  std::vector<double> samples;
  for (int i = 0; i < rounds; ++i) {
    const ContainerRequest more =
        RequestOf(9999, fmt::format("p{}", i % kPools), cpu::kResource, 40);
    samples.push_back(bench::MicrosecondsOf([&] {
                        node.Admit(more);
                        node.Reconcile();
                      }) /
                      kMicrosPerMilli);
    node.Remove(more.key);
    node.Reconcile();
  }
  return bench::Judge("plan 500 containers in 20 pools again, and report them", kLimit,
                      bench::Median(samples), "ms");
}

int Main(const bench::CommandLine& options) {
  const int rounds = options.smoke ? kSmokeRounds : kRounds;
  const bool placed = JudgePlacing(rounds);
  return options.StatusOf(JudgeReplan(rounds) && placed);
}

}  // namespace
}  // namespace qrm

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::Main(qrm::bench::ReadCommandLine(argc, argv));
}
