// The configuration of admissions.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/resource.h"
#include "plugins/placement/driver_options.h"
#include "plugins/placement/permissions.h"
#include "topology/merge.h"

namespace qrm::placement {

/// A resource that containers get without a request in their spec: CRI and NRI do not carry
/// extended resources.
struct ImplicitResource {
  std::string resource;
  std::set<std::string> roles;  ///< pods of these roles get it
  std::string annotation;       ///< pods with this annotation, not empty and not "false", get it
};

/// The plugin and unit of a resource that pods request under another name than the plugin's.
struct MappedResource {
  std::string plugin;  ///< the name that its plugin is registered under
  double scale = 1;    ///< plugin's units per unit of the pod's request

  bool operator==(const MappedResource&) const = default;
};
using ResourceNames = std::map<std::string, MappedResource>;

struct AdmissionOptions {
  MergeOptions merge;
  TopologyScope scope = TopologyScope::kContainer;
  ResourceNames resource_names;  ///< by the name that pods use
  std::vector<ImplicitResource> implicit_resources;
  /// Resources, by their plugins' names, that every container uses. A container without a request
  /// asks for an amount of 0, so that the plugin keeps it off exclusive resources.
  std::vector<std::string> native_resources = {"cpu", "memory"};
  /// Resources whose plugins give each container exclusive CPUs and do not say so.
  std::vector<std::string> exclusive_cpu_plugins;
  /// Resources whose plugins must run before any container is placed.
  std::vector<std::string> required_plugins;
  /// Namespaces whose containers start also while plugins are not running: those of the plugins'
  /// own pods.
  std::vector<std::string> plugin_namespaces = {"kube-system"};
  std::vector<std::string> skipped_namespaces = {"kube-system"};
  std::string skip_annotation = "katalyst.kubewharf.io/skip_qrm_admit";
  std::vector<std::string> skipped_priority_classes = {"system-node-critical",
                                                       "system-cluster-critical"};
  /// Pods of QoS level system_cores are placed nevertheless.
  bool skip_daemonset_pods = true;
  Permissions permissions;
  /// Annotations by which plugins name another network namespace than the pod's.
  std::vector<std::string> netns_annotations = {"kubernetes.io/host-netns-path"};
  bool has_cgroup_v1 = false;  ///< the node's containers have no files of cgroup v2
  DriverOptions drivers;
  RejectAs reject_as = RejectAs::kRetry;     ///< of pods without a driver that has its own rule
  std::chrono::milliseconds deadline{1200};  ///< of one container's admission, and of a dry run
  std::chrono::milliseconds plugin_call_deadline{500};
  std::chrono::milliseconds release_deadline{300};  ///< of a call that releases an allocation

