// Makes the directories where others put their sockets.
#pragma once

#include <string>

namespace qrm::manager {

/// Makes `path` for the owner, and for its group to read. One that is there stays as it is; one
/// that cannot be made is told of by whoever uses it.
void MakeDirectory(const std::string& path);

}  // namespace qrm::manager
