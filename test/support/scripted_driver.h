// A compute driver with answers from a test, over real gRPC on a real socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/proto/cci/v1alpha1/cci.pb.h"

namespace qrm::test {

/// The driver's answers; set before it serves. A handler may block: each call has its own thread.
struct DriverScript {
  template <typename Request, typename Response>
  using Handler = std::function<Status(const Request&, Response&)>;

  std::string name = "scripted";
  bool resizes = false;  ///< it changes CPUs of running containers, and serves the options
  Handler<cci::v1alpha1::AdmitRequest, cci::v1alpha1::AdmitResponse> admit;
  Handler<cci::v1alpha1::AddResourceRequest, cci::v1alpha1::AddResourceResponse> add =
      [](const auto&, auto&) { return OkStatus(); };
  Handler<cci::v1alpha1::RemoveResourceRequest, cci::v1alpha1::RemoveResourceResponse> remove =
      [](const auto&, auto&) { return OkStatus(); };
};

/// Serves the three calls of the proposal, and the options where the script needs them.
///
/// Threads: any.
class ScriptedDriver {
 public:
  /// Serves on `socket`, which must not exist; the file appears when it listens.
  ScriptedDriver(const std::string& socket, DriverScript script);
  /// Stops as a process that is killed: calls break off and the file stays.
  ~ScriptedDriver();
  ScriptedDriver(const ScriptedDriver&) = delete;
  ScriptedDriver& operator=(const ScriptedDriver&) = delete;

  /// "admit CONTAINER", "resize CONTAINER", "add CONTAINER ID", "remove CONTAINER ID" for each call
  /// so far, in order.
  std::vector<std::string> calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
