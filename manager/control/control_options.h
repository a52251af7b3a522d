// The options of the control socket, with their defaults and keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/config_key.h"

namespace qrm::manager {

struct ControlOptions {
  std::string socket = "/run/qrm/control.sock";
  /// The users that may connect besides root and qrmd's own user.
  std::vector<uid_t> allowed_uids;
  std::chrono::milliseconds plugin_timeout{2000};  ///< for GetPools and SetPools
};

config::ConfigKey UserIdsKey(std::string name, std::vector<uid_t>& place, std::string help);

inline std::vector<config::ConfigKey> ControlKeys(ControlOptions& options) {
  return {config::PathKey("control-socket", options.socket, "The socket for qrmctl."),
          UserIdsKey("control-uids", options.allowed_uids,
                     "The users that may use control-socket, besides root and qrmd's own user.")};
}

}  // namespace qrm::manager
