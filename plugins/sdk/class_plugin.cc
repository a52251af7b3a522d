// What a type of classes answers to those who take it for a resource.
#include "plugins/sdk/class_plugin.h"

#include "api/base/errorf.h"

namespace qrm::sdk {

StatusOr<ResourceAllocation> ClassPlugin::Allocate(const ContainerRequest& request,
                                                   const TopologyHint& /*hint*/) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot allocate {}: it has classes and no quantity; ask for a class by annotation",
                request.resource);
}

}  // namespace qrm::sdk
