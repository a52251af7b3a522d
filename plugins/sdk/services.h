// The gRPC services of a plugin: they convert, post to the plugin's thread, and answer from there.
#pragma once

#include <memory>
#include <string>

#include "api/base/task_thread.h"
#include "plugins/sdk/plugin_driver.h"

namespace grpc {
class Service;
}

namespace qrm::sdk {

/// resourceplugin.v1alpha1.ResourcePlugin over `driver`, which is called on `thread` only; both
/// outlive the service.
std::unique_ptr<grpc::Service> MakeResourcePluginService(TaskThread& thread, PluginDriver& driver);

/// qrm.v1.PluginExtensions over `driver`, as above.
std::unique_ptr<grpc::Service> MakeExtensionsService(TaskThread& thread, PluginDriver& driver);

/// pluginregistration.Registration for `resource`; what the manager says of the registration is
/// logged.
std::unique_ptr<grpc::Service> MakeRegistrationService(const std::string& resource);

}  // namespace qrm::sdk
