// The admitting part of qrmd on one node: plugins, admitter and state, without sockets and disk.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "manager/admission/admitter.h"
#include "manager/admission/dry_run.h"
#include "manager/admission/releaser.h"
#include "manager/demand/pod_spec.h"
#include "manager/registry/plugins.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/nic/nic_plugin.h"
#include "plugins/placement/node_model.h"
#include "plugins/sdk/compute_plugin.h"
#include "plugins/sdk/plugin_state.h"
#include "scheduler/cache/objects.h"
#include "test/support/memory_store.h"
#include "test/support/temp_decisions.h"

namespace qrm::scheduler::test {

/// Gives as many CPUs as are requested, any of the offered ones.
class AnyCpus final : public sdk::ComputeDriver {
 public:
  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override {
    std::vector<int> offered(request.available.begin(), request.available.end());
    std::shuffle(offered.begin(), offered.end(), random_);
    offered.resize(
        std::min(offered.size(), static_cast<std::size_t>((request.milli_cpus + 999) / 1000)));
    CpuSet cpus;
    for (const int cpu : offered) {
      cpus.Add(cpu);
    }
    return sdk::ComputeGrant{.parts = {{.cpus = cpus}}};
  }

 private:
  std::mt19937 random_{1};
};

/// The built-in plugins, and compute drivers.
class CorePlugins final : public manager::Plugins {
 public:
  void Add(const std::string& resource, StatusOr<std::unique_ptr<sdk::ResourcePlugin>> plugin) {
    Served& served = served_[resource];
    served.plugin = *std::move(plugin);
    served.local = *manager::LocalPlugin::Start(*served.plugin, resource, sdk::MakeMemoryState());
  }

  std::vector<manager::PluginInfo> List() const override {
    std::vector<manager::PluginInfo> infos;
    infos.reserve(served_.size());
    for (const auto& [resource, served] : served_) {
      infos.push_back(Info(resource, served));
    }
    return infos;
  }
  std::optional<manager::PluginInfo> Find(const std::string& resource) const override {
    const auto found = served_.find(resource);
    return found == served_.end() ? std::nullopt : std::optional(Info(resource, found->second));
  }
  void MarkSuspect(const std::string& resource, const std::string& problem) override {
    ADD_FAILURE() << resource << ": " << problem;
  }
  void Forget(const std::string& /*resource*/) override {}
  manager::LocalPlugin* Local(const std::string& resource) const override {
    const auto found = served_.find(resource);
    return found == served_.end() ? nullptr : found->second.local.get();
  }

 private:
  struct Served {
    std::unique_ptr<sdk::ResourcePlugin> plugin;
    std::unique_ptr<manager::LocalPlugin> local;
  };
  static manager::PluginInfo Info(const std::string& resource, const Served& served) {
    return {.resource = resource,
            .registered_by = manager::RegisteredBy::kBuiltIn,
            .options = served.local->options(),
            .live = true};
  }
  void Start(const std::string& resource, std::shared_ptr<calls::Call> call, Deadline) override {
    call->Fail(Status(StatusCode::kNotFound, "no plugin of " + resource), calls::Blame::kRefusal);
  }

  std::map<std::string, Served> served_;
};

/// One node.
class NodeCore {
 public:
  explicit NodeCore(const placement::NodeModel& model) : model_(model) {
    plugins_.Add(cpu::kResource, cpu::MakeCpuPlugin(model.cpu, model.machine));
    plugins_.Add(memory::kResource, memory::MakeMemoryPlugin(model.memory, model.machine));
    plugins_.Add(model.nic.resource, nic::MakeNicPlugin(model.nic, model.machine, {}));
    for (const auto& [name, rules] : model.options.drivers) {
      plugins_.Add(sdk::DriverResource(name), std::make_unique<sdk::ComputePlugin>(driver_));
    }
  }

  /// Errors: the rejection.
  Status Admit(const Pod& pod) {
    QRM_ASSIGN_OR_RETURN(const placement::ContainerDemand demand, DemandOf(pod));
    return qrm::test::RunOn(state_, [&] {
      return admitter_
          .Admit(demand, manager::Admitter::Moment::kAtCreation,
                 DeadlineAfter(std::chrono::minutes(1)))
          .status();
    });
  }

  /// What a dry run says of the pod: the values of its containers. Errors: the rejection.
  StatusOr<StringMap> Foretell(const Pod& pod) {
    QRM_ASSIGN_OR_RETURN(const placement::ContainerDemand demand, DemandOf(pod));
    const manager::DryRunReport report =
        dry_run_.Run({demand}, DeadlineAfter(std::chrono::minutes(1)));
    if (report.result == manager::DryRunReport::Result::kRejected) {
      return Status(StatusCode::kResourceExhausted, report.message);
    }
    StringMap values;
    for (const auto& decision : report.decisions) {
      const auto json = nlohmann::json::parse(decision.trace.json);
      if (json.contains("allocations")) {
        for (const auto& [resource, allocation] : json["allocations"].items()) {
          if (allocation.contains("value")) {
            values[decision.trace.key.container + " " + resource] = allocation["value"];
          }
        }
      }
    }
    return values;
  }

