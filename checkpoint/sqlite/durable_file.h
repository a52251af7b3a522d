// Creates, renames, moves aside and removes files so that the result survives a power loss.
#pragma once

#include <string>

#include "api/base/status.h"

namespace qrm::checkpoint {

// Errors of all: kResourceExhausted for a full disk, kFailedPrecondition for a permission or a
// read-only disk, kUnavailable for a failing device.

/// The directory part of `path`, "." when it has none.
std::string DirectoryOf(const std::string& path);

/// Makes `directory` and what is missing above it, each for its owner only (0700) and synced into
/// its parent. OK when it is there already.
Status MakeDurableDirectory(const std::string& directory);

/// Makes an empty file for its owner only (0600).
Status MakePrivateFile(const std::string& path);

/// OK also when there is none.
Status RemoveFile(const std::string& path);

/// Renames `from` to `to` in the same directory and syncs the directory.
Status RenameDurably(const std::string& from, const std::string& to);

/// Replaces `path` by a file (0600) with `content`: whole or not at all, at any instant.
Status WriteFileDurably(const std::string& path, const std::string& content);

/// Renames the file at `path`, with its -wal and -shm, to `<path>.aside-<UTC time>` and returns
/// that name; nothing is deleted.
StatusOr<std::string> MoveAside(const std::string& path);

}  // namespace qrm::checkpoint
