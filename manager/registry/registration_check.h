// Checks what a plugin says of itself before it is registered, on either path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace qrm::manager {

/// The manager's own socket in the registration directory.
inline constexpr char kRegistrationSocket[] = "kubelet.sock";

/// OK when one of `versions` is the plugin API version that we speak.
/// Errors: kInvalidArgument with those offered and the one accepted.
Status CheckVersions(const std::vector<std::string>& versions);

/// The socket that file name `endpoint` means in `directory`. Errors: kInvalidArgument for a name
/// that is empty, has a '/' or is "." or "..", that is the manager's own, or that names no socket
/// there. Source: resourceplugin.v1alpha1 RegisterRequest.endpoint.
StatusOr<std::string> SocketNamed(const std::string& endpoint, const std::string& directory);

/// The socket that a plugin in the watched directory is served on: `endpoint` when it is an
/// absolute path of a socket, the registration socket itself when it is empty. Errors:
/// kInvalidArgument for anything else. Source: pluginregistration PluginInfo.endpoint.
StatusOr<std::string> SocketAnnounced(const std::string& endpoint,
                                      const std::string& registration_socket);

}  // namespace qrm::manager