  /// Takes the rules that can change while qrmd runs.
  void TakeRules(const AdmissionOptions& next) {
    permissions = next.permissions;
    drivers = next.drivers;
  }
};

/// Keys with structured values; see RequestKeys.
config::ConfigKey ResourceNamesKey(std::string name, ResourceNames& place, std::string help);
config::ConfigKey ImplicitResourcesKey(std::string name, std::vector<ImplicitResource>& place,
                                       std::string help);

inline std::vector<config::ConfigKey> PlacementKeys(AdmissionOptions& options) {
  return {
      config::ChoiceKey<TopologyPolicy>(
          "topology-policy", options.merge.policy,
          {"policy",
           {"none", "best-effort", "restricted", "single-numa-node", "numeric"},
           ParseTopologyPolicy},
          "Which NUMA placements are accepted."),
      config::ChoiceKey<TopologyScope>(
          "topology-scope", options.scope, {"scope", {"container", "pod"}, ParseTopologyScope},
          "Whether to align each container by itself, or all containers of a pod to the same "
          "nodes."),
      config::SwitchKey(
          "prefer-closest-numa-nodes", options.merge.prefer_closest_numa_nodes,
          "Whether to choose the NUMA nodes closest to each other among equally wide placements."),
      config::WordsKey("numeric-align-resources", options.merge.align_resources,
                       "list of resource names",
                       "Policy numeric: the resources to align with each other."),
  };
}

inline std::vector<config::ConfigKey> RejectionKeys(AdmissionOptions& options) {
  return {
      config::ChoiceKey<RejectAs>(
          "reject-as", options.reject_as, {"word", {"retry", "fail"}, ParseRejectAs},
          "What becomes of a new pod that this node rejects for lack of room, or for what it asks. "
          "`retry`: kubelet tries again for ever. `fail`: the pod ends with the reason, so that "
          "its "
          "owner creates another one; needs `pod-failures` in `publish`. Pods are always retried "
          "while a plugin does not run, does not answer, or answers wrongly."),
  };
}

inline std::vector<config::ConfigKey> RequestKeys(AdmissionOptions& options) {
  return {
      ResourceNamesKey("resource-names-map", options.resource_names,
                       "Maps resource names in pods to names of plugins. `scale` is the number of "
                       "the plugin's units in one unit of the request: 1m for thousandths of CPUs. "
                       "Default: 1m for names that end in millicpu, else 1."),
      ImplicitResourcesKey(
          "implicit-resources", options.implicit_resources,
          "Resources that pods of a role or with an annotation get without a request, one of "
          "each. Useful because runtimes do not pass on extended resources."),
      config::WordsKey(
          "native-resources", options.native_resources, "list of resource names",
          "Resources that every container uses. Their plugins also place containers "
          "without a request, with an amount of 0. Plugins of other resources are only "
          "asked about containers that request them."),
      config::WordsKey(
          "exclusive-cpu-plugins", options.exclusive_cpu_plugins, "list of resource names",
          "Plugins that give each container exclusive CPUs and do not say so. The CPUs of other "
          "plugins that do not say so are exclusive in pods of QoS level dedicated_cores."),
  };
}

inline std::vector<config::ConfigKey> AwayKeys(AdmissionOptions& options) {
  return {
      config::WordsKey(
          "plugin-namespaces", options.plugin_namespaces, "list of namespaces",
          "Namespaces of the plugins' own pods. Containers there start also while a plugin that "
          "they need is not running, and are placed when it returns. Elsewhere, such containers "
          "are rejected."),
  };
}

inline std::vector<config::ConfigKey> SkipKeys(AdmissionOptions& options) {
  return {
      config::WordsKey(
          "skip-namespaces", options.skipped_namespaces, "list of namespaces",
          "Skip containers of pods in these namespaces, except pods of QoS level system_cores."),
      config::TextKey("skip-annotation", options.skip_annotation, "annotation key; empty: not read",
                      "Skip containers of pods that have this annotation, unless its value is "
                      "empty or `false`. Only where `permissions` allow opt-out; elsewhere such "
                      "pods are rejected."),
      config::WordsKey("skip-priority-classes", options.skipped_priority_classes,
                       "list of priority classes",
                       "Skip containers of pods with these priority classes where `permissions` "
                       "allow opt-out. Elsewhere the class has no effect, because any pod can name "
                       "one. Where requests are estimated, the class is not known."),
      config::SwitchKey("skip-daemonset-pods", options.skip_daemonset_pods,
                        "Whether to skip containers of DaemonSet pods where `permissions` allow "
                        "opt-out, except pods of QoS level system_cores. Where requests are "
                        "estimated, the owner is not known."),
  };
}

inline std::vector<config::ConfigKey> RuleKeys(AdmissionOptions& options) {
  return {
      PermissionsKey(
          "permissions", options.permissions,
          "What pods of each namespace may ask for. The first rule that names a namespace decides. "
          "Two default rules come last: kube-system may ask for everything, other namespaces for "
          "what their requests pay, without opt-out and reserved-cpus. See permissions.md."),
      config::WordsKey(
          "netns-annotations", options.netns_annotations, "list of annotation keys",
          "Annotations by which plugins give containers another network namespace. Pods need "
          "network-namespaces in `permissions` for that. The annotation of the built-in nic plugin "
          "is always included."),
  };
}

inline std::vector<config::ConfigKey> DeadlineKeys(AdmissionOptions& options) {
  return {
      config::DurationKey("admission-deadline", options.deadline, {"50ms", "1m"},
                          "How long the admission of one container may take. By default, runtimes "
                          "give all NRI plugins together 2s."),
      config::DurationKey("plugin-call-deadline", options.plugin_call_deadline, {"10ms", "1m"},
                          "How long one call to a plugin may take."),
      config::DurationKey(
          "release-deadline", options.release_deadline, {"10ms", "1m"},
          "How long a plugin may take to release the allocations of a removed pod "
          "or a failed admission. If it takes longer, qrmd repeats the call later."),
  };
}

}  // namespace qrm::placement
