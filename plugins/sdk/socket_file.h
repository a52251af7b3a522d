// A Unix socket's file: created atomically, never replacing a socket with a listening server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/base/status.h"

namespace qrm::sdk {

/// Identifies the file at a path: a new file of the same name differs. A change of mode or owner
/// makes no difference.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t modified_nanos = 0;

  bool operator==(const FileId&) const = default;
};

/// The file at `path`, symbolic links not followed; absent when there is none.
std::optional<FileId> FindFile(const std::string& path);

/// A path in the same directory to bind a socket to before PlaceSocket. Its name starts with a dot,
/// so that watchers of the directory ignore it. Errors: kInvalidArgument when a path is too long
/// for a socket; kNotFound when the directory is missing. Source: unix(7), sun_path.
StatusOr<std::string> TemporarySocketPath(const std::string& path);

/// Renames the listening socket at `temporary` to `path`, so that clients can connect as soon as
/// `path` exists. Replaces a socket that a dead process left there. Errors: kAlreadyExists when a
/// process listens at `path`, kFailedPrecondition when the file is not a socket or cannot be
/// renamed; `temporary` then still exists.
Status PlaceSocket(const std::string& temporary, const std::string& path);

}  // namespace qrm::sdk
