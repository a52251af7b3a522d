// Reads the keys of QoS-class resources.
#include "manager/classes/class_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/section.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {
namespace {

using config::ConfigKey;
using config::KeyShape;
using config::Section;

constexpr char kTypeWithDevices[] = "blockio";
constexpr char kRequireDevices[] = "require-devices";
constexpr char kServiceAccounts[] = "service-accounts";
constexpr char kNamespaceLabels[] = "namespace-labels";

StatusOr<std::string> ReadName(const Section& section, const std::string& key) {
  QRM_ASSIGN_OR_RETURN(std::string name, section.Text(key, ""));
  if (!name.empty() && !sdk::IsClassName(name)) {
    return section.Error(key, fmt::format("is '{}', which is not a class name", name),
                         sdk::kClassNameForm);
  }
  return name;
}

StatusOr<StringMap> ReadDefaults(const Section& type, const std::string& key) {
  QRM_ASSIGN_OR_RETURN(const Section section, type.Child(key));
  StringMap defaults;
  for (const std::string& of : section.Keys()) {
    QRM_ASSIGN_OR_RETURN(defaults[of], ReadName(section, of));
  }
  return defaults;
}

StatusOr<StringMap> ReadQosDefaults(const Section& type, const std::string& key) {
  QRM_ASSIGN_OR_RETURN(const Section section, type.Child(key));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"Guaranteed", "Burstable", "BestEffort"}));
  return ReadDefaults(type, key);
}

/// Words of two parts each.
StatusOr<std::vector<std::string>> ReadPairs(const Section& section, const std::string& key,
                                             char between, const std::string& cure) {
  QRM_ASSIGN_OR_RETURN(std::vector<std::string> words, section.Words(key));
  for (const std::string& word : words) {
    const std::size_t at = word.find(between);
    if (at == 0 || at >= word.size() - 1 || word.rfind(between) != at) {
      return section.Error(key, fmt::format("has '{}'", word), cure);
    }
  }
  return words;
}

StatusOr<ClassTypeRules> ReadType(const Section& section, const std::string& type) {
  std::vector<std::string_view> known = {"config-file", "default", "namespace-defaults",
                                         "qos-defaults", "classes"};
  if (type == kTypeWithDevices) {
    known.push_back(kRequireDevices);
  }
  QRM_RETURN_IF_ERROR(section.AllowKeys(known));
  ClassTypeRules rules;
  QRM_ASSIGN_OR_RETURN(rules.require_devices, section.Flag(kRequireDevices, false));
  QRM_ASSIGN_OR_RETURN(rules.config_file, section.Text("config-file", ""));
  if (!rules.config_file.empty() && !rules.config_file.starts_with('/')) {
    return section.Error("config-file", fmt::format("is '{}'", rules.config_file),
                         "write a path that begins with a slash");
  }
  QRM_ASSIGN_OR_RETURN(rules.default_class, ReadName(section, "default"));
  QRM_ASSIGN_OR_RETURN(rules.namespace_defaults, ReadDefaults(section, "namespace-defaults"));
  QRM_ASSIGN_OR_RETURN(rules.qos_defaults, ReadQosDefaults(section, "qos-defaults"));
  QRM_ASSIGN_OR_RETURN(const auto classes, section.Children("classes"));
  for (const auto& [name, keys] : classes) {
    if (!sdk::IsClassName(name)) {
      return section.Error("classes", fmt::format("has '{}', which is not a class name", name),
                           sdk::kClassNameForm);
    }
    QRM_RETURN_IF_ERROR(
        keys.AllowKeys({"capacity", "namespaces", kServiceAccounts, kNamespaceLabels}));
    ClassRule& rule = rules.classes[name];
    QRM_ASSIGN_OR_RETURN(rule.capacity, keys.Number("capacity", 0));
    QRM_ASSIGN_OR_RETURN(rule.namespaces, keys.Words("namespaces"));
    QRM_ASSIGN_OR_RETURN(rule.service_accounts,
                         ReadPairs(keys, kServiceAccounts, '/', "write NAMESPACE/NAME"));
    QRM_ASSIGN_OR_RETURN(rule.namespace_labels,
                         ReadPairs(keys, kNamespaceLabels, '=', "write KEY=VALUE"));
  }
  return rules;
}

