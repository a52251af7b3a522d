// Kubelet's Pods API on a real socket, with a script's behaviour.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "api/proto/pods/v1alpha1/api.pb.h"

namespace qrm::test {

/// A pod's message with one container `main`; edit it with its protobuf, or send other bytes.
std::string PodMessage(const std::string& uid, const std::string& name, const std::string& cpus);

/// Sends watchers what a test asks for, wrong messages included. A new watcher first gets all
/// present pods, then INITIAL_SYNC_COMPLETE.
///
/// Threads: any.
class ScriptedKubelet {
 public:
  explicit ScriptedKubelet(const std::string& socket);
  /// Cuts all watchers off, and closes the socket.
  ~ScriptedKubelet();
  ScriptedKubelet(const ScriptedKubelet&) = delete;
  ScriptedKubelet& operator=(const ScriptedKubelet&) = delete;

  /// What new watchers and GetPod receive; no event.
  void Put(const std::string& uid, const std::string& pod);
  /// New watchers and GetPod do not receive it any more; no event.
  void Forget(const std::string& uid);
  /// Watchers are not sent INITIAL_SYNC_COMPLETE, nor anything else, until Sync().
  void HoldSync();
  void Sync();
  /// Questions for the pod of this UID are not answered until ReleaseLookups().
  void HoldLookups(const std::string& uid);
  void ReleaseLookups();
  /// Sends an event to all watchers, of any number and bytes.
  void Send(int type, const std::string& pod);
  /// Ends all watches with this.
  void Drop(const Status& status);

  /// Questions for one pod so far.
  int lookups() const;
  int watches() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
