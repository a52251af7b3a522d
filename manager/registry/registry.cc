// Starts the parts of the registry in order.
#include "manager/registry/registry.h"

#include <filesystem>
#include <utility>

#include "manager/registry/registration_check.h"

namespace qrm::manager {

Registry::Registry(boost::asio::io_context& io, RegistryOptions options)
    : directories_{options.registration_dir, options.watcher.directory},
      endpoints_(std::move(options.endpoints)),
      registration_(std::move(options.registration_dir), endpoints_),
      watcher_(io, endpoints_, std::move(options.watcher)) {}

Status Registry::Start() {
  for (const std::string& directory : directories_) {
    if (std::filesystem::exists(directory)) {
      QRM_RETURN_IF_ERROR(CheckPluginDirectory(directory));
    }
  }
  QRM_RETURN_IF_ERROR(registration_.Start());
  return watcher_.Start();
}

}  // namespace qrm::manager
