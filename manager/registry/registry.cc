// Starts the parts of the registry in order.
#include "manager/registry/registry.h"

#include <utility>

namespace qrm::manager {

Registry::Registry(boost::asio::io_context& io, RegistryOptions options)
    : endpoints_(std::move(options.endpoints)),
      registration_(std::move(options.registration_dir), endpoints_),
      watcher_(io, endpoints_, std::move(options.watcher)) {}

Status Registry::Start() {
  QRM_RETURN_IF_ERROR(registration_.Start());
  return watcher_.Start();
}

}  // namespace qrm::manager
