// The page's files, which are embedded in the program.
#pragma once

#include <string_view>

namespace qrm::manager {

/// The content of the file `name` in manager/page/assets; empty if there is no such file.
std::string_view FindPageFile(std::string_view name);

}  // namespace qrm::manager
