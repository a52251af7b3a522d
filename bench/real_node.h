// A real qrmd on a scripted runtime, with the pods of the benchmarks.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <sys/types.h>

#include "api/base/status.h"
#include "bench/bench_node.h"

namespace qrm::test {
class Node;
class SimulatedRuntime;
}  // namespace qrm::test

namespace qrm::bench {

/// Ends the program with the error's sentence: nothing may fail in a benchmark.
void Must(const Status& status);

/// Threads: one, except Run and Remove of different pods.
class RealNode {
 public:
  /// Keeps everything in `directory`; programs come from `bin_dir`. `reconcile_period` is qrmd's
  /// option.
  RealNode(const std::string& directory, const std::string& bin_dir, PluginsIn plugins_in,
           const std::string& reconcile_period);
  ~RealNode();
  RealNode(const RealNode&) = delete;
  RealNode& operator=(const RealNode&) = delete;

  /// Starts qrmd and, at the first call, plugins that are processes. Returns when qrmd reports that
  /// it is ready with so many containers.
  void Start(std::size_t containers);
  /// Starts qrmd with built-in plugins. Returns when the runtime has reported all containers and
  /// qrmd has taken them. Nothing is asked meanwhile, since each question is work beside the start.
  void StartUnasked();
  /// Ends qrmd; and plugins that are processes.
  void Stop();
  /// Waits for the end of a reconcile that began after this call.
  void Reconcile();

  /// Runs pod number `number`, which has one container. Returns the time of qrmd's answer to its
  /// creation.
  std::chrono::nanoseconds Run(std::size_t number, Kind kind);
  void Remove(std::size_t number);

  /// The process ID of qrmd.
  pid_t pid() const;

 private:
  const std::string directory_;
  const PluginsIn plugins_in_;
  const std::unique_ptr<test::SimulatedRuntime> runtime_;
  const std::unique_ptr<test::Node> node_;
};

}  // namespace qrm::bench
