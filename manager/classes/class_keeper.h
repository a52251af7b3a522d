// Applies classes to containers: before they start, when they change, and when they drift.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/decision_trace.h"
#include "manager/classes/class_book.h"
#include "manager/classes/class_choice.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// Each type has its own thread, which waits for the kernel: a slow disk or kernel delays only
/// containers that start with, or change to, a class of that type. The kernel follows the classes
/// in the state, and is compared with them every `period`.
///
/// Threads: any, except Start and Stop.
class ClassKeeper {
 public:
  /// All outlive the keeper's Stop.
  struct Parts {
    boost::asio::io_context& io;
    StateLoop& state;
    const LiveContainers& live;
    ClassBook& book;
    /// True while kubelet pins the containers itself: no container is changed then.
    std::function<bool()> stands_aside = [] { return false; };
    checkpoint::NoteEvent note = [](const checkpoint::NodeEvent&) {};
    /// Whether permissions allow a namespace to ask for "TYPE/CLASS".
    std::function<bool(const std::string& pod_namespace, const std::string& name)> may_ask =
        [](const std::string&, const std::string&) { return false; };
  };
  ClassKeeper(Parts parts, std::chrono::milliseconds period);
  ~ClassKeeper();
  ClassKeeper(const ClassKeeper&) = delete;
  ClassKeeper& operator=(const ClassKeeper&) = delete;

  /// Has every type look at the machine, so that admissions know its classes, then starts the
  /// rounds. Threads: the I/O loop, before events of the runtime.
  void Start();
  /// Starts no further rounds. Threads: the I/O loop.
  void Stop();

  /// Starts a round of the type now: its provider is new or running again.
  void Refresh(const std::string& type);
  /// The same for all types, after a change of the configuration.
  void RefreshAll();

  /// Applies the classes of a container that is created but not started. `done` runs once; within
  /// the call if there are none. Errors: the first class that could not be applied.
  void Prepare(const ContainerKey& key, std::function<void(const Status&)> done);

  /// Commits the change, then applies it in the kernel; `done` runs once, with the former class.
  /// Errors: kNotFound without such a pod, container, type or class; kFailedPrecondition for a type
  /// that cannot change; kResourceExhausted if the class is full; the provider's, with the former
  /// class restored.
  void Set(const ClassChange& change, std::function<void(const StatusOr<std::string>&)> done);

  [[nodiscard]] std::vector<ClassTypeStatus> GetStatus() const;
  /// What the container lacks of the classes that it has or asks for: one sentence each.
  [[nodiscard]] std::vector<std::string> ProblemsOf(const ContainerKey& key) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
