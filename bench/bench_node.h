// The parts of qrmd that place containers, with real plugins and durable states, and without a
// daemon around them.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "checkpoint/decision_log.h"
#include "manager/admission/admitter.h"
#include "manager/classes/class_book.h"
#include "manager/daemon/config.h"
#include "manager/registry/calls/local_plugin.h"
#include "manager/registry/registry.h"
#include "manager/state/state_loop.h"
#include "test/support/child_process.h"
#include "test/support/loop_thread.h"

namespace qrm::bench {

/// Where the three plugins run; in the last case, the cpu plugin alone is a process.
enum class PluginsIn { kDaemon, kProcesses, kCpuProcess };

/// What containers ask for: CPUs and memory of their own on one NUMA node and a NIC there, or a
/// share of a pool.
enum class Kind { kPinned, kPooled };

/// Writes qrmd's configuration for such containers into `directory` and returns its path; plugins
/// are built in.
std::string WriteDaemonConfig(const std::string& directory);

/// The same for the plugin program bin/qrm-plugin-`name`.
std::string WritePluginConfig(const std::string& directory, const std::string& name);

/// Program name -> its resource, after which its state's file is named.
const std::map<std::string, std::string>& PluginResources();

/// The types of QoS-class resources of a node.
struct NodeClasses {
  manager::ClassesOptions options;
  manager::ClassBook::Providers providers;
};

/// A node of 80 CPUs. Threads: one, which may also be the state loop's.
class BenchNode {
 public:
  /// Keeps everything in `directory`; plugin programs come from `bin_dir`.
  BenchNode(const std::string& directory, const std::string& bin_dir, PluginsIn plugins_in,
            NodeClasses classes = {});
  ~BenchNode();
  BenchNode(const BenchNode&) = delete;
  BenchNode& operator=(const BenchNode&) = delete;

  manager::StateLoop& state() { return state_; }
  /// Reads them from the disk.
  std::vector<checkpoint::DecisionTrace> Decisions() { return decisions_.Read(); }
  manager::Plugins& plugins() { return registry_->plugins(); }
  const Machine& machine() const { return machine_; }
  boost::asio::io_context& io() { return io_.io(); }

  /// The demand of the only container of pod number `number`.
  static manager::ContainerDemand DemandOf(std::size_t number, Kind kind);

  /// Both on the state loop. Errors end the program: a benchmark of failures measures nothing.
  void Admit(const manager::ContainerDemand& demand);
  void Remove(const std::string& pod_uid);
  /// Runs `work` on the state loop, or on the I/O loop, and waits for it.
  void Run(const std::function<void()>& work);
  void RunOnIo(const std::function<void()>& work) { io_.Run(work); }

  /// Commits of qrmd's own state.
  std::size_t commits() const { return commits_; }
  /// The sizes of the logs of qrmd's state and of plugin processes' states, ours first, and when
  /// they were written.
  std::vector<std::size_t> LogBytes() const;
  std::vector<std::filesystem::file_time_type> LogTimes() const;

 private:
  void StartProcess(const std::string& bin_dir, const std::string& name);
  void AwaitPlugins();
  std::vector<std::string> Logs() const;

  const std::string directory_;
  const manager::Config config_;
  const Machine machine_;
  const SystemClock clock_;
  std::atomic<std::size_t> commits_ = 0;
  manager::StateLoop state_;
  test::LoopThread io_;
  std::vector<std::unique_ptr<test::ChildProcess>> processes_;
  std::vector<manager::BuiltinPlugin> builtins_;
  std::vector<std::unique_ptr<manager::LocalPlugin>> local_plugins_;
  std::unique_ptr<manager::Registry> registry_;
  manager::Releaser releaser_;
  const manager::ClassBook classes_;
  checkpoint::DecisionLog decisions_;
  manager::Admitter admitter_;
};

}  // namespace qrm::bench
