// The answer of a class type to a request for an amount.
#include "plugins/sdk/class_plugin.h"

#include "api/base/errorf.h"

namespace qrm::sdk {

StatusOr<ResourceAllocation> ClassPlugin::Allocate(const ContainerRequest& request,
                                                   const TopologyHint& /*hint*/) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot allocate {}: it has classes, not amounts; request a class by annotation",
                request.resource);
}

}  // namespace qrm::sdk
