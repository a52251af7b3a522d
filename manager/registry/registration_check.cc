// Checks versions and sockets of plugins that register.
#include "manager/registry/registration_check.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/resource.h"
#include "api/wire.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

/// False for a link to one: where it leads, others may decide.
bool IsSocket(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

}  // namespace

Status CheckPluginDirectory(const std::string& directory) {
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot take plugins from {}: {}; make it a directory of root", directory,
                  std::generic_category().message(errno));
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot take plugins from {}: it belongs to user {}, who could pose as any of "
                  "them; run chown root",
                  directory, info.st_uid);
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot take plugins from {}: every user may write there (mode {:o}) and could "
                  "pose as any of them; run chmod o-w",
                  directory, info.st_mode & 07777U);
  }
  return OkStatus();
}

Status CheckPluginName(const std::string& resource) {
  if (sdk::IsDriverResource(resource)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot register {} as a resource plugin: the name is a compute driver's; "
                  "register with type {} in the watched directory",
                  resource, calls::kComputeDriverType);
  }
  return CheckResourceName(resource);
}

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
        "cannot register endpoint \"{}\": {} is no socket (links are not followed); listen "
        "there before registering",
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
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot register endpoint \"{}\": it is no absolute path of a socket (links are not "
        "followed); send one, or none to use {}",
        endpoint, registration_socket);
  }
  QRM_RETURN_IF_ERROR(CheckPluginDirectory(std::filesystem::path(endpoint).parent_path()));
  return endpoint;
}

}  // namespace qrm::manager
