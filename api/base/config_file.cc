// Reads file and flags through a table of keys.
#include "api/base/config_file.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "api/base/errorf.h"
#include "api/base/foreign_yaml.h"
#include "api/base/nearest_word.h"
#include "api/base/section.h"

namespace qrm::config {
namespace {

std::vector<std::string> NamesOf(const Keys& keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const ConfigKey& key : keys) {
    names.push_back(key.name);
  }
  return names;
}

/// What to do about a key that is none.
std::string RemedyFor(const std::string& name, const Keys& keys, const std::string& program) {
  const std::string nearest = NearestKey(keys, name);
  return nearest.empty() ? program + " --help lists all keys" : "did you mean " + nearest;
}

Status ReadSection(const Section& section, const Keys& keys, const std::string& program) {
  for (const std::string& name : section.Keys()) {
    const ConfigKey* key = FindKey(keys, name);
    if (key == nullptr) {
      return section.Error(name, "is not a known key", RemedyFor(name, keys, program));
    }
    QRM_RETURN_IF_ERROR(key->read(section, name));
  }
  return OkStatus();
}

// The flag's value as a YAML node of the key's shape: a list may be written with commas alone.
StatusOr<YAML::Node> NodeOf(const ConfigKey& key, const std::string& value) {
  const bool as_yaml = !value.empty() && (value.front() == '[' || value.front() == '{');
  if (key.shape == KeyShape::kMapping || (key.shape == KeyShape::kList && as_yaml)) {
    return ParseYaml(value, "the command line");
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

Status ReadFlag(const std::string& name, const std::string& value, const Keys& keys,
                const std::string& program) {
  const ConfigKey* key = FindKey(keys, name);
  if (key == nullptr) {
    return Errorf(StatusCode::kInvalidArgument, "cannot read flag --{}: there is no such key; {}",
                  name, RemedyFor(name, keys, program));
  }
  const StatusOr<YAML::Node> node = NodeOf(*key, value);
  QRM_RETURN_IF_ERROR(Annotate(node.status(), "cannot read flag --" + name));
  YAML::Node mapping;
  mapping[name] = *node;
  QRM_ASSIGN_OR_RETURN(const Section section,
                       Section::Parse(YAML::Dump(mapping), "the command line"));
  return ReadSection(section, keys, program);
}

}  // namespace

const ConfigKey* FindKey(const Keys& keys, const std::string& name) {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const ConfigKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string NearestKey(const Keys& keys, const std::string& name) {
  return NearestWord(name, NamesOf(keys));
}

Status ReadKeys(const ConfigSources& sources, const Keys& keys, const std::string& program) {
  if (!sources.file.empty()) {
    QRM_ASSIGN_OR_RETURN(const Section section, sources.text.has_value()
                                                    ? Section::Parse(*sources.text, sources.file)
                                                    : Section::Load(sources.file));
    QRM_RETURN_IF_ERROR(ReadSection(section, keys, program));
  }
  for (const auto& [name, value] : sources.flags) {
    QRM_RETURN_IF_ERROR(ReadFlag(name, value, keys, program));
  }
  return OkStatus();
}

}  // namespace qrm::config
