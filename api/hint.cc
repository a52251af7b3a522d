// Writes hints as text.
#include "api/hint.h"

namespace qrm {

std::string ToString(const TopologyHint& hint) {
  const std::string nodes = hint.nodes.Empty() ? "any node" : ToString(hint.nodes);
  return nodes + (hint.preferred ? " preferred" : " not preferred");
}

}  // namespace qrm
