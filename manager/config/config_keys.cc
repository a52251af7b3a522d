// Every key of qrmd with the code that reads it.
#include "manager/config/config_keys.h"

#include <charconv>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "manager/config/config_readers.h"

namespace qrm::manager {
namespace {

using config::Section;
using std::chrono::milliseconds;

std::string Quoted(const std::string& text) {
  return text.empty() ? "\"\"" : text;
}

ConfigKey TextKey(std::string name, std::string Config::* member, std::string range,
                  std::string help) {
  return {
      .name = std::move(name),
      .range = std::move(range),
      .help = std::move(help),
      .read = [member](const Section& section, const std::string& key, Config& config) -> Status {
        QRM_ASSIGN_OR_RETURN(config.*member, section.Text(key, config.*member));
        return OkStatus();
      },
      .show = [member](const Config& config) { return Quoted(config.*member); }};
}

// A path that has to be there; sockets and directories are found from any working directory.
ConfigKey PathKey(const std::string& name, std::string Config::* member, std::string help) {
  ConfigKey key = TextKey(name, member, "absolute path", std::move(help));
  key.read = [member, read = key.read](const Section& section, const std::string& path_key,
                                       Config& config) -> Status {
    QRM_RETURN_IF_ERROR(read(section, path_key, config));
    const std::string& path = config.*member;
    if (path.empty() || path.front() != '/') {
      return section.Error(path_key, fmt::format("is '{}', which is no absolute path", path),
                           "write one that starts with /");
    }
    return OkStatus();
  };
  return key;
}

ConfigKey PodKey(std::string name, std::string PodKeys::* member, std::string help) {
  return {
      .name = std::move(name),
      .range = "label or annotation key; empty: not read",
      .help = std::move(help),
      .read = [member](const Section& section, const std::string& key, Config& config) -> Status {
        QRM_ASSIGN_OR_RETURN(config.pod_keys.*member, section.Text(key, config.pod_keys.*member));
        return OkStatus();
      },
      .show = [member](const Config& config) { return Quoted(config.pod_keys.*member); }};
}

ConfigKey SwitchKey(std::string name, bool PodResourcesOptions::* member, std::string help) {
  return {
      .name = std::move(name),
      .range = "true, false",
      .help = std::move(help),
      .read = [member](const Section& section, const std::string& key, Config& config) -> Status {
        QRM_ASSIGN_OR_RETURN(config.pod_resources.*member, section.Flag(key, true));
        return OkStatus();
      },
      .show =
          [member](const Config& config) {
            return std::string(config.pod_resources.*member ? "true" : "false");
          }};
}

ConfigKey FlagKey(std::string name, bool Config::* member, std::string help) {
  return {
      .name = std::move(name),
      .range = "true, false",
      .help = std::move(help),
      .read = [member](const Section& section, const std::string& key, Config& config) -> Status {
        QRM_ASSIGN_OR_RETURN(config.*member, section.Flag(key, true));
        return OkStatus();
      },
      .show = [member](
                  const Config& config) { return std::string(config.*member ? "true" : "false"); }};
}

ConfigKey DurationKey(std::string name, milliseconds Config::* member, milliseconds least,
                      milliseconds most, std::string help) {
  const std::string range = fmt::format("{} to {}", DurationText(least), DurationText(most));
  return {.name = std::move(name),
          .range = range,
          .help = std::move(help),
          .read = [=](const Section& section, const std::string& key, Config& config) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
            const StatusOr<milliseconds> duration = ParseDuration(text);
            if (!duration.ok() || *duration < least || *duration > most) {
              return section.Error(
                  key, fmt::format("is '{}', which is no duration from {}", text, range),
                  "write one such as 500ms, 3s or 1m");
            }
            config.*member = *duration;
            return OkStatus();
          },
          .show = [member](const Config& config) { return DurationText(config.*member); }};
}

ConfigKey WordsKey(std::string name, std::vector<std::string> Config::* member, std::string range,
                   std::string help) {
  return {
      .name = std::move(name),
      .shape = KeyShape::kList,
      .range = std::move(range),
      .help = std::move(help),
      .read = [member](const Section& section, const std::string& key, Config& config) -> Status {
        QRM_ASSIGN_OR_RETURN(config.*member, section.Words(key));
        return OkStatus();
      },
      .show =
          [member](const Config& config) {
            return fmt::format("[{}]", fmt::join(config.*member, ", "));
          }};
}

std::string ShowEmptyList(const Config& /*config*/) {
  return "[]";
}

std::string ShowEmptyMapping(const Config& /*config*/) {
  return "{}";
}

std::vector<ConfigKey> PathKeys() {
  return {
      PathKey("state-dir", &Config::state_dir,
              "Where qrmd and its built-in plugins keep their state; one qrmd at a time."),
      PathKey("registration-dir", &Config::registration_dir,
              "Plugins call Register on kubelet.sock in this directory, which qrmd makes."),
      PathKey("plugins-registry-dir", &Config::plugins_registry_dir,
              "Plugins that put their socket into this directory are registered."),
      PathKey("pod-resources-socket", &Config::pod_resources_socket,
              "Serves kubelet's PodResourcesLister for exporters and other readers."),
      TextKey("kubelet-pod-resources-socket", &Config::kubelet_pod_resources_socket,
              "absolute path; empty: not asked",
              "Kubelet's own socket: its devices and claims are added to our answers when it is "
              "there."),
      SwitchKey("pod-resources-get", &PodResourcesOptions::get_enabled,
                "Whether Get answers; off, it fails as in a kubelet without it."),
      SwitchKey("pod-resources-allocatable", &PodResourcesOptions::allocatable_enabled,
                "Whether GetAllocatableResources answers; off, it fails as in a kubelet without "
                "it."),
      {.name = "pod-resources-group",
       .range = "group id",
       .help = "Who besides root may use pod-resources-socket; by default qrmd's own group.",
       .read = ReadPodResourcesGroup,
       .show = [](const Config& /*config*/) { return std::string("\"\""); }},
      PathKey("control-socket", &Config::control_socket, "Serves qrmctl."),
      {.name = "control-uids",
       .shape = KeyShape::kList,
       .range = "list of user ids",
       .help = "Who may use control-socket besides root and qrmd's own user.",
       .read = ReadControlUids,
       .show = ShowEmptyList},
      PathKey("nri-socket", &Config::nri_socket, "The container runtime's NRI socket."),
      TextKey("nri-plugin-name", &Config::nri_plugin_name, "letters, digits, `_.+-`",
              "The name under which qrmd registers with the runtime."),
      {.name = "nri-plugin-index",
       .range = "00 to 99",
       .help = "The place among the runtime's NRI plugins; lower ones are asked earlier.",
       .read = ReadNriIndex,
       .show = [](const Config& config) { return "\"" + config.nri_plugin_index + "\""; }},
      PathKey("cri-socket", &Config::cri_socket, "The container runtime's CRI socket."),
      PathKey("cgroup-root", &Config::cgroup_root,
              "Where the kernel's cgroups are mounted; containers' cpusets are read back there."),
      TextKey("kubelet-state-dir", &Config::kubelet_state_dir,
              "absolute path; empty: not looked at",
              "Kubelet's root directory: while its CPU or memory manager is static, qrmd is not "
              "ready and leaves containers alone."),
  };
}

std::vector<ConfigKey> NodeKeys() {
  return {
      {.name = "builtin-plugins",
       .shape = KeyShape::kList,
       .range = "list of cpu, memory, nic",
       .help = "The plugins that run inside qrmd; leave out those that run as processes.",
       .read = ReadBuiltinPlugins,
       .show =
           [](const Config& c) { return fmt::format("[{}]", fmt::join(c.builtin_plugins, ", ")); }},
      {.name = "plugins",
       .shape = KeyShape::kMapping,
       .range = "sections cpu, memory, nic",
       .help = "The keys of the built-in plugins; see configuration-plugins.md.",
       .read = ReadPlugins,
       .show = ShowEmptyMapping},
      {.name = "machine",
       .range = "live, synthetic:DESCRIPTION, xml:FILE, fsroot:DIR",
       .help = "Where the machine's CPUs and NUMA nodes are read from.",
       .read = ReadMachineKeys,
       .show = [](const Config& config) { return config.machine.source; }},
      {.name = "numa-memory",
       .shape = KeyShape::kMapping,
       .range = "NUMA node: size",
       .help = "Memory of single NUMA nodes in place of what `machine` says.",
       .read = ReadMachineKeys,
       .show = ShowEmptyMapping},
  };
}

std::vector<ConfigKey> PlacementKeys() {
  return {
      {.name = "topology-policy",
       .range = "none, best-effort, restricted, single-numa-node, numeric",
       .help = "Which NUMA placements are accepted.",
       .read = ReadTopologyPolicy,
       .show = [](const Config& config) { return std::string(ToString(config.merge.policy)); }},
      {.name = "topology-scope",
       .range = "container, pod",
       .help = "Whether each container is aligned by itself, or all of a pod to the same nodes.",
       .read = ReadTopologyScope,
       .show = [](const Config& config) { return std::string(ToString(config.topology_scope)); }},
      {.name = "prefer-closest-numa-nodes",
       .range = "true, false",
       .help = "Among placements of equal width, take the nodes that are closest to each other.",
       .read = ReadClosestNodes,
       .show =
           [](const Config& config) {
             return std::string(config.merge.prefer_closest_numa_nodes ? "true" : "false");
           }},
      {.name = "numeric-align-resources",
       .shape = KeyShape::kList,
       .range = "list of resource names",
       .help = "Policy numeric: the resources that are aligned with each other.",
       .read = ReadAlignResources,
       .show =
           [](const Config& config) {
             return fmt::format("[{}]", fmt::join(config.merge.align_resources, ", "));
           }},
      {.name = "resource-names-map",
       .shape = KeyShape::kMapping,
       .range = "pod's name: plugin's name",
       .help = "Resources that pods request under another name than that of the plugin.",
       .read = ReadNamesMap,
       .show = ShowEmptyMapping},
      {.name = "implicit-resources",
       .shape = KeyShape::kList,
       .range = "list of {resource, roles, annotation}",
       .help = "Resources, one of each, that pods of a role or with an annotation get without "
               "requesting them: runtimes do not pass on extended resources.",
       .read = ReadImplicitResources,
       .show = ShowEmptyList},
      WordsKey("native-resources", &Config::native_resources, "list of resource names",
               "Resources that every container uses: their plugins place also containers that "
               "request none, with an amount of 0. The plugins of other resources are not asked "
               "then."),
  };
}

std::vector<ConfigKey> PodKeyKeys() {
  return {
      PodKey("pod-role-label", &PodKeys::role_label, "The label that names a pod's role."),
      PodKey("pod-role-annotation", &PodKeys::role_annotation,
             "The annotation that names a pod's role when the label does not."),
      PodKey("pod-type-annotation", &PodKeys::type_annotation,
             "The annotation that names a pod's type."),
      PodKey("pod-type-annotation-fallback", &PodKeys::type_annotation_fallback,
             "The annotation that is read when the one before is missing."),
      PodKey("main-container-annotation", &PodKeys::main_container_annotation,
             "The annotation that names a pod's main container; the others are sidecars."),
      WordsKey("skip-namespaces", &Config::skip_namespaces, "list of namespaces",
               "Containers of pods in these namespaces are left alone."),
      TextKey("skip-annotation", &Config::skip_annotation, "annotation key; empty: not read",
              "Containers of pods with this annotation set to true are left alone."),
      WordsKey("skip-priority-classes", &Config::skip_priority_classes, "list of priority classes",
               "Containers of pods with these priority classes are left alone: system pods. Where "
               "requests are estimated, the class is not known."),
      FlagKey("skip-daemonset-pods", &Config::skip_daemonset_pods,
              "Whether containers of pods that a DaemonSet owns are left alone, but for those of "
              "QoS level system_cores. Where requests are estimated, the owner is not known."),
  };
}

std::vector<ConfigKey> KubeletKeys() {
  using std::chrono::seconds;
  ConfigKey url =
      TextKey("kubelet-url", &Config::kubelet_url, "https://HOST:PORT/pods; empty: not asked",
              "Where kubelet lists its pods, asked only for pods that the Pods API does "
              "not tell. 127.0.0.1:10250 is usual.");
  url.read = ReadKubeletUrl;
  return {
      TextKey("kubelet-pods-socket", &Config::kubelet_pods_socket,
              "absolute path; empty: not asked",
              "Kubelet's Pods API, which tells what pods request exactly. Without it and "
              "kubelet-url, requests are estimated from cgroup values."),
      std::move(url),
      TextKey("kubelet-token-file", &Config::kubelet_token_file, "path; empty: no token",
              "The token for kubelet-url; its owner must be allowed to get nodes/pods. Read again "
              "each time."),
      TextKey("kubelet-ca-file", &Config::kubelet_ca_file, "path; empty: the system's authorities",
              "The authority, in PEM, of the certificate at kubelet-url."),
      FlagKey("kubelet-insecure", &Config::kubelet_insecure,
              "Whether any certificate at kubelet-url is believed; for kubelets whose own is "
              "self-signed, asked at 127.0.0.1."),
      DurationKey("kubelet-poll-interval", &Config::kubelet_poll_interval, milliseconds(100),
                  seconds(60), "How long after one question to kubelet-url the next may follow."),
      DurationKey("pod-spec-wait", &Config::pod_spec_wait, milliseconds(0), seconds(10),
                  "How long a creation waits for the spec of a pod that is not known yet; then its "
                  "requests are estimated."),
  };
}

std::vector<ConfigKey> OperationKeys() {
  using std::chrono::minutes;
  using std::chrono::seconds;
  return {
      DurationKey("reconcile-period", &Config::reconcile_period, milliseconds(100), minutes(10),
                  "How often changed allocations are brought to running containers."),
      DurationKey("admission-deadline", &Config::admission_deadline, milliseconds(50), seconds(60),
                  "How long one container's admission may take. Runtimes give all NRI plugins "
                  "together 2s unless they are configured otherwise."),
      DurationKey("plugin-call-deadline", &Config::plugin_call_deadline, milliseconds(10),
                  seconds(60), "How long one call to a plugin may take."),
      DurationKey("release-deadline", &Config::release_deadline, milliseconds(10), seconds(60),
                  "How long plugins may take to hear that a pod or a failed admission is gone; "
                  "those that take longer are told again."),
      DurationKey("runtime-call-deadline", &Config::runtime_call_deadline, milliseconds(10),
                  seconds(60), "How long one CRI call may take."),
      DurationKey("nri-retry-max", &Config::nri_retry_max, milliseconds(100), minutes(5),
                  "The longest wait between two attempts to attach to nri-socket; the first ones "
                  "follow sooner."),
      DurationKey("observer-grace", &Config::observer_grace, milliseconds(0), minutes(5),
                  "How long NRI may be away before the runtime is followed over CRI."),
      DurationKey("observer-gone-after", &Config::observer_gone_after, milliseconds(0), minutes(10),
                  "How long a pod must be missing from CRI's list, with its cgroups gone, to be "
                  "taken as removed while NRI is away."),
      DurationKey(
          "pod-ended-after", &Config::pod_ended_after, milliseconds(0), minutes(60),
          "How long a pod's sandbox must have stopped, with no other and no container there, "
          "for the pod to be taken as ended: what it held serves others then."),
      {.name = "realtime-priority",
       .range = "0 to 99",
       .help = "Above 0: the threads that a container's creation passes run in real time "
               "(SCHED_RR), so that pods start as soon on a node whose CPUs are all busy as on an "
               "idle one. Needs CAP_SYS_NICE; without it, a warning says so.",
       .read = ReadRealtimePriority,
       .show = [](const Config& config) { return std::to_string(config.realtime_priority); }},
      TextKey("metrics-address", &Config::metrics_address, "`:PORT` or `IP:PORT`; empty: off",
              "Where /metrics, /healthz and /readyz are served."),
      {.name = "log-level",
       .range = "debug, info, warning, error",
       .help = "Lines below this level are left out.",
       .read = ReadLogLevel,
       .show = [](const Config& /*config*/) { return std::string("info"); }},
  };
}

}  // namespace

