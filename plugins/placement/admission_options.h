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

/// A resource that containers get without asking for it in their spec: CRI and NRI do not carry
/// extended resources.
struct ImplicitResource {
  std::string resource;
  std::set<std::string> roles;  ///< pods of these roles get it
  std::string annotation;       ///< pods with this annotation, not empty and not "false", get it
};

/// What a pod asks for under another name than that of the plugin.
struct MappedResource {
  std::string plugin;  ///< the name that its plugin is registered under
  double scale = 1;    ///< what one that the pod asks for is in the plugin's unit

  bool operator==(const MappedResource&) const = default;
};
using ResourceNames = std::map<std::string, MappedResource>;

struct AdmissionOptions {
  MergeOptions merge;
  TopologyScope scope = TopologyScope::kContainer;
  ResourceNames resource_names;  ///< by the name that pods use
  std::vector<ImplicitResource> implicit_resources;
  /// Resources, by their plugins' names, that every container uses: one that requests none asks for
  /// an amount of 0, so that it is kept off what others own.
  std::vector<std::string> native_resources = {"cpu", "memory"};
  /// Plugins, by their resources, without which no container is placed.
  std::vector<std::string> required_plugins;
  /// Namespaces whose containers run without plugins that are away: those of the plugins' own pods.
  std::vector<std::string> plugin_namespaces = {"kube-system"};
  std::vector<std::string> skipped_namespaces = {"kube-system"};
  std::string skip_annotation = "katalyst.kubewharf.io/skip_qrm_admit";
  std::vector<std::string> skipped_priority_classes = {"system-node-critical",
                                                       "system-cluster-critical"};
  /// Those of QoS level system_cores are placed all the same.
  bool skip_daemonset_pods = true;
  Permissions permissions;
  /// Where plugins name another network namespace than the pod's.
  std::vector<std::string> netns_annotations = {"kubernetes.io/host-netns-path"};
  DriverOptions drivers;
  std::chrono::milliseconds deadline{1200};  ///< of one container's admission, and of a dry run
  std::chrono::milliseconds plugin_call_deadline{500};
  std::chrono::milliseconds release_deadline{300};  ///< of a call that takes back
};

/// The keys that are more than a word; see RequestKeys.
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
          "Whether each container is aligned by itself, or all of a pod to the same nodes."),
      config::SwitchKey(
          "prefer-closest-numa-nodes", options.merge.prefer_closest_numa_nodes,
          "Among placements of equal width, take the nodes that are closest to each other."),
      config::WordsKey("numeric-align-resources", options.merge.align_resources,
                       "list of resource names",
                       "Policy numeric: the resources that are aligned with each other."),
  };
}

inline std::vector<config::ConfigKey> RequestKeys(AdmissionOptions& options) {
  return {
      ResourceNamesKey("resource-names-map", options.resource_names,
                       "Resources that pods request under another name than that of the plugin. "
                       "`scale` is what one of the request is in the plugin's unit: 1m for "
                       "thousandths of CPUs. Default: 1m for names that end in millicpu, else 1."),
      ImplicitResourcesKey(
          "implicit-resources", options.implicit_resources,
          "Resources, one of each, that pods of a role or with an annotation get without "
          "requesting them: runtimes do not pass on extended resources."),
      config::WordsKey("native-resources", options.native_resources, "list of resource names",
                       "Resources that every container uses: their plugins place also containers "
                       "that request none, with an amount of 0. The plugins of other resources are "
                       "not asked then."),
  };
}

inline std::vector<config::ConfigKey> AwayKeys(AdmissionOptions& options) {
  return {
      config::WordsKey(
          "plugin-namespaces", options.plugin_namespaces, "list of namespaces",
          "Namespaces of plugins' own pods: containers there start without the plugins "
          "that are away, and are placed when these come. Elsewhere, containers that "
          "need them are refused."),
  };
}

inline std::vector<config::ConfigKey> SkipKeys(AdmissionOptions& options) {
  return {
      config::WordsKey(
          "skip-namespaces", options.skipped_namespaces, "list of namespaces",
          "Containers of pods in these namespaces are left alone, but for those of QoS level "
          "system_cores."),
      config::TextKey("skip-annotation", options.skip_annotation, "annotation key; empty: not read",
                      "Containers of pods that have this annotation are left alone where "
                      "`permissions` allow opt-out, and refused elsewhere; whatever its value is "
                      "but `false` and an empty one."),
      config::WordsKey("skip-priority-classes", options.skipped_priority_classes,
                       "list of priority classes",
                       "Containers of pods with these priority classes are left alone where "
                       "`permissions` allow opt-out, and placed as others elsewhere: anybody may "
                       "name a class. Where requests are estimated, the class is not known."),
      config::SwitchKey("skip-daemonset-pods", options.skip_daemonset_pods,
                        "Whether containers of pods that a DaemonSet owns are left alone where "
                        "`permissions` allow opt-out, but for those of QoS level system_cores. "
                        "Where requests are estimated, the owner is not known."),
  };
}

inline std::vector<config::ConfigKey> RuleKeys(AdmissionOptions& options) {
  return {
      PermissionsKey(
          "permissions", options.permissions,
          "What pods of which namespaces may ask for; the first rule that names a namespace "
          "decides. Behind these rules, one allows kube-system everything, and one all others what "
          "their requests pay: neither opt-out nor reserved-cpus. See permissions.md."),
      config::WordsKey(
          "netns-annotations", options.netns_annotations, "list of annotation keys",
          "Annotations by which plugins give containers another network namespace, which needs "
          "network-namespaces in `permissions`. That of the built-in nic plugin is always among "
          "them."),
  };
}

inline std::vector<config::ConfigKey> DeadlineKeys(AdmissionOptions& options) {
  return {
      config::DurationKey("admission-deadline", options.deadline, {"50ms", "1m"},
                          "How long one container's admission may take. Runtimes give all NRI "
                          "plugins together 2s unless they are configured otherwise."),
      config::DurationKey("plugin-call-deadline", options.plugin_call_deadline, {"10ms", "1m"},
                          "How long one call to a plugin may take."),
      config::DurationKey("release-deadline", options.release_deadline, {"10ms", "1m"},
                          "How long plugins may take to hear that a pod or a failed admission is "
                          "gone; those that take longer are told again."),
  };
}

}  // namespace qrm::placement
