// A Unix socket's file: put in place in one step, never in place of one that a server listens on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/base/status.h"

namespace qrm::sdk {

/// Which file a path means now: another one of the same name differs. A change of mode or owner
/// does not.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t modified_nanos = 0;

  bool operator==(const FileId&) const = default;
};

/// The file at `path`, symbolic links not followed; absent when there is none.
std::optional<FileId> FindFile(const std::string& path);

/// A path beside `path` to bind a socket to before it is placed. Its name starts with a dot, which
/// watchers of the directory pass over. Errors: kInvalidArgument when a path is too long for a
/// socket; kNotFound when the directory is missing. Source: unix(7), sun_path.
StatusOr<std::string> TemporarySocketPath(const std::string& path);

/// Gives the listening socket at `temporary` the name `path`, so that whoever sees the name can
/// connect. A socket that a dead process left at `path` is replaced. Errors: kAlreadyExists when
/// somebody listens there, kFailedPrecondition when the file is no socket or cannot be renamed;
/// `temporary` is then still there.
Status PlaceSocket(const std::string& temporary, const std::string& path);

}  // namespace qrm::sdk
