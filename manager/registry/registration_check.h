// The directories in which plugins register, and checks of a plugin's name, version and socket.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::manager {

/// The manager's own socket in the registration directory.
inline constexpr char kRegistrationSocket[] = "kubelet.sock";

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

/// OK when only root and qrmd's own user can put sockets into `directory`: other users could
/// impersonate a plugin. Errors: kFailedPrecondition with the owner or the mode, and the remedy.
Status CheckPluginDirectory(const std::string& directory);

/// OK when the socket at `socket` belongs to root or qrmd's own user: it may have been created
/// while other users could write to its directory. Errors: as above.
Status CheckPluginSocket(const std::string& socket);

/// OK when a resource plugin may be registered as `resource`. Errors: kInvalidArgument for an
/// invalid resource name, or for the name of a compute driver, which has its own plugin type.
Status CheckPluginName(const std::string& resource);

/// OK when `versions` contains the supported plugin API version.
/// Errors: kInvalidArgument with the offered versions and the supported one.
Status CheckVersions(const std::vector<std::string>& versions);

/// The path of the socket with the file name `endpoint` in `directory`. Errors: kInvalidArgument
/// for an invalid file name, for the manager's own socket, and for a file that is not a socket,
/// such as a link to one; those of CheckPluginSocket. Source: resourceplugin.v1alpha1
/// RegisterRequest.endpoint.
StatusOr<std::string> SocketNamed(const std::string& endpoint, const std::string& directory);

/// The socket of a plugin in the watched directory: `endpoint` if it is the absolute path of a
/// socket, or the registration socket itself if it is empty. Errors: kInvalidArgument for anything
/// else, also for a link to a socket; those of CheckPluginDirectory for the socket's directory, and
/// of CheckPluginSocket. Source: pluginregistration PluginInfo.endpoint.
StatusOr<std::string> SocketAnnounced(const std::string& endpoint,
                                      const std::string& registration_socket);

}  // namespace qrm::manager
