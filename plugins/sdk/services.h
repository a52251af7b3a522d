// The gRPC service of a plugin: passes each call to the plugin's thread, and answers from there.
#pragma once

#include <memory>

#include "api/base/task_thread.h"
#include "plugins/sdk/plugin_driver.h"

namespace grpc {
class Service;
}

namespace qrm::sdk {

/// Every call that plugins serve (resourceplugin.v1alpha1.ResourcePlugin, qrm.v1.PluginExtensions,
/// qrm.v1.ClassPlugin and pluginregistration.Registration), over `driver`. The driver must have
/// started. It is called on `thread`, or on another thread while `thread` is idle (AnsweredBy).
/// Both must outlive the service.
std::unique_ptr<grpc::Service> MakePluginService(TaskThread& thread, PluginDriver& driver);

}  // namespace qrm::sdk
