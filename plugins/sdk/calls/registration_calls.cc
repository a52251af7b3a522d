// Defines the calls of the watched directory: their messages and service.
#include "plugins/sdk/calls/registration_calls.h"

#include "api/base/log.h"
#include "api/proto/pluginregistration/v1/api.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"
#include "plugins/sdk/calls/call_codec.h"
#include "plugins/sdk/compute_driver.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::calls {

namespace pr = ::pluginregistration;
using sdk::PluginDriver;

template <>
struct Codec<GetInfo> {
  using Message = pr::InfoRequest;
  using Response = pr::PluginInfo;

  static StatusOr<PluginIdentity> Serve(const PluginDriver& driver) {
    const bool computes = sdk::IsDriverResource(driver.resource());
    return PluginIdentity{.type = computes ? kComputeDriverType : wire::kResourcePluginType,
                          .name = computes ? std::string(sdk::DriverNameOf(driver.resource()))
                                           : driver.resource().str(),
                          .supported_versions = {wire::kPluginApiVersion}};
  }
  static Response AnswerToWire(const PluginIdentity& identity) {
    Response response;
    response.set_type(identity.type);
    response.set_name(identity.name);
    response.set_endpoint(identity.endpoint);
    for (const std::string& version : identity.supported_versions) {
      response.add_supported_versions(version);
    }
    return response;
  }
  static StatusOr<PluginIdentity> AnswerFromWire(const Response& response) {
    return PluginIdentity{.type = response.type(),
                          .name = response.name(),
                          .endpoint = response.endpoint(),
                          .supported_versions = {response.supported_versions().begin(),
                                                 response.supported_versions().end()}};
  }
};
template class CallTo<GetInfo>;

template <>
struct Codec<NotifyRegistrationStatus> {
  using Response = pr::RegistrationStatusResponse;
  using Message = pr::RegistrationStatus;

  static Message ToWire(const std::string& refusal) {
    Message message;
    message.set_plugin_registered(refusal.empty());
    message.set_error(refusal);
    return message;
  }
  static StatusOr<std::string> FromWire(const Message& message) {
    if (message.plugin_registered()) {
      return std::string();
    }
    return message.error().empty() ? "no reason given" : message.error();
  }
  /// A rejection may come from a manager of other plugins that watches the same directory. It is
  /// logged, and the plugin continues.
  static Status Serve(const PluginDriver& driver, const std::string& refusal) {
    if (refusal.empty()) {
      log::Info("plugin registered through the watched directory",
                {{"resource", driver.resource()}});
    } else {
      log::Warning("manager rejected the plugin's registration",
                   {{"resource", driver.resource()}, {"error", refusal}});
    }
    return OkStatus();
  }
};
template class CallTo<NotifyRegistrationStatus>;

std::vector<ServedCall> RegistrationCalls() {
  return {Served<GetInfo>(), Served<NotifyRegistrationStatus>()};
}

}  // namespace qrm::calls
