// The parts of the daemon that this room uses.
#pragma once

#include <functional>

#include "api/base/io_context.h"
#include "manager/runtime/cgroup_reader.h"

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

/// All outlive those who are given it.
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
  CpusetSource read_cpuset;  ///< empty: the kernel is not asked
  /// Others leave the CPUs of a new owner before it begins, and not by an update that follows.
  bool writes_cpusets = true;
  /// Somebody else pins this node's containers: they are noted, and nothing is done to them.
  /// Threads: any.
  std::function<bool()> stands_aside = [] { return false; };
  ClassKeeper* classes = nullptr;  ///< null: nobody has a class
};

}  // namespace qrm::manager
