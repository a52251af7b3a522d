// Reads the configuration of container runtimes.
#include "plugins/rdt/runtime_setting.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

namespace qrm::rdt {
namespace {

/// Whether `line` sets the key to a value that is not empty.
bool SetsRdtFile(std::string_view line) {
  constexpr std::string_view kKey = "rdt_config_file";
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with(kKey)) {
    return false;
  }
  line.remove_prefix(kKey.size());
  const std::size_t value = line.find_first_not_of(" \t=");
  return value != std::string_view::npos && line.find('=') < value &&
         line.substr(value, 2) != "\"\"" && line.substr(value, 2) != "''";
}

}  // namespace

std::vector<std::string> RuntimeConfigFiles(const std::string& etc) {
  std::vector<std::string> files = {etc + "/containerd/config.toml", etc + "/crio/crio.conf"};
  std::set<std::string> parts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(etc + "/crio/crio.conf.d", error)) {
    parts.insert(entry.path());
  }
  files.insert(files.end(), parts.begin(), parts.end());
  return files;
}

std::string FindRuntimeSetting(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (SetsRdtFile(line)) {
        return path;
      }
    }
  }
  return "";
}

}  // namespace qrm::rdt