const std::vector<ConfigKey>& ConfigKeys() {
  static const std::vector<ConfigKey> keys = [] {
    std::vector<ConfigKey> all;
    for (std::vector<ConfigKey> group :
         {PathKeys(), NodeKeys(), PlacementKeys(), PodKeyKeys(), KubeletKeys(), OperationKeys()}) {
      all.insert(all.end(), std::make_move_iterator(group.begin()),
                 std::make_move_iterator(group.end()));
    }
    return all;
  }();
  return keys;
}

StatusOr<milliseconds> ParseDuration(std::string_view text) {
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(stop - text.data()));
  constexpr int64_t kMost = int64_t{1} << 40;
  if (error == std::errc() && number >= 0 && number < kMost) {
    if (unit == "ms") {
      return milliseconds(number);
    }
    if (unit == "s") {
      return milliseconds(number * 1000);
    }
    if (unit == "m") {
      return milliseconds(number * 60'000);
    }
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read duration '{}': it is no whole number with a unit; write one such as "
                "500ms, 3s or 1m",
                text);
}

std::string DurationText(milliseconds duration) {
  const auto count = duration.count();
  if (count != 0 && count % 60'000 == 0) {
    return fmt::format("{}m", count / 60'000);
  }
  return count % 1000 == 0 ? fmt::format("{}s", count / 1000) : fmt::format("{}ms", count);
}

}  // namespace qrm::manager
