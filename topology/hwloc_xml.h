// Makes hwloc exports of format 3 readable for the hwloc 2 of Debian 12.
#pragma once

#include <string>
#include <string_view>

namespace qrm {

/// `xml` as an export of format 2; text of another format or of none is returned as it is. What
/// matters of format 3 differs in its version and in the numbers of OS device types only.
/// Cost: O(size). Source: hwloc 3.0 NEWS, hwloc/export.h and hwloc_obj_osdev_type_e in both.
std::string AsXmlFormat2(std::string_view xml);

}  // namespace qrm
