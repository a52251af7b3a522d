// Checks versions and sockets of plugins that register.
#include "manager/registry/registration_check.h"

#include <algorithm>

#include <sys/stat.h>

#include <fmt/ranges.h>

#include "api/wire.h"

namespace qrm::manager {
namespace {

bool IsSocket(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

}  // namespace

Status CheckVersions(const std::vector<std::string>& versions) {
  if (std::find(versions.begin(), versions.end(), wire::kPluginApiVersion) != versions.end()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot register a plugin of version \"{}\": it is unknown; use \"{}\"",
                fmt::join(versions, "\", \""), wire::kPluginApiVersion);
}

StatusOr<std::string> SocketNamed(const std::string& endpoint, const std::string& directory) {
  if (endpoint.empty() || endpoint == "." || endpoint == ".." ||
      endpoint.find('/') != std::string::npos || endpoint.find('\0') != std::string::npos) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot register endpoint \"{}\": it is no file name; send the name of the "
                  "plugin's socket in {}",
                  endpoint, directory);
  }
  if (endpoint == kRegistrationSocket) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot register endpoint \"{}\": it is the manager's own socket; send the name of "
        "the plugin's socket in {}",
        endpoint, directory);
  }
  std::string socket = directory + "/" + endpoint;
  if (!IsSocket(socket)) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot register endpoint \"{}\": {} is no socket; listen there before registering",
        endpoint, socket);
  }
  return socket;
}

StatusOr<std::string> SocketAnnounced(const std::string& endpoint,
                                      const std::string& registration_socket) {
  if (endpoint.empty()) {
    return registration_socket;
  }
  if (endpoint.front() != '/' || !IsSocket(endpoint)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot register endpoint \"{}\": it is no absolute path of a socket; send one, "
                  "or none to use {}",
                  endpoint, registration_socket);
  }
  return endpoint;
}

}  // namespace qrm::manager
