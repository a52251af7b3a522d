// Reads file and flags through the table of keys.
#include "manager/config/config.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "manager/config/config_keys.h"

namespace qrm::manager {
namespace {

using config::Section;

const ConfigKey* FindKey(const std::string& name) {
  const auto found = std::find_if(ConfigKeys().begin(), ConfigKeys().end(),
                                  [&](const ConfigKey& key) { return key.name == name; });
  return found == ConfigKeys().end() ? nullptr : &*found;
}

std::size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, substituted});
    }
  }
  return row.back();
}

std::string AllKeyNames() {
  std::string names;
  for (const ConfigKey& key : ConfigKeys()) {
    names += (names.empty() ? "" : ", ") + key.name;
  }
  return names;
}

Status ReadSection(const Section& section, Config& config) {
  std::set<std::string> seen;
  for (const std::string& name : section.Keys()) {
    const ConfigKey* key = FindKey(name);
    if (key == nullptr) {
      const std::string nearest = NearestConfigKey(name);
      return section.Error(
          name, "is no known key",
          nearest.empty() ? "the keys are " + AllKeyNames() : "did you mean " + nearest);
    }
    if (!seen.insert(name).second) {
      return section.Error(name, "stands there twice", "keep one of them");
    }
    QRM_RETURN_IF_ERROR(key->read(section, name, config));
  }
  return OkStatus();
}

// The flag's value as a YAML node of the key's shape: a list may be written with commas alone.
YAML::Node NodeOf(const ConfigKey& key, const std::string& value) {
  const bool as_yaml = !value.empty() && (value.front() == '[' || value.front() == '{');
  if (key.shape == KeyShape::kMapping || (key.shape == KeyShape::kList && as_yaml)) {
    return YAML::Load(value);
  }
  if (key.shape == KeyShape::kScalar) {
    return YAML::Node(value);
  }
  YAML::Node list(YAML::NodeType::Sequence);
  std::istringstream words(value);
  for (std::string word; std::getline(words, word, ',');) {
    list.push_back(word);
  }
  return list;
}

Status ReadFlag(const std::string& name, const std::string& value, Config& config) {
  const ConfigKey* key = FindKey(name);
  if (key == nullptr) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read flag --{}: there is no such key; {}",
                  name, NearestConfigKey(name));
  }
  YAML::Node mapping;
  try {
    mapping[name] = NodeOf(*key, value);
  } catch (const YAML::Exception& error) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read flag --{}: '{}' is no YAML: {}; write it as in the file", name,
                  value, error.msg);
  }
  QRM_ASSIGN_OR_RETURN(const Section section,
                       Section::Parse(YAML::Dump(mapping), "the command line"));
  return ReadSection(section, config);
}

}  // namespace

StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags) {
  Config config;
  if (!file.empty()) {
    QRM_ASSIGN_OR_RETURN(const Section section, Section::Load(file));
    QRM_RETURN_IF_ERROR(ReadSection(section, config));
  }
  for (const auto& [name, value] : flags) {
    QRM_RETURN_IF_ERROR(ReadFlag(name, value, config));
  }
  return config;
}

bool IsConfigKey(const std::string& name) {
  return FindKey(name) != nullptr;
}

std::string NearestConfigKey(const std::string& name) {
  const auto nearest = std::min_element(
      ConfigKeys().begin(), ConfigKeys().end(), [&](const ConfigKey& a, const ConfigKey& b) {
        return EditDistance(name, a.name) < EditDistance(name, b.name);
      });
  return EditDistance(name, nearest->name) <= 2 + name.size() / 4 ? nearest->name : "";
}

std::string ConfigFlagsHelp() {
  std::string help;
  const Config defaults;
  for (const ConfigKey& key : ConfigKeys()) {
    help += fmt::format("  --{}=VALUE\n      {}\n      {}; default {}\n", key.name, key.help,
                        key.range, key.show(defaults));
  }
  return help;
}

std::string ConfigReference() {
  std::string page =
      "# Configuration of qrmd\n\n"
      "`qrmd --config FILE` reads one YAML file; every key is also a flag "
      "(`--reconcile-period=1s`),\n"
      "which wins over the file. `qrmd --check-config` reads both, says what is wrong and exits. A "
      "key\n"
      "that is not known, or a value out of range, is an error that names file, line and key; qrmd "
      "then\n"
      "exits with 2. The sections of the plugins are in "
      "[configuration-plugins.md](configuration-plugins.md).\n\n"
      "This page is made by `qrmd --print-config-reference`.\n\n"
      "| key | default | values | meaning |\n|---|---|---|---|\n";
  const Config defaults;
  for (const ConfigKey& key : ConfigKeys()) {
    page += fmt::format("| `{}` | `{}` | {} | {} |\n", key.name, key.show(defaults), key.range,
                        key.help);
  }
  return page;
}

}  // namespace qrm::manager
