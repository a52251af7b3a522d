// qrmd and its plugins on the model's machine, in the present arrangement.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/base/status.h"
#include "api/id_set.h"
#include "test/e2e/node.h"
#include "test/model/model_runtime.h"

namespace qrm::test {

/// Where a plugin runs.
enum class Home { kInside, kProcess, kOff };

/// The programs of the node; qrmd and the plugins in processes of their own end with it.
///
/// Threads: one.
class ModelNode {
 public:
  /// `directory` is the node's own; `runtime` outlives it.
  ModelNode(std::string directory, ModelRuntime& runtime, std::string kubelet_socket);

  /// Starts qrmd, and the plugins' processes that were not killed; waits until all are live. With
  /// `die_at_write`, qrmd dies at that write of its own.
  Status Start(int die_at_write = -1);
  /// kill -9.
  void Kill();
  bool Runs();
  pid_t pid() const { return daemon_->daemon_pid(); }
  /// Asks, and compares what only a running node can report.
  const Node& daemon() const { return *daemon_; }

  Home home(const std::string& resource) const { return homes_.at(resource); }
  /// Takes effect with the next Start; qrmd must be stopped.
  void SetHome(const std::string& resource, Home home);
  const CpuSet& offline() const { return offline_; }
  /// Likewise.
  void SetOffline(const CpuSet& cpus);

  /// For a plugin in a separate process, which stays stopped until StartPlugin.
  void KillPlugin(const std::string& resource);
  bool PluginRuns(const std::string& resource) const { return running_.contains(resource); }
  /// On another socket than before, if `elsewhere`. Errors: it does not become live.
  enum class Socket { kSame, kOther };
  Status StartPlugin(const std::string& resource, Socket socket = Socket::kSame);
  /// Deletes the plugin's database; it must not run.
  void EraseStateOf(const std::string& resource) const;

  /// While true, nothing can be written to qrmd's databases.
  void SetReadOnly(bool read_only) const;
  /// qrmd's checkpoint as a peer's file, imported into an empty directory; qrmd must be stopped.
  Status ExportAndImport();

  /// The records, and each plugin process's own allocations, to explain a failure.
  std::string Holdings() const;
  std::string LogEnd() const;

 private:
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  Status WriteConfig() const;
  Status StartDaemon(int die_at_write);

  const std::string directory_;
  ModelRuntime& runtime_;
  const std::string kubelet_socket_;
  const std::string programs_;
  std::map<std::string, Home> homes_;
  std::map<std::string, RegisterBy> registered_by_;
  std::set<std::string> running_;  ///< processes of plugins
  std::set<std::string> killed_;
  CpuSet offline_;
  std::unique_ptr<Node> daemon_;
  Node plugins_;  ///< a node without a daemon of its own
};

}  // namespace qrm::test
