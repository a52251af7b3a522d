// The directories in which plugins register: the options, their defaults and their keys.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

struct RegistrationOptions {
  std::string registration_dir = "/var/lib/qrm/resource-plugins";
  std::string plugins_registry_dir = "/var/lib/qrm/plugins_registry";
};

inline std::vector<config::ConfigKey> RegistrationKeys(RegistrationOptions& options) {
  return {
      config::PathKey("registration-dir", options.registration_dir,
                      "Plugins call Register on kubelet.sock in this directory. qrmd creates it."),
      config::PathKey("plugins-registry-dir", options.plugins_registry_dir,
                      "qrmd registers plugins whose sockets appear in this directory."),
  };
}

}  // namespace qrm::manager
