// What runs of the reconciler are about.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "api/resource.h"
#include "checkpoint/node_state.h"

namespace qrm::manager {

/// Whom a run asks for everything.
struct Scope {
  bool nobody() const { return !all && resources.empty(); }
  void Add(const std::string& resource) {
    all = all || resource.empty();
    resources.insert(resource);
  }

  bool all = false;
  std::set<std::string> resources;  ///< counts unless all are asked
};

/// What a small run looks at besides what plugins changed.
struct Changes {
  bool wanted = false;
  std::set<ContainerKey> started;
};

/// Whom a run asked, and the state that it asked about.
struct Inquiry {
  std::shared_ptr<const checkpoint::NodeState> state;
  std::set<std::string> unasked;  ///< plugins that speak for themselves in another run
  bool whole = false;             ///< all were asked
};

}  // namespace qrm::manager
