// Checks what a plugin says of itself before it is registered, on either path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace qrm::manager {

/// The manager's own socket in the registration directory.
inline constexpr char kRegistrationSocket[] = "kubelet.sock";

/// OK when nobody but root and qrmd's own user can put sockets into `directory`: whoever can, may
/// pose as a plugin. Errors: kFailedPrecondition with the owner or the mode, and what to do.
Status CheckPluginDirectory(const std::string& directory);

/// OK when nobody but root and qrmd's own user has made the socket at `socket`, which may have been
/// put there while others could write to its directory. Errors: as above.
Status CheckPluginSocket(const std::string& socket);

/// OK when a resource plugin may be registered as `resource`. Errors: kInvalidArgument for what is
/// no resource name, or the name of a compute driver, which registers by its own type.
Status CheckPluginName(const std::string& resource);

/// OK when one of `versions` is the plugin API version that we speak.
/// Errors: kInvalidArgument with those offered and the one accepted.
Status CheckVersions(const std::vector<std::string>& versions);

/// The socket that file name `endpoint` means in `directory`. Errors: kInvalidArgument for a name
/// that is empty, has a '/' or is "." or "..", that is the manager's own, or that names no socket
/// there, were it a link to one; those of CheckPluginSocket. Source: resourceplugin.v1alpha1
/// RegisterRequest.endpoint.
StatusOr<std::string> SocketNamed(const std::string& endpoint, const std::string& directory);

/// The socket that a plugin in the watched directory is served on: `endpoint` when it is an
/// absolute path of a socket, the registration socket itself when it is empty. Errors:
/// kInvalidArgument for anything else, a link to a socket too; those of CheckPluginDirectory for
/// the socket's directory, and of CheckPluginSocket. Source: pluginregistration
/// PluginInfo.endpoint.
StatusOr<std::string> SocketAnnounced(const std::string& endpoint,
                                      const std::string& registration_socket);

}  // namespace qrm::manager
