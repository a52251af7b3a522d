// For authors of a class type that runs as its own process: subclass ClassPlugin, then PluginMain
// serves it.
#pragma once

#include "plugins/sdk/class_provider.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// A type of QoS-class resources in its own process: ClassProvider's functions, served and
/// registered like a resource plugin. It registers the type's name as its resource. The name has a
/// dot ("lanes.example.com"); the name that List returns is ignored. It allocates nothing.
///
///   class Lanes final : public qrm::sdk::ClassPlugin { ... };
///   int main(int argc, char** argv) {
///     Lanes lanes;
///     return qrm::sdk::PluginMain("lanes.example.com", lanes, argc, argv);
///   }
///
/// A ResourcePlugin that also offers classes derives from both ResourcePlugin and ClassProvider.
///
/// Threads: the SDK calls every function from one thread, one call at a time. qrmd waits for each
/// call for plugin-call-deadline, half a second by default, and calls again at its next reconcile.
class ClassPlugin : public ResourcePlugin, public ClassProvider {
 public:
  PluginOptions Options() const final { return {}; }
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) final;
};

}  // namespace qrm::sdk
