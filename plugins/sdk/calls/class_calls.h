// Calls to plugins that offer a class type: qrm.v1.ClassPlugin. Other plugins answer
// kUnimplemented.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/resource.h"
#include "plugins/sdk/calls/call.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::calls {

/// A plugin's classes after a Refresh.
struct ClassOffer {
  sdk::ClassType type;
  std::map<std::string, sdk::ClassOptions> options;  ///< class -> Resolve's answer
  std::vector<sdk::ClassReading> readings;
  std::string error;  ///< of the Refresh; empty: none

  bool operator==(const ClassOffer&) const = default;
};

struct RefreshClasses {
  static constexpr Method kMethod{"/qrm.v1.ClassPlugin/Refresh", "refresh the classes of"};
  struct Request {
    std::string resource;  ///< the type
    std::set<std::string> in_use;
  };
  using Answer = ClassOffer;
};

struct ApplyClass {
  static constexpr Method kMethod{"/qrm.v1.ClassPlugin/Apply", "change a class of"};
  struct Request {
    std::string resource;
    sdk::ClassTarget target;
    std::string from;
    std::string to;
  };
  using Answer = Nothing;
};

struct ReadBackClass {
  static constexpr Method kMethod{"/qrm.v1.ClassPlugin/ReadBack", "read back a class of"};
  struct Request {
    std::string resource;
    sdk::ClassTarget target;
    std::string class_name;
  };
  using Answer = std::string;  ///< the difference
};

struct ReleaseClass {
  static constexpr Method kMethod{"/qrm.v1.ClassPlugin/Release", "release a class of"};
  struct Request {
    std::string resource;
    sdk::ClassTarget target;
  };
  using Answer = Nothing;
};

/// All of these calls, for the plugin's side.
std::vector<ServedCall> ClassCalls();

}  // namespace qrm::calls
