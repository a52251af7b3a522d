// Everything that can be set about qrmd, and how it is read from a file and flags.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "api/base/log.h"
#include "api/base/section.h"
#include "api/base/status.h"
#include "manager/admission/admitter.h"
#include "manager/demand/demand_source.h"
#include "manager/podresources/pod_resources_server.h"
#include "plugins/config/machine_config.h"
#include "topology/merge.h"

namespace qrm::manager {

/// The values in force. The comments are in the table of keys (config_keys.cc).
struct Config {
  std::string state_dir = "/var/lib/qrm/state";
  std::string registration_dir = "/var/lib/qrm/resource-plugins";
  std::string plugins_registry_dir = "/var/lib/qrm/plugins_registry";
  std::string pod_resources_socket = "/var/lib/qrm/pod-resources/kubelet.sock";
  std::string kubelet_pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  PodResourcesOptions pod_resources;  ///< its `kubelet_socket` is unset: the daemon knows better
  std::string control_socket = "/run/qrm/control.sock";
  std::vector<uint64_t> control_uids;
  std::string nri_socket = "/var/run/nri/nri.sock";
  std::string nri_plugin_name = "qrm";
  std::string nri_plugin_index = "90";
  std::string cri_socket = "/run/containerd/containerd.sock";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string kubelet_state_dir = "/var/lib/kubelet";

  std::vector<std::string> builtin_plugins = {"cpu", "memory", "nic"};
  /// Plugin -> its keys, as that plugin reads them.
  std::map<std::string, config::Section> plugins;
  config::MachineConfig machine;

  MergeOptions merge;
  TopologyScope topology_scope = TopologyScope::kContainer;
  std::chrono::milliseconds reconcile_period{3000};
  std::chrono::milliseconds admission_deadline{1200};
  std::chrono::milliseconds plugin_call_deadline{500};
  std::chrono::milliseconds release_deadline{300};
  std::chrono::milliseconds runtime_call_deadline{2000};
  int realtime_priority = 1;  ///< 0: as every other process
  std::chrono::milliseconds nri_retry_max{5000};
  std::chrono::milliseconds observer_grace{2000};
  std::chrono::milliseconds observer_gone_after{10000};
  std::chrono::milliseconds pod_ended_after{30'000};

  std::string kubelet_pods_socket = "/var/lib/kubelet/pods-api/pods-api.sock";
  std::string kubelet_url;
  std::string kubelet_token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string kubelet_ca_file;
  bool kubelet_insecure = false;
  std::chrono::milliseconds kubelet_poll_interval{1000};
  std::chrono::milliseconds pod_spec_wait{300};

  StringMap resource_names_map;
  std::vector<ImplicitResource> implicit_resources;
  std::vector<std::string> native_resources = {"cpu", "memory"};
  PodKeys pod_keys;
  std::vector<std::string> skip_namespaces = {"kube-system"};
  std::string skip_annotation = "katalyst.kubewharf.io/skip_qrm_admit";
  std::vector<std::string> skip_priority_classes = {"system-node-critical",
                                                    "system-cluster-critical"};
  bool skip_daemonset_pods = true;

  std::string metrics_address = ":9753";
  log::Level log_level = log::Level::kInfo;
};

/// The configuration of `file` (none: the defaults) with `flags` in place of what it says; a flag
/// is a key and its value as YAML, or a list with commas.
/// Errors: kInvalidArgument with file, line, key, value and what is allowed; kNotFound for a
/// missing file.
StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags);

/// True for the name of a key.
bool IsConfigKey(const std::string& name);

/// The key that `name` was probably meant to be; empty when none is near.
std::string NearestConfigKey(const std::string& name);

/// The flags of all keys, one a line, for --help.
std::string ConfigFlagsHelp();

/// A page in Markdown with every key, its default, range and meaning.
std::string ConfigReference();

}  // namespace qrm::manager
