// The gRPC service of a plugin: it hands each call to the plugin's thread, and answers from there.
#pragma once

#include <memory>

#include "api/base/task_thread.h"
#include "plugins/sdk/plugin_driver.h"

namespace grpc {
class Service;
}

namespace qrm::sdk {

/// Every call that plugins serve (resourceplugin.v1alpha1.ResourcePlugin, qrm.v1.PluginExtensions,
/// qrm.v1.ClassPlugin and pluginregistration.Registration), over `driver`, which has started and is
/// called on `thread`, or elsewhere while that is idle (AnsweredBy); both outlive the service.
std::unique_ptr<grpc::Service> MakePluginService(TaskThread& thread, PluginDriver& driver);

}  // namespace qrm::sdk
