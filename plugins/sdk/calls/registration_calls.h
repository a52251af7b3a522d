// The calls of a watched directory's manager to a socket there: pluginregistration.Registration.
#pragma once

#include <string>
#include <vector>

#include "plugins/sdk/calls/call.h"

namespace qrm::calls {

/// The type of a compute driver in the watched directory.
inline constexpr char kComputeDriverType[] = "CCIDriver";

/// How a socket in the watched directory identifies itself. Source: pluginregistration.PluginInfo.
struct PluginIdentity {
  std::string type;
  std::string name;
  std::string endpoint;
  std::vector<std::string> supported_versions;

  bool operator==(const PluginIdentity&) const = default;
};

/// The first call to a socket, which may be bound before it listens.
struct GetInfo {
  static constexpr Method kMethod{"/pluginregistration.Registration/GetInfo", "identify",
                                  AnsweredBy::kAnyThread, BeforeListening::kWaits};
  using Request = Nothing;
  using Answer = PluginIdentity;
};

/// Notifies the plugin whether it is registered.
struct NotifyRegistrationStatus {
  static constexpr Method kMethod{"/pluginregistration.Registration/NotifyRegistrationStatus",
                                  "send the registration status to", AnsweredBy::kAnyThread};
  using Request = std::string;  ///< why it was rejected; empty: it is registered
  using Answer = Nothing;
};

/// All of these calls, for the plugin's side.
std::vector<ServedCall> RegistrationCalls();

}  // namespace qrm::calls
