// How the control socket is served: the options, their defaults and their keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/config_key.h"

namespace qrm::manager {

struct ControlOptions {
  std::string socket = "/run/qrm/control.sock";
  /// Who may connect besides root and the user that qrmd runs as.
  std::vector<uid_t> allowed_uids;
  std::chrono::milliseconds plugin_timeout{2000};  ///< of GetPools and SetPools
};

config::ConfigKey UserIdsKey(std::string name, std::vector<uid_t>& place, std::string help);

inline std::vector<config::ConfigKey> ControlKeys(ControlOptions& options) {
  return {config::PathKey("control-socket", options.socket, "Serves qrmctl."),
          UserIdsKey("control-uids", options.allowed_uids,
                     "Who may use control-socket besides root and qrmd's own user.")};
}

}  // namespace qrm::manager
