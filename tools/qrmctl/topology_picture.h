// The NUMA map as a picture.
#pragma once

#include <string>

#include "tools/qrmctl/document.h"

namespace qrm::manager::cli {

/// The document of `qrmctl topology -o json` as SVG: packages, their NUMA nodes, in them cores with
/// their CPUs in the colour of the container that has them for itself, and who uses the node. It
/// asks for nothing from elsewhere.
std::string TopologySvg(const Document& topology);

}  // namespace qrm::manager::cli