Status ReadTypes(const Section& section, const std::string& key,
                 const std::vector<std::string>& known, ClassesOptions& options) {
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children(key));
  options.types.clear();
  for (const auto& [type, keys] : children) {
    const bool of_plugin =
        IsPluginType(type) && CheckResourceName(type).ok() && type.find('/') == std::string::npos;
    if (!of_plugin && std::find(known.begin(), known.end(), type) == known.end()) {
      return section.Error(key, fmt::format("has '{}', which is not a class type", type),
                           fmt::format("choose from {}, or write a plugin's, such as "
                                       "lanes.example.com",
                                       config::EnumerateWords(known, "and")));
    }
    QRM_ASSIGN_OR_RETURN(options.types[type], ReadType(keys, type));
    if (of_plugin && !options.types[type].config_file.empty()) {
      return keys.Error("config-file", "is only for built-in types",
                        "remove it, and configure the plugin");
    }
  }
  return OkStatus();
}

std::string Show(const StringMap& defaults) {
  std::vector<std::string> entries;
  entries.reserve(defaults.size());
  for (const auto& [of, name] : defaults) {
    entries.push_back(fmt::format("{}: {}", of, name));
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

std::string Show(const ClassTypeRules& rules) {
  std::vector<std::string> classes;
  classes.reserve(rules.classes.size());
  for (const auto& [name, rule] : rules.classes) {
    classes.push_back(
        fmt::format("{}: {{capacity: {}, namespaces: {}{}}}", name, rule.capacity,
                    config::ListText(rule.namespaces),
                    rule.HasRightsOfApiServer()
                        ? fmt::format(", {}: {}, {}: {}", kServiceAccounts,
                                      config::WordsText(rule.service_accounts), kNamespaceLabels,
                                      config::WordsText(rule.namespace_labels))
                        : ""));
  }
  return fmt::format(
      "{{config-file: {}, {}default: \"{}\", namespace-defaults: {}, qos-defaults: {}, classes: "
      "{{{}}}}}",
      rules.config_file, rules.require_devices ? "require-devices: true, " : "",
      rules.default_class, Show(rules.namespace_defaults), Show(rules.qos_defaults),
      fmt::join(classes, ", "));
}

std::string ShowTypes(const ClassesOptions& options) {
  std::vector<std::string> types;
  types.reserve(options.types.size());
  for (const auto& [type, rules] : options.types) {
    types.push_back(fmt::format("{}: {}", type, Show(rules)));
  }
  return fmt::format("{{{}}}", fmt::join(types, ", "));
}

}  // namespace

bool IsPluginType(const std::string& name) {
  return name.find('.') != std::string::npos;
}

std::vector<ConfigKey> ClassKeys(ClassesOptions& options, std::vector<std::string> known) {
  const std::string names = fmt::format("{}", fmt::join(known, ", "));
  return {
      config::SwitchKey("qos-classes", options.enabled,
                        "Whether pods can get QoS-class resources. While it is off, qrmd neither "
                        "reads nor sets classes."),
      {.name = "class-types",
       .shape = KeyShape::kMapping,
       .range = fmt::format("sections {}, and plugins' such as lanes.example.com", names),
       .help = "The types of QoS-class resources that this node offers, with their classes, "
               "defaults and capacities; see classes.md.",
       .read = [&options, known = std::move(known)](
                   const Section& section,
                   const std::string& key) { return ReadTypes(section, key, known, options); },
       .show = [&options] { return ShowTypes(options); }}};
}

}  // namespace qrm::manager
