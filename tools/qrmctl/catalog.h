// What can be typed after qrmctl, asked of the commands themselves: completion and manual pages are
// made of it, so that neither can tell of what is not there.
#pragma once

#include <string>
#include <vector>

namespace qrm::manager::cli {

struct CatalogOption {
  std::vector<std::string> names;  ///< such as "-o" and "--output"; empty for a word
  std::string word;                ///< such as "POD"; empty for an option
  std::string value;               ///< what stands behind the option; empty: nothing
  bool required = false;
  std::string help;
};

struct CatalogEntry {
  std::string command;  ///< such as "pool set"
  std::string summary;  ///< of one line or more
  std::string example;
  std::vector<CatalogOption> options;
};

/// Every command with each of its verbs, in the order of the help.
std::vector<CatalogEntry> Catalog();

/// The values that the option of these names takes; empty: any.
std::vector<std::string> ChoicesOf(const CatalogOption& option);

}  // namespace qrm::manager::cli
