// A resource plugin with answers from a test, over real gRPC on a real socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/proto/pluginregistration/v1/api.pb.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"

namespace qrm::test {

/// The plugin's answers; set before it serves. A handler may block: each call has its own thread.
struct PluginScript {
  template <typename Request, typename Response>
  using Handler = std::function<Status(const Request&, Response&)>;
  using pb_options =
      Handler<resourceplugin::v1alpha1::Empty, resourceplugin::v1alpha1::ResourcePluginOptions>;

  /// The default aligns with topology and takes part in reconcile.
  pb_options options;
  Handler<resourceplugin::v1alpha1::ResourceRequest,
          resourceplugin::v1alpha1::ResourceHintsResponse>
      hints;
  Handler<resourceplugin::v1alpha1::ResourceRequest,
          resourceplugin::v1alpha1::ResourceAllocationResponse>
      allocate;
  Handler<resourceplugin::v1alpha1::PreStartContainerRequest,
          resourceplugin::v1alpha1::PreStartContainerResponse>
      pre_start;
  Handler<resourceplugin::v1alpha1::RemovePodRequest, resourceplugin::v1alpha1::RemovePodResponse>
      remove_pod;
  Handler<resourceplugin::v1alpha1::GetResourcesAllocationRequest,
          resourceplugin::v1alpha1::GetResourcesAllocationResponse>
      reconcile;
  Handler<resourceplugin::v1alpha1::GetTopologyAwareResourcesRequest,
          resourceplugin::v1alpha1::GetTopologyAwareResourcesResponse>
      placement;
  Handler<resourceplugin::v1alpha1::GetTopologyAwareAllocatableResourcesRequest,
          resourceplugin::v1alpha1::GetTopologyAwareAllocatableResourcesResponse>
      allocatable;
  Handler<v1::GetPoolsRequest, v1::GetPoolsResponse> get_pools;
  /// Its identity in the watched directory; the type is set already.
  pluginregistration::PluginInfo identity;
};

/// Calls without a handler are UNIMPLEMENTED, except the options and the registration status.
///
/// Threads: any.
class ScriptedPlugin {
 public:
  /// Serves on `socket`, which must not exist; the file appears when it listens.
  ScriptedPlugin(const std::string& socket, PluginScript script);
  /// Stops as a process that is killed: calls break off and the file stays.
  ~ScriptedPlugin();
  ScriptedPlugin(const ScriptedPlugin&) = delete;
  ScriptedPlugin& operator=(const ScriptedPlugin&) = delete;

  /// The registration statuses that it received, in order: "" for registered, else the error.
  std::vector<std::string> statuses() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The identity of a resource plugin for `resource` that is served on the socket that answers.
pluginregistration::PluginInfo IdentityFor(const std::string& resource);

}  // namespace qrm::test
