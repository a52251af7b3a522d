// qrm-scheduler beside an API server in memory, asked as kube-scheduler asks it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "test/e2e/process.h"
#include "test/support/fake_api_server.h"

namespace qrm::test {

/// The cluster has node "n1", which gives Guaranteed pods exclusive CPUs of one of its NUMA nodes.
///
/// Threads: Filter and Bind on any once it has started; the rest on one.
class SchedulerProcess {
 public:
  /// Keeps everything in `directory`; the program is in `bin_dir`.
  SchedulerProcess(std::string directory, const std::string& bin_dir);

  /// Returns when it is ready.
  Status Start();

  FakeApiServer& cluster() { return cluster_; }
  Process& process() { return *process_; }
  const std::string& program() const { return program_; }
  int port() const { return port_; }
  int monitor_port() const { return monitor_port_; }

  /// Asks whether a pod, named as "NAMESPACE/NAME", fits `node`. Returns the time of the answer
  /// that it does. Errors: kUnavailable with another answer, as before the pod has been read.
  StatusOr<std::chrono::nanoseconds> Filter(const std::string& pod,
                                            const std::string& node = "n1") const;
  /// Binds the pod to "n1". Errors: kUnavailable with the answer.
  Status Bind(const std::string& pod) const;

 private:
  const std::string directory_;
  const std::string program_;
  FakeApiServer cluster_;
  std::unique_ptr<Process> process_;
  int port_ = 0;
  int monitor_port_ = 0;
};

}  // namespace qrm::test
