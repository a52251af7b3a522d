// Tracks the calls that are under way, so that a stop can cancel them and wait for the last.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "api/base/hidden.h"

namespace qrm::rpc {

/// Counts calls in and out. Threads: any.
class CallsInFlight {
 public:
  using Id = uint64_t;

  CallsInFlight();
  ~CallsInFlight();
  CallsInFlight(const CallsInFlight&) = delete;
  CallsInFlight& operator=(const CallsInFlight&) = delete;

  /// Enters a call that `cancel` ends early; nothing once stopped, and the call must not start
  /// then.
  std::optional<Id> Enter(std::function<void()> cancel);
  /// The call is over: its callback has returned and let go of all that it held.
  void Leave(Id id);

  /// No call is let in any more.
  bool stopped() const;

  /// Cancels every call, lets no new one in and returns when the last has left. Threads: not on one
  /// that runs a call's callback.
  void StopAndWait();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::rpc
