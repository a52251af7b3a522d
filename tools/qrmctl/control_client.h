// The control API as qrmctl calls it, with errors that say what to do.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "api/proto/qrm/v1/control.pb.h"

namespace qrm::manager::cli {

/// One connection to qrmd. Every call fails with kUnavailable and a sentence on how to reach it
/// when it does not run, with kPermissionDenied when it does not serve this user.
class ControlClient {
 public:
  explicit ControlClient(const std::string& socket_path);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  StatusOr<v1::GetStatusResponse> GetStatus();
  StatusOr<v1::ListPluginsResponse> ListPlugins();
  StatusOr<v1::ListPodsResponse> ListPods(const std::string& pod);
  StatusOr<v1::GetTopologyResponse> GetTopology();
  StatusOr<v1::ExplainResponse> Explain(const std::string& pod);
  /// `pod` is a serialized k8s.io.api.core.v1.Pod.
  StatusOr<v1::DryRunResponse> DryRun(const std::string& pod);
  StatusOr<v1::GetPoolsResponse> GetPools(const std::string& resource);
  StatusOr<v1::SetPoolsResponse> SetPools(const std::string& resource,
                                          const std::map<std::string, std::string>& cpus_by_pool);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager::cli
