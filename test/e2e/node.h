// The qrm of one node: the daemon, plugins in separate processes, and the two sockets for clients.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/proto/podresources/v1/api.pb.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/resource.h"
#include "test/e2e/process.h"

namespace qrm::test {

/// Which way a plugin process registers.
enum class RegisterBy { kDirectory, kSocket };

/// Starts the built programs on sockets of a private directory.
///
/// Threads: one.
class Node {
 public:
  struct Options {
    std::string bin_dir;
    std::string daemon = "qrmd";  ///< or a program made of the same code on doubles of a machine
    std::string work_dir;         ///< made if needed; short, since sockets go below it
    std::string config;           ///< qrmd's configuration file
    std::string nri_socket;
    std::string cri_socket;
    std::string builtin_plugins;  ///< "cpu,memory,nic", or empty for none
    std::string reconcile_period = "3s";
    std::string metrics_address;     ///< empty: none; port 0: see metrics_port()
    std::string probe_address;       ///< empty: none; port 0: see probe_port()
    std::string mode = "nri";        ///< how it learns of containers; or "observer"
    std::vector<std::string> flags;  ///< more of qrmd's, such as "--observer-grace=1s"
  };

  explicit Node(Options options);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Starts qrmd; its readiness is not waited for.
  Status Launch();
  /// Starts qrmd and waits until it knows the runtime's containers and has `plugins` live ones.
  Status Start(std::size_t plugins);
  /// kill -9.
  void KillDaemon();
  bool DaemonRuns() { return daemon_->Running(); }
  /// For killers in other threads: valid until the daemon is waited for.
  pid_t daemon_pid() const { return daemon_->pid(); }
  pid_t plugin_pid(const std::string& name) const { return plugins_.at(name)->pid(); }
  /// Starts bin/qrm-plugin-NAME with `config` and waits until qrmd has `resource` live.
  Status StartPlugin(const std::string& name, const std::string& resource,
                     const std::string& config, RegisterBy by = RegisterBy::kDirectory);
  void KillPlugin(const std::string& name);
  bool PluginRuns(const std::string& name) { return plugins_.at(name)->Running(); }
  /// Waits until so many are live. Errors: kUnavailable.
  Status WaitForPlugins(std::size_t count);
  /// The port of the daemon's metrics now, by its log; 0 when it serves none.
  int metrics_port() const { return PortOf("metrics_port="); }
  /// What it serves there.
  std::string Metrics() const;
  int probe_port() const { return PortOf("probe_port="); }
  int page_port() const { return PortOf("page_port="); }
  /// Whether qrmd has logged that it knows the specs of kubelet's pods, here or at an earlier
  /// start.
  bool HasFollowedKubelet() const;
  /// Ends everything by SIGTERM. Errors: the first program that does not end cleanly.
  Status Stop();

  /// Asks for a reconcile of all plugins, and waits until one that began after that has ended.
  Status Reconcile() const;
  StatusOr<v1::GetStatusResponse> GetStatus() const;
  StatusOr<std::vector<v1::Plugin>> ListPlugins() const;
  StatusOr<v1::ListPodsResponse> ListPods() const;
  StatusOr<::v1::ListPodResourcesResponse> ListPodResources() const;
  StatusOr<::v1::AllocatableResourcesResponse> GetAllocatableResources() const;
  /// As the plugin or driver of `resource` does when it wants a change.
  Status NotifyChanged(const std::string& resource) const;
  /// What would become of the serialized k8s.io.api.core.v1.Pod `pod` if it came now.
  StatusOr<v1::DryRunResponse> DryRun(const std::string& pod) const;
  /// The plugin's state in the proposal's form, from the plugin itself.
  StatusOr<std::string> ExportState(const std::string& resource) const;
  /// Sets pools directly in the plugin: qrmd learns of it from the plugin only.
  Status SetPluginPools(const std::string& resource, const StringMap& cpus_by_pool) const;
  /// Runs qrmctl with `arguments` and returns what it printed.
  StatusOr<std::string> Qrmctl(std::vector<std::string> arguments) const;

 private:
  /// The number behind `field` in the daemon's latest log line about its servers.
  int PortOf(std::string_view field) const;
  std::string Path(const std::string& name) const { return options_.work_dir + "/" + name; }
  /// Not the process before it, whose death qrmd may not have noticed.
  bool IsLiveSince(const std::string& resource, std::chrono::steady_clock::time_point begin) const;

  const Options options_;
  std::unique_ptr<Process> daemon_;
  std::map<std::string, std::unique_ptr<Process>> plugins_;
  std::map<std::string, std::string> plugin_sockets_;  // by resource
};

}  // namespace qrm::test
