// Carries calls to a compute driver over its socket.
#pragma once

#include <memory>
#include <string>

#include "manager/registry/calls/grpc_plugin_client.h"

namespace qrm::manager {

/// A compute driver as an endpoint. Its own calls go to its socket, and a request for a plugin's
/// options becomes cciGetOptions. Calls that only resource plugins have end with kUnimplemented at
/// once.
class DriverClient final : public PluginClient {
 public:
  /// As GrpcPluginClient.
  DriverClient(const std::string& socket, NumaMask machine_nodes,
               std::shared_ptr<rpc::CallsInFlight> in_flight)
      : socket_(socket, std::move(machine_nodes), std::move(in_flight)) {}

  std::shared_ptr<grpc::Channel> channel() const override { return socket_.channel(); }
  void Start(const std::shared_ptr<calls::Call>& call, Deadline deadline) override;

 private:
  GrpcPluginClient socket_;
};

}  // namespace qrm::manager
