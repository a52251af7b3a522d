// The QoS-class resources of a node: its classes, their capacity, and the namespaces that may use
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/config/class_request.h"
#include "plugins/placement/permissions.h"

namespace qrm::scheduler {

/// Of a Node; qrmd writes it with `publish: [classes]`.
inline constexpr char kNodeClasses[] = "qrm.io/class-resources";

/// One class of a node.
struct OfferedClass {
  int64_t capacity = 0;                 ///< how many may have it at a time; 0: any number
  std::vector<std::string> namespaces;  ///< globs: those may ask for it, whatever permissions say
};

struct OfferedClassType {
  config::ClassTypeName type;
  std::map<std::string, OfferedClass> classes;  ///< by name
};

/// All that kNodeClasses says.
struct ClassOffer {
  std::vector<OfferedClassType> types;
  placement::Permissions permissions;  ///< about classes only

  /// Whether pods of `pod_namespace` may ask for class `name`, which is `offered`, of `type`.
  bool MayAsk(const std::string& pod_namespace, const std::string& type, const std::string& name,
              const OfferedClass& offered) const;
};

/// Reads the annotation. Errors: kInvalidArgument when it has not the form that qrmd writes.
StatusOr<ClassOffer> ReadClassOffer(const std::string& text);

}  // namespace qrm::scheduler
