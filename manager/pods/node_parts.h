// The parts of the daemon that this room uses.
#pragma once

#include <functional>

#include "api/base/io_context.h"
#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/classes/class_keeper.h"
#include "manager/demand/demand_source.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/reconcile/reconciler.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {

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
