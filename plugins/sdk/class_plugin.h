// What the author of a type of classes that runs as a process sees: subclass ClassPlugin, then
// PluginMain serves it.
#pragma once

#include "plugins/sdk/class_provider.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// A type of QoS-class resources as a process of its own: the functions of ClassProvider, behind
/// the socket and the registration of a resource plugin. The resource that it registers is the
/// type's name, which has a dot ("lanes.example.com"); that of List does not count. It holds no
/// resource, so that nothing but the socket is its own.
///
///   class Lanes final : public qrm::sdk::ClassPlugin { ... };
///   int main(int argc, char** argv) {
///     Lanes lanes;
///     return qrm::sdk::PluginMain("lanes.example.com", lanes, argc, argv);
///   }
///
/// A ResourcePlugin that offers classes, too, derives from both instead.
///
/// Threads: the SDK calls every function from one thread, one call at a time. qrmd waits for a call
/// for plugin-call-deadline, which is half a second unless it is configured otherwise, and calls
/// again at its next reconcile.
class ClassPlugin : public ResourcePlugin, public ClassProvider {
 public:
  PluginOptions Options() const final { return {}; }
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) final;
};

}  // namespace qrm::sdk
