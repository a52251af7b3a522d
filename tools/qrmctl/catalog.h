// What can be typed after qrmctl, as the commands themselves describe it. Completion and manual
// pages are generated from it, so that both always match the commands.
#pragma once

#include <string>
#include <vector>

namespace qrm::manager::cli {

struct CatalogOption {
  std::vector<std::string> names;  ///< such as "-o" and "--output"; empty for a word
  std::string word;                ///< such as "POD"; empty for an option
  std::string value;               ///< the name of the option's value; empty: it has none
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

/// What of the node the word or the option's value names: "pods", "pools", "plugins", "namespaces";
/// empty: nothing that qrmd lists.
std::string NamedBy(const CatalogEntry& entry, const CatalogOption& option);

}  // namespace qrm::manager::cli
