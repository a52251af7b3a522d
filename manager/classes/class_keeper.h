// Brings classes to containers: before they start, when they change, and again when others undo it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/classes/class_book.h"
#include "manager/classes/class_status.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// Each type has a thread of its own, which alone waits for the kernel on its behalf: what a slow
/// disk or kernel delays is who starts with, or changes to, a class of that type. The state says
/// who has which class; the kernel follows it, and every `period` is compared with it.
///
/// Threads: any, but Start, Stop.
class ClassKeeper {
 public:
  /// All outlive the keeper's Stop.
  struct Parts {
    boost::asio::io_context& io;
    StateLoop& state;
    const LiveContainers& live;
    ClassBook& book;
    /// Somebody else manages this node's containers: nothing is done to them.
    std::function<bool()> stands_aside = [] { return false; };
  };
  ClassKeeper(Parts parts, std::chrono::milliseconds period);
  ~ClassKeeper();
  ClassKeeper(const ClassKeeper&) = delete;
  ClassKeeper& operator=(const ClassKeeper&) = delete;

  /// Has every type look at the machine, so that admissions know its classes, then begins the
  /// rounds. Threads: the I/O loop, before the runtime is heard.
  void Start();
  /// No round begins after it, and none is under way. Threads: the I/O loop.
  void Stop();

  /// The type's provider is new or back, or of all types the configuration may have changed: has it
  /// look at the machine now, so that admissions know its classes, and goes over all who have one.
  void Refresh(const std::string& type);
  void RefreshAll();

  /// Gives a container its classes that has been made and not been started; `done` runs once, at
  /// once where it has none. Errors: the first that a type could not give.
  void Prepare(const ContainerKey& key, std::function<void(const Status&)> done);

  /// Commits the change, then has the kernel follow it; `done` runs once, with the former class.
  /// Errors: kNotFound without such a pod, container, type or class; kFailedPrecondition for a type
  /// that cannot change; kResourceExhausted when the class is full; what the type could not do: the
  /// container has the former class then.
  void Set(const ClassChange& change, std::function<void(const StatusOr<std::string>&)> done);

  [[nodiscard]] std::vector<ClassTypeStatus> GetStatus() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
