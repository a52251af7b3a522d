// Builds each part of the document in its own function.
#include "manager/control/page_document.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "manager/control/page_decisions.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

using Json = nlohmann::ordered_json;
using checkpoint::ContainerRecord;
using checkpoint::PodRecord;

constexpr std::size_t kMostSentences = 20;
constexpr std::size_t kMostSentenceBytes = 600;

std::string Sentence(const std::string& text) {
  return Escaped(Cut(text, kMostSentenceBytes));
}

Json Sentences(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) {
    if (list.size() == kMostSentences) {
      list.push_back(fmt::format("and {} more: qrmctl status", texts.size() - kMostSentences));
      break;
    }
    list.push_back(Sentence(text));
  }
  return list;
}

/// The CPUs of `node`: a list of L3 caches, each a list of cores, each a list of CPUs.
Json CachesOf(const Machine& machine, const NumaNode& node) {
  std::map<int, std::map<int, Json>> caches;
  for (const int id : node.cpus) {
    if (const Cpu* cpu = machine.FindCpu(id); cpu != nullptr) {
      caches[cpu->l3][cpu->core].push_back(id);
    }
  }
  Json list = Json::array();
  for (const auto& [l3, cores] : caches) {
    Json& cache = list.emplace_back(Json::array());
    for (const auto& [core, cpus] : cores) {
      cache.push_back(cpus);
    }
  }
  return list;
}

Json NodesJson(const checkpoint::NodeState& state, const Machine& machine) {
  Json list = Json::array();
  const std::vector<v1::NodeUse> uses = NodeUses(state, machine);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const NumaNode& node = machine.nodes()[i];
    list.push_back({{"id", node.id},
                    {"package", node.package},
                    {"caches", CachesOf(machine, node)},
                    {"own", uses[i].exclusive_cpus()},
                    {"shared", uses[i].shared_cpus()},
                    {"free", uses[i].free_cpus()},
                    {"memory", node.memory_bytes},
                    {"memory_given", uses[i].memory_bytes()}});
  }
  return list;
}

