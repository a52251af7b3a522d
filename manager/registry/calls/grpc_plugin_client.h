// Carries calls to a plugin, or to a compute driver, over its socket.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "api/rpc/calls_in_flight.h"
#include "manager/registry/calls/plugin_client.h"

namespace qrm::manager {

/// A plugin behind a socket. Results arrive on a gRPC thread, or on the caller's while qrmd is
/// stopping. Answers larger than kMaxAnswerBytes are rejected.
class GrpcPluginClient final : public PluginClient {
 public:
  /// The default of gRPC's clients: thousands of containers. Parsed, it is several times as much.
  static constexpr int kMaxAnswerBytes = 4 << 20;

  /// A client of the plugin that listens on `socket`; connects at the first call. Hints for nodes
  /// outside `machine_nodes` break the protocol. `in_flight` is shared by all clients of one
  /// registry.
  GrpcPluginClient(const std::string& socket, NumaMask machine_nodes,
                   std::shared_ptr<rpc::CallsInFlight> in_flight);
  ~GrpcPluginClient() override;
  GrpcPluginClient(const GrpcPluginClient&) = delete;
  GrpcPluginClient& operator=(const GrpcPluginClient&) = delete;

  std::shared_ptr<grpc::Channel> channel() const override { return channel_; }
  void Start(const std::shared_ptr<calls::Call>& call, Deadline deadline) override;

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const NumaMask machine_nodes_;
  const std::shared_ptr<rpc::CallsInFlight> in_flight_;
};

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
