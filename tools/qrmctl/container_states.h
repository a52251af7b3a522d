// The containers that differ from admitted ones, as every view marks them.
#pragma once

#include <map>
#include <ostream>
#include <string>

namespace qrm::v1 {
class ListPodsResponse;
}  // namespace qrm::v1

namespace qrm::manager::cli {

class ControlClient;

/// Keeps the containers that run without their allocation, or without a part of it, and their pods.
void KeepUnpinned(v1::ListPodsResponse& pods);

/// These containers of all pods; none when qrmd does not answer.
v1::ListPodsResponse AskUnpinned(const ControlClient& client);

/// The states of the containers in `unpinned`, by "namespace/pod/container".
std::map<std::string, std::string> StatesOf(const v1::ListPodsResponse& unpinned);

/// A table of the containers in `unpinned` that have no allocation, below an empty line; nothing
/// when there is none.
void PrintWithoutAllocation(const v1::ListPodsResponse& unpinned, std::ostream& out);

}  // namespace qrm::manager::cli
