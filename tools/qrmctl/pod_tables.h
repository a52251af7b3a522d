// Pods as rows of a table, as sheets, or as a document.
#pragma once

#include <ostream>

#include "tools/qrmctl/command_line.h"

namespace qrm::v1 {
class ListPodsResponse;
}  // namespace qrm::v1

namespace qrm::manager::cli {

/// A row per container, everything about each pod, or a row per unpinned container with the reason.
enum class PodDetail { kRows, kSheets, kReasons };

/// As Show; `detail` matters for people only.
int ShowPods(const CommandLine& line, const StatusOr<v1::ListPodsResponse>& pods, PodDetail detail,
             std::ostream& out, std::ostream& err);

/// Everything about each pod, for people.
void PrintSheets(const v1::ListPodsResponse& pods, std::ostream& out);

}  // namespace qrm::manager::cli
