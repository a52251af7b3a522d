// The configuration of QoS-class resources: the node's types, defaults, capacities, permissions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/resource.h"

namespace qrm::manager {

/// The rule of one class.
struct ClassRule {
  uint64_t capacity = 0;  ///< how many containers (or pods) may have it at a time; 0: any number
  std::vector<std::string> namespaces;  ///< globs: may ask for it, independent of permissions
  /// Who else may ask, by what only the API server knows: "NAMESPACE/NAME" of pods' service
  /// accounts (globs), and "KEY=VALUE", labels of their namespaces.
  std::vector<std::string> service_accounts;
  std::vector<std::string> namespace_labels;

  /// Whether the API server lets pods of further namespaces ask.
  bool HasRightsOfApiServer() const {
    return !service_accounts.empty() || !namespace_labels.empty();
  }
};

/// The rules of one type.
struct ClassTypeRules {
  std::string config_file;       ///< the file that defines its classes
  bool require_devices = false;  ///< blockio: a class that matches no device is not given
  std::string default_class;     ///< of containers that ask for none; empty: none
  StringMap namespace_defaults;  ///< namespace -> default class, before `qos_defaults`
  StringMap qos_defaults;        ///< pod QoS class -> default class, before `default_class`
  std::map<std::string, ClassRule> classes;
};

struct ClassesOptions {
  bool enabled = false;
  std::map<std::string, ClassTypeRules> types;
};

/// Whether the name, because of its dot, is that of a plugin's type.
bool IsPluginType(const std::string& name);

/// `known` are the built-in types; all others are plugins'.
std::vector<config::ConfigKey> ClassKeys(ClassesOptions& options, std::vector<std::string> known);

}  // namespace qrm::manager
