// Copies keys of the configuration.
#include "manager/daemon/daemon_options.h"

namespace qrm::manager {

AdmissionOptions AdmissionOptionsOf(const Config& config) {
  return {.merge = config.merge,
          .scope = config.topology_scope,
          .resource_names = config.resource_names_map,
          .implicit_resources = config.implicit_resources,
          .native_resources = config.native_resources,
          .skipped_namespaces = {config.skip_namespaces.begin(), config.skip_namespaces.end()},
          .skip_annotation = config.skip_annotation,
          .skipped_priority_classes = {config.skip_priority_classes.begin(),
                                       config.skip_priority_classes.end()},
          .skip_daemonset_pods = config.skip_daemonset_pods,
          .plugin_call_deadline = config.plugin_call_deadline};
}

DryRuns::Options DryRunOptionsOf(const Config& config) {
  return {.admission = AdmissionOptionsOf(config),
          .pod_keys = config.pod_keys,
          .deadline = config.admission_deadline};
}

ControlOptions ControlOptionsOf(const Config& config) {
  return {.allowed_uids = {config.control_uids.begin(), config.control_uids.end()}};
}

PodResourcesOptions PodResourcesOptionsOf(const Config& config) {
  PodResourcesOptions options = config.pod_resources;
  if (config.kubelet_pod_resources_socket != config.pod_resources_socket) {
    options.kubelet_socket = config.kubelet_pod_resources_socket;
  }
  return options;
}

}  // namespace qrm::manager
