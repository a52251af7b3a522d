// The scopes of the reconciler's runs.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "api/resource.h"
#include "checkpoint/node_state.h"

namespace qrm::manager {

/// The plugins that a run asks for everything.
struct Scope {
  bool nobody() const { return !all && resources.empty(); }
  void Add(const std::string& resource) {
    all = all || resource.empty();
    resources.insert(resource);
  }

  bool all = false;
  std::set<std::string> resources;  ///< ignored if `all`
};

/// The scope of a small run beside the plugins' changes.
struct Changes {
  bool wanted = false;
  std::set<ContainerKey> started;
};

/// The state when a run asked the plugins, and the plugins that it did not ask.
struct Inquiry {
  std::shared_ptr<const checkpoint::NodeState> state;
  std::set<std::string> unasked;  ///< plugins that answer for their resources in another run
  bool whole = false;             ///< all plugins were asked
};

}  // namespace qrm::manager
