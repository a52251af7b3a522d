// The table of extended resources.
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {

const HandleFactories& ResourceFactories() {
  static const HandleFactories factories = {
      {kClasses, MakeClassesHandle},
      {kDrivers, MakeDriversHandle},
      {kNuma, MakeNumaHandle},
      {kNumaMatch, MakeMatchHandle},
  };
  return factories;
}

std::vector<std::string> ResourceTypes() {
  std::vector<std::string> types;
  for (const auto& [type, factory] : ResourceFactories()) {
    types.push_back(type);
  }
  return types;
}

HandleRegistry RegisterResources(const std::vector<std::string>& types) {
  HandleRegistry handles;
  for (const std::string& type : types) {
    handles.Register(type, ResourceFactories().at(type));
  }
  return handles;
}

}  // namespace qrm::scheduler
