// The page's own files, which are part of the program.
#pragma once

#include <string_view>

namespace qrm::manager {

/// The content of a file in manager/page/assets; empty when there is none of that name.
std::string_view FindPageFile(std::string_view name);

}  // namespace qrm::manager
