// Our own extensions: qrm.v1.PluginExtensions and PluginChanges. Plugins without the SDK answer
// kUnimplemented.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/resource.h"
#include "plugins/sdk/calls/call.h"
#include "plugins/sdk/changed_allocations.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::calls {

/// Undoes the allocations of one container of a pod that lives on. Plugins without it return the
/// same allocation when it is asked for again, and drop it with the pod.
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

/// Replaces pools in one step, all or none; the answer has all pools of the plugin.
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

/// Teaches the plugin what it gave, by the manager's records; all of it, or nothing. Containers
/// that are not named keep what they have.
struct Restore {
  static constexpr Method kMethod{"/qrm.v1.PluginExtensions/Restore", "teach its allocations to"};
  struct Request {
    sdk::Grants grants;
    std::optional<std::string> saved;  ///< what SaveState returned; absent: the plugin knows
  };
  using Answer = Nothing;
};

/// What changed, after the plugin has reconciled: what is said after one container does not grow
/// with the node.
struct GetChangedAllocations {
  static constexpr Method kMethod{"/qrm.v1.PluginChanges/GetChangedAllocations",
                                  "get the changed allocations of"};
  using Request = std::string;  ///< `now` of an answer that was dealt with; empty: there is none
  using Answer = sdk::ChangedAllocations;
};

/// All of them, as a plugin serves them.
std::vector<ServedCall> ExtensionCalls();

}  // namespace qrm::calls