  /// The values of the pod's containers on record.
  StringMap ValuesOf(const std::string& uid) const {
    StringMap values;
    const auto state = state_.Load();
    const checkpoint::PodRecord* const pod = state->FindPod(uid);
    for (const auto& [name, record] :
         pod == nullptr ? decltype(pod->containers)() : pod->containers) {
      for (const auto& [resource, allocation] : record->allocations) {
        if (!allocation->oci_property.empty()) {
          values[name + " " + resource] = allocation->value;
        }
      }
    }
    return values;
  }

  void Remove(const std::string& uid) {
    (void)qrm::test::RunOn(state_, [&] { return releaser_.RemovePods({uid}); });
    qrm::test::Settle(state_);
    qrm::test::Settle(state_);  // plugins are notified after a driver
  }

  /// The exclusive CPUs of the pod's containers.
  CpuSet OwnCpus(const std::string& uid) const {
    CpuSet cpus;
    const auto state = state_.Load();
    const checkpoint::PodRecord* const pod = state->FindPod(uid);
    if (pod == nullptr) {
      return cpus;
    }
    for (const auto& [name, record] : pod->containers) {
      for (const auto& [resource, allocation] : record->allocations) {
        cpus |=
            allocation->exclusive ? CpuSet::Parse(allocation->value).value_or(CpuSet()) : CpuSet();
      }
    }
    return cpus;
  }

 private:
  StatusOr<placement::ContainerDemand> DemandOf(const Pod& pod) {
    const manager::PodSpec spec = *manager::ReadManifest(ManifestOf(pod));
    placement::ContainerDemand estimate;
    estimate.pod = {.uid = pod.uid,
                    .pod_namespace = pod.pod_namespace,
                    .name = pod.name,
                    .role = TextAt(pod.labels, "katalyst.kubewharf.io/pod_role"),
                    .qos_class = pod.qos_class,
                    .labels = pod.labels,
                    .annotations = pod.annotations};
    estimate.container = pod.containers.front().name;
    const std::optional<placement::ContainerDemand> demand =
        manager::Refine(estimate, spec, "", "test");
    if (!demand.has_value()) {
      return Status(StatusCode::kInternal, "the spec lacks its own container");
    }
    return *demand;
  }

  static std::string TextAt(const StringMap& texts, const std::string& key) {
    const auto found = texts.find(key);
    return found == texts.end() ? std::string() : found->second;
  }
  static manager::PodManifest ManifestOf(const Pod& pod) {
    manager::PodManifest manifest{.uid = pod.uid,
                                  .pod_namespace = pod.pod_namespace,
                                  .name = pod.name,
                                  .annotations = pod.annotations,
                                  .controller_kind = pod.controller_kind,
                                  .priority_class = pod.priority_class};
    for (const PodContainer& container : pod.containers) {
      manager::PodManifest::Container read{.name = container.name};
      for (const auto& [name, amount] : container.requests) {
        read.resources.requests[name] = fmt::format("{}", amount);
      }
      for (const auto& [name, amount] : container.limits) {
        read.resources.limits[name] = fmt::format("{}", amount);
      }
      if (container.kind == PodContainer::Kind::kApp) {
        manifest.containers.push_back(std::move(read));
        continue;
      }
      read.restart_policy = container.kind == PodContainer::Kind::kSidecar ? "Always" : "";
      manifest.init_containers.push_back(std::move(read));
    }
    return manifest;
  }
  const placement::NodeModel& model_;
  const placement::AdmissionOptions& options_ = model_.options;
  qrm::test::Journal journal_;
  AnyCpus driver_;
  CorePlugins plugins_;
  qrm::test::TempDecisions decisions_;
  const SystemClock clock_;
  manager::StateLoop state_{qrm::test::OpenMemoryStore(journal_)};
  manager::Releaser releaser_{state_, plugins_, options_};
  manager::DryRun dry_run_{
      {.plugins = plugins_, .machine = model_.machine, .clock = clock_, .state = &state_},
      options_};
  manager::Admitter admitter_{{.state = state_,
                               .decisions = decisions_.log,
                               .plugins = plugins_,
                               .releaser = releaser_,
                               .machine = model_.machine,
                               .clock = clock_,
                               .listener = {}},
                              options_};
};

}  // namespace qrm::scheduler::test