Json PoolsJson(const NodeStatus& status) {
  Json list = Json::array();
  for (const PoolStatus& pool : status.pools) {
    Json entry = {{"resource", Quoted(pool.resource)},
                  {"name", Quoted(pool.pool)},
                  {"cpus", ToString(pool.cpus)}};
    if (pool.changed()) {
      entry["configured"] = ToString(pool.configured);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json PluginsJson(std::vector<PluginInfo> plugins) {
  std::sort(plugins.begin(), plugins.end(),
            [](const PluginInfo& a, const PluginInfo& b) { return a.resource < b.resource; });
  Json list = Json::array();
  for (const PluginInfo& plugin : plugins) {
    const bool suspect = plugin.live && !plugin.problem.empty();
    list.push_back({{"resource", Quoted(plugin.resource)},
                    {"state", suspect       ? "suspect"
                              : plugin.live ? "live"
                                            : "away"},
                    {"registered_by", std::string(ToString(plugin.registered_by))},
                    {"problem", Sentence(plugin.problem)}});
  }
  return list;
}

/// Adds the container's CPUs, its memory nodes, and the amounts of other resources.
void FillAllocations(const ContainerRecord& record, Json& container) {
  CpuSet cpus;
  bool is_own = false;
  Json holds = Json::object();
  for (const auto& [resource, allocation] : record.allocations) {
    if (allocation->oci_property == kCpusetCpus) {
      cpus |= CpuSet::Parse(allocation->value).value_or(CpuSet{});
      is_own = is_own || allocation->exclusive;
    } else {
      holds[Quoted(resource)] = allocation->quantity;
    }
    if (allocation->oci_property == kCpusetMems) {
      container["mems"] = Quoted(allocation->value);
    }
  }
  container["cpus"] = ToString(cpus);
  container["own"] = is_own;
  container["holds"] = std::move(holds);
}

void AddContainers(const PodRecord& pod, const RemarksSource& remarks_of, Json& list) {
  for (const auto& [name, record] : pod.containers) {
    Json container = {{"id", PageIdOf({pod.meta.uid, name})},
                      {"namespace", Quoted(pod.meta.pod_namespace)},
                      {"pod", Quoted(pod.meta.name)},
                      {"container", Quoted(name)},
                      {"role", Quoted(pod.meta.role)}};
    FillAllocations(*record, container);
    const ContainerRemarks remarks = remarks_of(pod, name);
    if (!remarks.runs_without.empty()) {
      container["without"] = Sentences(remarks.runs_without);
    }
    if (!remarks.class_problems.empty()) {
      container["state"] = "incomplete";
      container["why"] = Sentence(remarks.class_problems.front());
    } else if (!record->skipped.empty() || !remarks.rejected.empty()) {
      container["state"] = record->skipped.empty() ? "incomplete" : "skipped";
      container["why"] =
          Sentence(record->skipped.empty() ? remarks.rejected : record->skipped.str());
    }
    list.push_back(std::move(container));
  }
}

Json ContainersJson(const checkpoint::NodeState& state, const RemarksSource& remarks_of) {
  std::vector<const PodRecord*> pods;
  state.ForEachPod([&](const PodRecord& pod) { pods.push_back(&pod); });
  std::sort(pods.begin(), pods.end(), [](const PodRecord* a, const PodRecord* b) {
    return std::tie(a->meta.pod_namespace, a->meta.name, a->meta.uid) <
           std::tie(b->meta.pod_namespace, b->meta.name, b->meta.uid);
  });
  Json list = Json::array();
  for (const PodRecord* pod : pods) {
    if (list.size() + pod->containers.size() > kMostPageContainers) {
      break;
    }
    AddContainers(*pod, remarks_of, list);
  }
  return list;
}

/// Adds the containers that have no record to `list`.
std::size_t AddUnplaced(const PageSources& sources, Json& list) {
  std::size_t left_out = 0;
  for (const UnplacedContainer& unplaced : sources.unplaced) {
    if (sources.state.Find(unplaced.key) != nullptr) {
      continue;
    }
    if (list.size() >= kMostPageContainers) {
      ++left_out;
      continue;
    }
    list.push_back({{"id", PageIdOf(unplaced.key)},
                    {"namespace", Quoted(unplaced.pod_namespace)},
                    {"pod", Quoted(unplaced.pod_name)},
                    {"container", Quoted(unplaced.key.container)},
                    {"role", ""},
                    {"cpus", ""},
                    {"own", false},
                    {"holds", Json::object()},
                    {"state", unplaced.state == UnplacedState::kSkipped ? "skipped" : "unpinned"},
                    {"why", Sentence(unplaced.why)}});
  }
  return left_out;
}

std::string RuntimeText(const NodeStatus& status) {
  return fmt::format("{} {}", Quoted(status.runtime.runtime.name),
                     Quoted(status.runtime.runtime.version));
}

}  // namespace

std::string PageDocument(const PageSources& sources) {
  const NodeStatus& status = sources.status;
  Json document = {{"node", Quoted(sources.node_name)},
                   {"version", status.version},
                   {"ready", status.ready()},
                   {"not_ready", Sentences(status.not_ready_reasons)},
                   {"degraded", Sentences(status.degraded_reasons)},
                   {"warnings", Sentences(status.warnings)},
                   {"policy", status.topology_policy},
                   {"runtime", RuntimeText(status)},
                   {"mode", std::string(ToString(status.runtime.mode))},
                   {"nodes", NodesJson(sources.state, sources.machine)},
                   {"offline", ToString(sources.machine.OfflineNow())},
                   {"pools", PoolsJson(status)},
                   {"plugins", PluginsJson(sources.plugins)},
                   {"containers", ContainersJson(sources.state, sources.remarks_of)}};
  const std::size_t left_out = sources.state.container_count() - document["containers"].size();
  document["containers_left_out"] = left_out + AddUnplaced(sources, document["containers"]);
  std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  return text + ",\"decisions\":" + sources.latest_decisions + "}";
}

}  // namespace qrm::manager
