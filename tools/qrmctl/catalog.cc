// Runs each command with CommandLine::kDescribe.
#include "tools/qrmctl/catalog.h"

#include <sstream>

#include <nlohmann/json.hpp>

#include "api/base/check.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/command_line.h"
#include "tools/qrmctl/document.h"

namespace qrm::manager::cli {
namespace {

CatalogEntry EntryOf(Run run) {
  std::ostringstream out;
  std::ostringstream err;
  QRM_CHECK(run({CommandLine::kDescribe}, out, err) == kDone);
  const Document described = Document::parse(out.str());
  CatalogEntry entry{.command = described["command"],
                     .summary = described["summary"],
                     .example = described["example"]};
  for (const Document& option : described["options"]) {
    entry.options.push_back({.names = option["names"].get<std::vector<std::string>>(),
                             .word = option["word"],
                             .value = option["value"],
                             .required = option["required"],
                             .help = option["help"]});
  }
  return entry;
}

}  // namespace

std::vector<CatalogEntry> Catalog() {
  std::vector<CatalogEntry> entries;
  for (const Command& command : kCommands) {
    if (command.run != nullptr) {
      entries.push_back(EntryOf(command.run));
    }
    for (const Verb& verb : command.verbs) {
      entries.push_back(EntryOf(verb.run));
    }
  }
  for (const Command& command : kClusterCommands) {
    entries.push_back(EntryOf(command.run));
  }
  return entries;
}

std::vector<std::string> ChoicesOf(const CatalogOption& option) {
  if (option.value == "FORMAT") {
    std::vector<std::string> formats = {"table", "wide", "json", "yaml", "jsonpath="};
    if (option.help.find("svg") != std::string::npos) {
      formats.emplace_back("svg");
    }
    return formats;
  }
  if (option.word == "LEVEL") {
    return {"debug", "info", "warning", "error"};
  }
  if (option.word == "SHELL") {
    return {"bash", "zsh", "fish"};
  }
  return {};
}

std::string NamedBy(const CatalogEntry& entry, const CatalogOption& option) {
  const bool asks_qrmd =
      !entry.command.starts_with("--cluster") && !entry.command.starts_with("checkpoint");
  if (option.word == "POD") {
    return asks_qrmd ? "pods" : "";
  }
  if (option.value == "NAMESPACE") {
    return asks_qrmd ? "namespaces" : "";
  }
  if (option.word == "NAME=CPUS") {
    return "pools";
  }
  const bool is_resource = !option.names.empty() && option.names.back() == "--resource";
  const bool is_plugin =
      option.word == "RESOURCE" || (entry.command == "plugins forget" && option.word == "NAME");
  return is_resource || is_plugin ? "plugins" : "";
}

}  // namespace qrm::manager::cli
