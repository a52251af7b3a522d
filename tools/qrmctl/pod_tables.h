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

/// `detail` and `listing` matter for people only. Errors: kInvalidArgument for a column that is
/// not there.
Status PrintPods(const v1::ListPodsResponse& pods, PodDetail detail, const OutputFormat& format,
                 std::ostream& out, const Listing& listing = {});

}  // namespace qrm::manager::cli
