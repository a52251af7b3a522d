// Reads file and flags through the table of keys.
#include "manager/config/read_config.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "manager/config/config_table.h"

namespace qrm::manager {
namespace {

using config::ConfigKey;
using config::KeyShape;
using config::Section;
using Keys = std::vector<ConfigKey>;

const ConfigKey* FindKey(const Keys& keys, const std::string& name) {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const ConfigKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
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

std::string NearestOf(const Keys& keys, const std::string& name) {
  const auto nearest =
      std::min_element(keys.begin(), keys.end(), [&](const ConfigKey& a, const ConfigKey& b) {
        return EditDistance(name, a.name) < EditDistance(name, b.name);
      });
  return EditDistance(name, nearest->name) <= 2 + name.size() / 4 ? nearest->name : "";
}

std::string NamesOf(const Keys& keys) {
  std::string names;
  for (const ConfigKey& key : keys) {
    names += (names.empty() ? "" : ", ") + key.name;
  }
  return names;
}

Status ReadSection(const Section& section, const Keys& keys) {
  std::set<std::string> seen;
  for (const std::string& name : section.Keys()) {
    const ConfigKey* key = FindKey(keys, name);
    if (key == nullptr) {
      const std::string nearest = NearestOf(keys, name);
      return section.Error(
          name, "is no known key",
          nearest.empty() ? "the keys are " + NamesOf(keys) : "did you mean " + nearest);
    }
    if (!seen.insert(name).second) {
      return section.Error(name, "stands there twice", "keep one of them");
    }
    QRM_RETURN_IF_ERROR(key->read(section, name));
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

Status ReadFlag(const std::string& name, const std::string& value, const Keys& keys) {
  const ConfigKey* key = FindKey(keys, name);
  if (key == nullptr) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read flag --{}: there is no such key; {}",
                  name, NearestOf(keys, name));
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
  return ReadSection(section, keys);
}

}  // namespace

StatusOr<Config> ReadConfig(const std::string& file, const StringMap& flags) {
  Config config;
  const Keys keys = ConfigKeys(config);
  if (!file.empty()) {
    QRM_ASSIGN_OR_RETURN(const Section section, Section::Load(file));
    QRM_RETURN_IF_ERROR(ReadSection(section, keys));
  }
  for (const auto& [name, value] : flags) {
    QRM_RETURN_IF_ERROR(ReadFlag(name, value, keys));
  }
  QRM_RETURN_IF_ERROR(CheckHttp(config.http));
  return config;
}

bool IsConfigKey(const std::string& name) {
  Config config;
  return FindKey(ConfigKeys(config), name) != nullptr;
}

std::string NearestConfigKey(const std::string& name) {
  Config config;
  return NearestOf(ConfigKeys(config), name);
}

}  // namespace qrm::manager
