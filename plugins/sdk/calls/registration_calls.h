// What the manager of a watched directory asks of a socket there: pluginregistration.Registration.
#pragma once

#include <string>
#include <vector>

#include "plugins/sdk/calls/call.h"

namespace qrm::calls {

/// The type of a compute driver in the watched directory.
inline constexpr char kComputeDriverType[] = "CCIDriver";

/// What a socket in the watched directory says it is. Source: pluginregistration.PluginInfo.
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

/// Tells the plugin whether it is registered.
struct NotifyRegistrationStatus {
  static constexpr Method kMethod{"/pluginregistration.Registration/NotifyRegistrationStatus",
                                  "tell its registration status to", AnsweredBy::kAnyThread};
  using Request = std::string;  ///< why it was refused; empty: it is registered
  using Answer = Nothing;
};

/// All of them, as a plugin serves them.
std::vector<ServedCall> RegistrationCalls();

}  // namespace qrm::calls
