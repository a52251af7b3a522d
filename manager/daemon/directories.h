// Creates the directories for the sockets of other processes.
#pragma once

#include <string>

namespace qrm::manager {

/// Creates `path` with mode 0750. An existing directory is not changed. A failure is not reported
/// here: the user of the directory fails with a message.
void MakeDirectory(const std::string& path);

}  // namespace qrm::manager
