// Gives each name a size.
#include "test/vector_check/type_names.h"

#include <algorithm>
#include <utility>

#include "topology/machine.h"

namespace qrm::vectors {
namespace {

/// The name that the engine gives to hugepages of `size`.
std::string NameOf(uint64_t size) {
  MachineParts parts;
  parts.nodes.push_back({.id = 0, .hugepages = {{size, 1}}});
  return UnusedMemory(Machine(std::move(parts)), {}).at(0).types.begin()->first;
}

}  // namespace

void TypeNames::Add(const std::string& type, uint64_t divisor) {
  if (type == kOrdinaryMemory || sizes_.contains(type)) {
    return;
  }
  while (used_.contains(divisor)) {
    divisor /= 2;
  }
  used_.insert(divisor);
  sizes_[type] = divisor;
  names_[type] = NameOf(divisor);
}

std::string TypeNames::ToPlugin(const std::string& type) const {
  const auto name = names_.find(type);
  return name == names_.end() ? type : name->second;
}

std::string TypeNames::ToRow(const std::string& name) const {
  const auto found = std::find_if(names_.begin(), names_.end(),
                                  [&name](const auto& entry) { return entry.second == name; });
  return found == names_.end() ? name : found->first;
}

}  // namespace qrm::vectors
