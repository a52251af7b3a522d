// Collects metrics with one function per source: the daemon, the runtime, the reconcile loop, the
// state, the plugins.
#include "manager/observability/node_collector.h"

#include <chrono>
#include <string>
#include <utility>

#include <prometheus/metric_family.h>

#include "api/base/rejected.h"
#include "manager/observability/node_services.h"
#include "manager/registry/plugins.h"
#include "manager/state/allocation_check.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Families = std::vector<MetricFamily>;
using Labels = std::vector<ClientMetric::Label>;

ClientMetric MetricOf(MetricType type, double value, Labels labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

void AddGauge(Families& families, const std::string& name, const std::string& help, double value,
              Labels labels = {}) {
  families.push_back(
      {name, help, MetricType::Gauge, {MetricOf(MetricType::Gauge, value, std::move(labels))}});
}

void AddCounter(Families& families, const std::string& name, const std::string& help,
                uint64_t value) {
  families.push_back({name,
                      help,
                      MetricType::Counter,
                      {MetricOf(MetricType::Counter, static_cast<double>(value))}});
}

double OneIf(bool condition) {
  return condition ? 1 : 0;
}

double SecondsSince(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

void AddNode(const NodeStatus& status, Families& families) {
  AddGauge(families, "qrm_build_info", "Always 1; the version is a label.", 1,
           {{"version", status.version}});
  AddGauge(families, "qrm_ready", "1 when containers can be admitted.", OneIf(status.ready()));
  AddGauge(families, "qrm_uptime_seconds", "Time since qrmd started.",
           SecondsSince(status.started));
  AddGauge(families, "qrm_warnings", "Repairs and workarounds since qrmd started.",
           static_cast<double>(status.warnings.size()));
  AddGauge(families, "qrm_kubelet_conflicts",
           "kubelet managers with a static policy; while there is one, qrmd changes no container.",
           static_cast<double>(status.kubelet_conflicts.size()));
  AddGauge(families, "qrm_requests_estimated",
           "1 while kubelet reports no pod specs, so that requests are estimated.",
           OneIf(status.requests.estimated()));
}

void AddUnplaced(const NodeStatus& status, Families& families) {
  AddGauge(families, "qrm_unplaced_containers",
           "Unpinned containers: running containers that were rejected.",
           static_cast<double>(status.unplaced_containers));
  AddGauge(families, "qrm_incomplete_containers",
           "Containers that have an allocation but run without something that they request.",
           static_cast<double>(status.incomplete_containers));
  AddGauge(families, "qrm_pending_resizes",
           "Containers that run with less than they request now, until there is room.",
           static_cast<double>(status.pending_containers));
}

/// Current failures; past failures do not count.
void AddFailing(const NodeStatus& status, Families& families) {
  AddGauge(families, "qrm_not_ready_reasons", "Reasons why new containers are rejected.",
           static_cast<double>(status.not_ready_reasons.size()));
  AddGauge(families, "qrm_degraded_reasons", "Things that work worse than they should.",
           static_cast<double>(status.degraded_reasons.size()));
  AddGauge(families, "qrm_disk_failing", "1 while the disk does not accept changes of the state.",
           OneIf(!status.disk_problem.empty()));
  AddGauge(families, "qrm_reconcile_failing", "1 when the latest reconcile run had a problem.",
           OneIf(!status.reconcile.last_problem.empty()));
}

void AddClipped(const PoolStatus& pool, const Labels& labels, MetricFamily& family) {
  for (const auto& [clip, by] :
       {std::pair(PoolClip::kMax, "max"), std::pair(PoolClip::kRoom, "room")}) {
    Labels with_cause = labels;
    with_cause.push_back({"by", by});
    family.metric.push_back(
        MetricOf(MetricType::Gauge, OneIf(pool.clipped == clip), std::move(with_cause)));
  }
}

void AddPools(const std::vector<PoolStatus>& pools, Families& families) {
  if (pools.empty()) {
    return;
  }
  MetricFamily cpus{"qrm_pool_cpus", "CPUs of a pool of a built-in plugin.", MetricType::Gauge, {}};
  MetricFamily changed{
      "qrm_pool_changed", "1 while a pool has other CPUs than configured.", MetricType::Gauge, {}};
  MetricFamily wished{"qrm_pool_wished_cpus",
                      "CPUs that the containers of an elastic pool request, and at least its min.",
                      MetricType::Gauge,
                      {}};
  MetricFamily clipped{"qrm_pool_clipped",
                       "1 while an elastic pool has fewer CPUs than qrm_pool_wished_cpus, by the "
                       "limit: max or room.",
                       MetricType::Gauge,
                       {}};
  for (const PoolStatus& pool : pools) {
    const Labels labels = {{"resource", pool.resource}, {"pool", pool.pool}};
    cpus.metric.push_back(MetricOf(MetricType::Gauge, pool.cpus.Count(), labels));
    changed.metric.push_back(MetricOf(MetricType::Gauge, OneIf(pool.changed()), labels));
    if (pool.wished_cpus.has_value()) {
      wished.metric.push_back(MetricOf(MetricType::Gauge, *pool.wished_cpus, labels));
      AddClipped(pool, labels, clipped);
    }
  }
  families.push_back(std::move(cpus));
  families.push_back(std::move(changed));
  for (MetricFamily* const family : {&wished, &clipped}) {
    if (!family->metric.empty()) {
      families.push_back(std::move(*family));
    }
  }
}

void AddNumaNodes(const std::vector<NumaStatus>& nodes, Families& families) {
  struct Row {
    const char* name;
    const char* help;
    double (*value)(const NumaStatus& node);
  };
  constexpr Row kRows[] = {
      {"qrm_numa_node_own_cpus", "Exclusive CPUs of a NUMA node.",
       [](const NumaStatus& node) { return static_cast<double>(node.own_cpus); }},
      {"qrm_numa_node_unowned_cpus", "CPUs of a NUMA node that are not exclusive.",
       [](const NumaStatus& node) { return static_cast<double>(node.unowned_cpus); }},
      {"qrm_numa_node_idle_cpus", "CPUs of a NUMA node that are not exclusive and in no pool.",
       [](const NumaStatus& node) { return static_cast<double>(node.idle_cpus); }},
      {"qrm_numa_node_lent_cpus", "CPUs of a NUMA node that pools lend to other pools.",
       [](const NumaStatus& node) { return static_cast<double>(node.lent_cpus); }},
      {"qrm_numa_node_headroom_cpus", "CPUs of a NUMA node that batch work can count on.",
       [](const NumaStatus& node) { return node.headroom_cpus; }},
      {"qrm_numa_node_unbound_memory_bytes", "Memory of a NUMA node that no container is bound to.",
       [](const NumaStatus& node) { return static_cast<double>(node.unbound_memory_bytes); }},
  };
  if (nodes.empty()) {
    return;
  }
  for (const Row& row : kRows) {
    MetricFamily family{row.name, row.help, MetricType::Gauge, {}};
    for (const NumaStatus& node : nodes) {
      family.metric.push_back(
          MetricOf(MetricType::Gauge, row.value(node), {{"node", std::to_string(node.node)}}));
    }
    families.push_back(std::move(family));
  }
}

void AddMode(RuntimeMode mode, Families& families) {
  MetricFamily family{"qrm_runtime_mode",
                      "1 for the way qrmd learns of containers: nri, observer (over CRI, pins "
                      "containers after their start) or none.",
                      MetricType::Gauge,
                      {}};
  for (const RuntimeMode each : {RuntimeMode::kNri, RuntimeMode::kObserver, RuntimeMode::kNone}) {
    family.metric.push_back(
        MetricOf(MetricType::Gauge, OneIf(each == mode), {{"mode", std::string(ToString(each))}}));
  }
  families.push_back(std::move(family));
}

void AddRuntime(const RuntimeStatus& runtime, Families& families) {
  AddMode(runtime.mode, families);
  AddGauge(families, "qrm_nri_connected", "1 while the runtime calls qrmd over NRI.",
           OneIf(runtime.nri_connected));
  AddCounter(families, "qrm_nri_connects_total", "Connections to the runtime's NRI socket.",
             runtime.nri_connects);
  AddCounter(families, "qrm_nri_disconnects_total", "NRI connections that ended.",
             runtime.nri_disconnects);
  AddGauge(families, "qrm_cri_reachable", "1 when the runtime answered the latest probe over CRI.",
           OneIf(runtime.cri_reachable));
  if (runtime.last_sync.has_value()) {
    AddGauge(families, "qrm_runtime_sync_age_seconds",
             "Time since the runtime last reported all pods and containers over NRI.",
             SecondsSince(*runtime.last_sync));
  }
}

void AddReconcile(const ReconcileStatus& reconcile, Families& families) {
  AddCounter(families, "qrm_reconcile_runs_total",
             "Runs of the reconcile loop that compared everything.", reconcile.runs);
  AddCounter(families, "qrm_reconcile_updates_total",
             "Container updates that the runtime accepted.", reconcile.updates);
  AddGauge(families, "qrm_deferred_updates",
           "Containers whose CPUs in the kernel the runtime does not know yet.",
           static_cast<double>(reconcile.deferred));
  AddCounter(families, "qrm_reconcile_failures_total",
             "Container updates and plugin answers that failed in the reconcile loop.",
             reconcile.failures);
  AddCounter(families, "qrm_drift_repairs_total",
             "Cpuset drift corrected: cpusets that another writer set and qrmd replaced.",
             reconcile.drift_repairs);
  AddGauge(families, "qrm_reconcile_period_seconds",
           "The period in which the reconcile loop should compare everything.",
           std::chrono::duration<double>(reconcile.period).count());
  if (reconcile.last.has_value()) {
    AddGauge(families, "qrm_reconcile_age_seconds", "Time since the reconcile loop last ran.",
             SecondsSince(*reconcile.last));
  }
}

void AddPublish(const PublishStatus& publish, Families& families) {
  if (!publish.enabled) {
    return;
  }
  AddCounter(families, "qrm_publish_writes_total",
             "Writes of objects about this node that the API server accepted.", publish.writes);
  AddCounter(families, "qrm_publish_events_total",
             "Events of rejected pods that the API server accepted.", publish.events);
  AddCounter(families, "qrm_publish_failures_total",
             "Writes and events that the API server did not accept.", publish.failures);
}

void AddRejectedInputs(Families& families) {
  MetricFamily family{"qrm_rejected_inputs_total",
                      "Clients, requests and texts that were turned away, by kind.",
                      MetricType::Counter,
                      {}};
  for (const RejectedCount& rejected : RejectedByKind(RejectedBy::kDaemon)) {
    family.metric.push_back(MetricOf(MetricType::Counter, static_cast<double>(rejected.count),
                                     {{"kind", std::string(rejected.kind)}}));
  }
  families.push_back(std::move(family));
}

void AddState(const checkpoint::NodeState& state, Families& families) {
  AddGauge(families, "qrm_pods", "Admitted pods.", static_cast<double>(state.pod_count()));
  AddGauge(families, "qrm_containers", "Admitted containers.",
           static_cast<double>(state.container_count()));
  AddGauge(families, "qrm_pending_removals",
           "Removed pods of which a plugin has not been notified yet, because it is not running.",
           static_cast<double>(state.pending_removals().size()));
}

void AddOffline(const checkpoint::NodeState& state, const CpuSet& offline, Families& families) {
  AddGauge(families, "qrm_offline_own_cpus",
           "Exclusive CPUs that are offline, so that their containers lack them.",
           (OwnedCpus(state) & offline).Count());
}

void AddPlugins(const std::vector<PluginInfo>& plugins, Families& families) {
  MetricFamily live{"qrm_plugin_live", "1 while the plugin can be called.", MetricType::Gauge, {}};
  MetricFamily suspect{"qrm_plugin_suspect",
                       "1 while the plugin is live but its latest answer to a call was wrong.",
                       MetricType::Gauge,
                       {}};
  for (const PluginInfo& plugin : plugins) {
    const Labels labels = {{"resource", plugin.resource}};
    live.metric.push_back(MetricOf(MetricType::Gauge, OneIf(plugin.live), labels));
    suspect.metric.push_back(
        MetricOf(MetricType::Gauge, OneIf(plugin.live && !plugin.problem.empty()), labels));
  }
  families.push_back(std::move(live));
  families.push_back(std::move(suspect));
}

void AddAnswerAges(const std::map<std::string, double>& ages, Families& families) {
  MetricFamily family{"qrm_pod_resources_answer_age_seconds",
                      "How old the used answer of a plugin, or kubelet, is while it fails; 0 while "
                      "it answers.",
                      MetricType::Gauge,
                      {}};
  for (const auto& [source, age] : ages) {
    family.metric.push_back(MetricOf(MetricType::Gauge, age, {{"source", source}}));
  }
  if (!ages.empty()) {
    families.push_back(std::move(family));
  }
}

void AddClasses(const std::vector<ClassTypeStatus>& types, Families& families) {
  const auto gauge = [](const char* name, const char* help) {
    return MetricFamily{name, help, MetricType::Gauge, {}};
  };
  MetricFamily users = gauge("qrm_class_users", "Containers, or pods, that have the class.");
  MetricFamily capacity =
      gauge("qrm_class_capacity",
            "Containers, or pods, that may have the class at a time; absent: no limit.");
  MetricFamily unmet =
      gauge("qrm_class_unmet", "Containers, or pods, that lack what their class promises.");
  MetricFamily readings = gauge(
      "qrm_class_reading", "The kernel's measurement of a class; the label quantity has the unit.");
  MetricFamily repairs{"qrm_class_repairs_total",
                       "Class drift corrected: classes that another writer changed.",
                       MetricType::Counter,
                       {}};
  for (const ClassTypeStatus& status : types) {
    const std::string& type = status.offered.type.name;
    for (const sdk::ClassInfo& info : status.offered.type.classes) {
      const Labels labels = {{"type", type}, {"class", info.name}};
      const auto found = status.users.find(info.name);
      const uint64_t count = found == status.users.end() ? 0 : found->second;
      users.metric.push_back(MetricOf(MetricType::Gauge, static_cast<double>(count), labels));
      if (const uint64_t most = status.offered.CapacityOf(info); most != 0) {
        capacity.metric.push_back(MetricOf(MetricType::Gauge, static_cast<double>(most), labels));
      }
    }
    for (const sdk::ClassReading& reading : status.work.readings) {
      readings.metric.push_back(MetricOf(
          MetricType::Gauge, reading.value,
          {{"type", type}, {"class", reading.class_name}, {"quantity", reading.quantity}}));
    }
    unmet.metric.push_back(MetricOf(
        MetricType::Gauge, static_cast<double>(status.work.problems.size()), {{"type", type}}));
    repairs.metric.push_back(MetricOf(
        MetricType::Counter, static_cast<double>(status.work.repairs + status.offered.type.repairs),
        {{"type", type}}));
  }
  for (MetricFamily* family : {&users, &capacity, &unmet, &readings, &repairs}) {
    if (!family->metric.empty()) {
      families.push_back(std::move(*family));
    }
  }
}

}  // namespace

std::vector<MetricFamily> CollectNode(const Snapshots& snapshots, const Plugins& plugins,
                                      const NodeServices& node, const Machine& machine) {
  Families families;
  const NodeStatus status = node.Status();
  AddNode(status, families);
  AddUnplaced(status, families);
  AddFailing(status, families);
  AddPools(status.pools, families);
  AddNumaNodes(status.numa_nodes, families);
  AddRejectedInputs(families);
  AddProcess(families);
  AddRuntime(status.runtime, families);
  AddReconcile(status.reconcile, families);
  AddPublish(status.publish, families);
  const auto state = snapshots.Load();
  AddState(*state, families);
  AddOffline(*state, machine.OfflineNow(), families);
  AddPlugins(plugins.List(), families);
  AddAnswerAges(status.answer_ages, families);
  AddClasses(node.Classes(), families);
  return families;
}

}  // namespace qrm::manager
