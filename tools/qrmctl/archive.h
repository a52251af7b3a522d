// Files for a bug report: an archive, and texts without secrets.
#pragma once

#include <ctime>
#include <string>
#include <vector>

namespace qrm::manager::cli {

struct ArchivedFile {
  std::string name;  ///< up to 99 bytes, with its directory
  std::string text;
};

/// The files as a tar archive; each has the time `when` and is for its owner only.
/// Source: POSIX.1-1988, ustar.
std::string TarOf(const std::vector<ArchivedFile>& files, std::time_t when);

/// `text` of a configuration or a log, in which "<removed>" stands for passwords, tokens, private
/// keys, and credentials in addresses. The names of files that have secrets stay.
std::string WithoutSecrets(const std::string& text);

}  // namespace qrm::manager::cli
