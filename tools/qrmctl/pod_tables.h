// Pods as rows of a table, as sheets, or as a document.
#pragma once

#include <ostream>

#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/command_line.h"

namespace qrm::manager::cli {

/// A row per container, or everything about each pod.
enum class PodDetail { kRows, kSheets };

/// `detail` matters for OutputFormat::kTable only.
void PrintPods(const v1::ListPodsResponse& pods, PodDetail detail, OutputFormat format,
               std::ostream& out);

}  // namespace qrm::manager::cli
