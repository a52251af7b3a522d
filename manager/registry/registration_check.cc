// Checks names, versions and sockets of plugins that register.
#include "manager/registry/registration_check.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
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

/// The socket at `path`, without following links: other users may control a link's target.
std::optional<struct stat> FindSocket(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) ? std::optional(info)
                                                                     : std::nullopt;
}

Status CheckOwner(const std::string& path, uid_t owner) {
  if (owner == 0 || owner == ::geteuid()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kFailedPrecondition,
                "cannot accept plugins from {}: it belongs to user {}, who could impersonate "
                "plugins; run chown root",
                path, owner);
}

}  // namespace

Status CheckPluginDirectory(const std::string& directory) {
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot accept plugins from {}: {}; make it a directory of root", directory,
                  std::generic_category().message(errno));
  }
  QRM_RETURN_IF_ERROR(CheckOwner(directory, info.st_uid));
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Errorf(
        StatusCode::kFailedPrecondition,
        "cannot accept plugins from {}: {} may write there (mode {:o}) and could impersonate "
        "plugins; run chmod go-w",
        directory,
        (info.st_mode & S_IWOTH) != 0 ? "every user" : fmt::format("group {}", info.st_gid),
        info.st_mode & 07777U);
  }
  return OkStatus();
}

Status CheckPluginSocket(const std::string& socket) {
  const std::optional<struct stat> found = FindSocket(socket);
  return found.has_value() ? CheckOwner(socket, found->st_uid) : OkStatus();
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
                  "cannot register endpoint \"{}\": it is not a file name; send the name of the "
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
  if (!FindSocket(socket).has_value()) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot register endpoint \"{}\": {} is not a socket (links are not followed); listen "
        "there before registering",
        endpoint, socket);
  }
  QRM_RETURN_IF_ERROR(CheckPluginSocket(socket));
  return socket;
}

StatusOr<std::string> SocketAnnounced(const std::string& endpoint,
                                      const std::string& registration_socket) {
  if (endpoint.empty()) {
    return registration_socket;
  }
  if (endpoint.front() != '/' || !FindSocket(endpoint).has_value()) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot register endpoint \"{}\": it is not the absolute path of a socket (links are not "
        "followed); send such a path, or an empty endpoint to use {}",
        endpoint, registration_socket);
  }
  QRM_RETURN_IF_ERROR(CheckPluginDirectory(std::filesystem::path(endpoint).parent_path()));
  QRM_RETURN_IF_ERROR(CheckPluginSocket(endpoint));
  return endpoint;
}

}  // namespace qrm::manager
