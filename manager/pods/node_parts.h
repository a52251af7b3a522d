// The parts of the daemon that manager/pods uses.
#pragma once

#include <functional>

#include "api/base/io_context.h"
#include "manager/runtime/cgroup_cpusets.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class Admitter;
class ClassKeeper;
class ContainerRuntime;
class DemandSource;
class ForeignWrites;
class LiveContainers;
class Plugins;
class Reconciler;
class Releaser;
class StateLoop;

/// All parts outlive their users.
struct NodeParts {
  boost::asio::io_context& io;
  StateLoop& state;
  Plugins& plugins;
  DemandSource& source;
  Admitter& admitter;
  Releaser& releaser;
  Reconciler& reconciler;
  ContainerRuntime& runtime;
  LiveContainers& live;
  ForeignWrites& writes;
  const Machine& machine;
  CpusetSource read_cpuset;  ///< empty: cpusets are not read from the kernel
  /// Other containers leave the CPUs of a new owner before it starts, and not by a later update.
  bool writes_cpusets = true;
  /// True while kubelet pins this node's containers: then they are only noted, and not changed.
  /// Threads: any.
  std::function<bool()> stands_aside = [] { return false; };
  ClassKeeper* classes = nullptr;  ///< null: no container has a class
};

}  // namespace qrm::manager
