// What the operator says about QoS-class resources: which types the node offers, and to whom.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/resource.h"

namespace qrm::manager {

/// What is set for one class beside its definition.
struct ClassRule {
  uint64_t capacity = 0;  ///< how many containers (or pods) may have it at a time; 0: any number
  std::vector<std::string> namespaces;  ///< globs: those may ask for it, whatever permissions say
};

/// What is set for one type.
struct ClassTypeRules {
  std::string config_file;       ///< of the type itself: what its classes are
  std::string default_class;     ///< of those who ask for none; empty: none
  StringMap namespace_defaults;  ///< namespace -> class of those in it who ask for none
  StringMap qos_defaults;        ///< pod QoS class -> class of those who ask for none
  std::map<std::string, ClassRule> classes;
};

struct ClassesOptions {
  bool enabled = false;
  std::map<std::string, ClassTypeRules> types;
};

/// Whether a type of that name is a plugin's: it has a dot.
bool IsPluginType(const std::string& name);

/// `known` are the types that there is code for; any other is a plugin's.
std::vector<config::ConfigKey> ClassKeys(ClassesOptions& options, std::vector<std::string> known);

}  // namespace qrm::manager
