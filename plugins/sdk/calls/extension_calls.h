// qrm's extensions: qrm.v1.PluginExtensions and PluginChanges. Plugins without the SDK answer
// kUnimplemented.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/resource.h"
#include "plugins/sdk/calls/call.h"
#include "plugins/sdk/held_list.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::calls {

/// Releases the allocations of one container while its pod continues. Plugins without this call
/// return the same allocation to a repeated request, and release it with the pod.
struct ReleaseContainer {
  static constexpr Method kMethod{"/qrm.v1.PluginExtensions/ReleaseContainer",
                                  "release a container of"};
  using Request = ContainerKey;
  using Answer = Nothing;
};

struct GetPools {
  static constexpr Method kMethod{"/qrm.v1.PluginExtensions/GetPools", "get the pools of"};
  using Request = std::string;  ///< the resource
  using Answer = std::vector<sdk::Pool>;
};

/// Replaces pools in one step, all or none; the answer lists all pools of the plugin.
struct SetPools {
  static constexpr Method kMethod{"/qrm.v1.PluginExtensions/SetPools", "set the pools of"};
  struct Request {
    std::string resource;
    StringMap cpus_by_pool;  ///< in the kernel's list form
  };
  using Answer = std::vector<sdk::Pool>;
};

/// The plugin's state as JSON.
struct ExportState {
  static constexpr Method kMethod{"/qrm.v1.PluginExtensions/ExportState", "export the state of"};
  using Request = Nothing;
  using Answer = std::string;
};

/// Restores the plugin's allocations from the manager's records, all or none. Other containers keep
/// their allocations.
struct Restore {
  static constexpr Method kMethod{"/qrm.v1.PluginExtensions/Restore", "restore the allocations of"};
  struct Request {
    sdk::Grants grants;
    std::optional<std::string> saved;  ///< what SaveState returned; absent: unchanged
  };
  using Answer = Nothing;
};

/// Reconciles the plugin and returns only the changes, so that the answer does not grow with the
/// node.
struct GetChangedAllocations {
  static constexpr Method kMethod{"/qrm.v1.PluginChanges/GetChangedAllocations",
                                  "get the changed allocations of"};
  using Request = std::string;  ///< `now` of the last processed answer; empty: none
  using Answer = sdk::ChangedAllocations;
};

/// All of these calls, for the plugin's side.
std::vector<ServedCall> ExtensionCalls();

}  // namespace qrm::calls
