// Carries calls to a plugin inside this process, without gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "api/rpc/calls_in_flight.h"
#include "manager/registry/calls/plugin_client.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {
class PluginDriver;
}  // namespace qrm::sdk

namespace qrm::manager {

/// A plugin with its thread, its grants and their state: like sdk::PluginHost, for callers in
/// the same process. One thread at a time calls the plugin: the caller's thread if the plugin is
/// idle, else the plugin's own. Results arrive before Start returns, on the plugin's thread, or at
/// their deadline on the thread of `io`. A call that has already ended is not begun. Work that may
/// hang is posted, and is never part of a call.
class LocalPlugin final : public PluginClient {
 public:
  struct Parts {
    boost::asio::io_context& io;
    NumaMask machine_nodes;                         ///< answers with other nodes break the protocol
    std::shared_ptr<rpc::CallsInFlight> in_flight;  ///< of the plugin's registry
    std::string state_dir;                          ///< passed to the plugin; empty: none
  };

  /// Runs `plugin`, which outlives the result, for `resource`. When this returns, its former grants
  /// are restored. Errors: the state's, or the plugin's from Restore.
  static StatusOr<std::unique_ptr<LocalPlugin>> Start(sdk::ResourcePlugin& plugin,
                                                      const std::string& resource,
                                                      std::unique_ptr<sdk::PluginState> state,
                                                      Parts parts);
  /// Finishes the calls in progress.
  ~LocalPlugin() override;
  LocalPlugin(const LocalPlugin&) = delete;
  LocalPlugin& operator=(const LocalPlugin&) = delete;

  /// Calls `listener` for every change of allocations that the plugin makes outside of the
  /// manager's calls; it must not block. It replaces the former listener, which is not called any
  /// more when this returns. It may be empty.
  void OnChanged(std::function<void()> listener);

  /// Runs `task` on the plugin's thread, between calls. It must not throw.
  void Post(std::function<void()> task);

  /// Runs `task` between calls, with the plugin's driver, and waits for it. It must not throw.
  /// Threads: any but the plugin's.
  void Run(const std::function<void(sdk::PluginDriver& driver)>& task);

  std::shared_ptr<grpc::Channel> channel() const override { return nullptr; }
  void Start(const std::shared_ptr<calls::Call>& call, Deadline deadline) override;

 private:
  struct Impl;
  explicit LocalPlugin(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
