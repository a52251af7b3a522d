// The parts of qrmd that place containers, with real plugins and durable states, and without a
// daemon around them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/io_context.h"
#include "checkpoint/decision_trace.h"
#include "manager/classes/class_book.h"
#include "manager/demand/demand_source.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {
class Plugins;
class StateLoop;
}  // namespace qrm::manager

namespace qrm::bench {

/// Where the three plugins run; in the last case, only the cpu plugin is a process.
enum class PluginsIn { kDaemon, kProcesses, kCpuProcess };

/// What containers request: exclusive CPUs and memory on one NUMA node and a NIC there, or a share
/// of a pool.
enum class Kind { kPinned, kPooled };

/// Writes qrmd's configuration for such containers into `directory` and returns its path; plugins
/// are built in.
std::string WriteDaemonConfig(const std::string& directory);

/// The same for the plugin program bin/qrm-plugin-`name`.
std::string WritePluginConfig(const std::string& directory, const std::string& name);

/// Program name -> its resource, which its state's file is named after.
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

  manager::StateLoop& state();
  /// Reads them from the disk.
  std::vector<checkpoint::DecisionTrace> Decisions();
  manager::Plugins& plugins();
  const Machine& machine() const;
  boost::asio::io_context& io();

  /// The demand of the only container of pod number `number`.
  static placement::ContainerDemand DemandOf(std::size_t number, Kind kind);

  /// Both on the state loop. Errors end the program: a benchmark of failures measures nothing.
  void Admit(const placement::ContainerDemand& demand);
  void Remove(const std::string& pod_uid);
  /// The time of an admission, after which the pod is removed; on the state loop. Units:
  /// microseconds.
  double TimeOf(const placement::ContainerDemand& demand);
  /// Runs `work` on the state loop, or on the I/O loop, and waits for it.
  void Run(const std::function<void()>& work);
  void RunOnIo(const std::function<void()>& work);

  /// Commits of qrmd's own state.
  std::size_t commits() const;
  /// The sizes of the logs of qrmd's state and of plugin processes' states, ours first, and when
  /// they were written.
  std::vector<std::size_t> LogBytes() const;
  std::vector<std::chrono::file_clock::time_point> LogTimes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::bench
