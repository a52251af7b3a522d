// Names of enumerations, and checks of the shared value types.
#include "api/resource.h"

#include <algorithm>
#include <cctype>

#include <boost/container_hash/hash.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"

namespace qrm {
namespace {

constexpr std::size_t kMaxNameLength = 63;
constexpr std::size_t kMaxPrefixLength = 253;

bool IsAlnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool IsQualifiedPart(std::string_view part) {
  return !part.empty() && part.size() <= kMaxNameLength && IsAlnum(part.front()) &&
         IsAlnum(part.back()) && std::all_of(part.begin(), part.end(), [](char c) {
           return IsAlnum(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsDnsSubdomain(std::string_view prefix) {
  return !prefix.empty() && prefix.size() <= kMaxPrefixLength && IsAlnum(prefix.front()) &&
         IsAlnum(prefix.back()) && std::all_of(prefix.begin(), prefix.end(), [](char c) {
           return (IsAlnum(c) && std::isupper(static_cast<unsigned char>(c)) == 0) || c == '-' ||
                  c == '.';
         });
}

}  // namespace

// What differs most between allocations.
std::size_t hash_value(const ResourceAllocation& allocation) {
  std::size_t hash = boost::hash<std::string>()(allocation.value);
  boost::hash_combine(hash, allocation.quantity);
  boost::hash_combine(hash, allocation.amount_by_node);
  boost::hash_combine(hash, allocation.shares);
  return hash;
}

std::string_view ToString(ContainerType type) {
  switch (type) {
    case ContainerType::kInit:
      return "INIT";
    case ContainerType::kMain:
      return "MAIN";
    case ContainerType::kSidecar:
      return "SIDECAR";
    case ContainerType::kEphemeral:
      break;
  }
  return "EPHEMERAL";
}

bool IsHugepages(std::string_view resource) {
  constexpr std::string_view kPrefix = "hugepages-";
  return resource.substr(0, kPrefix.size()) == kPrefix;
}

double ContainerRequest::quantity() const {
  for (const auto& [name, amount] : requests) {
    if (!IsHugepages(name)) {
      return amount * scale;
    }
  }
  return requests.empty() ? 0 : requests.begin()->second;
}

Status CheckResourceName(std::string_view name) {
  const auto slash = name.find('/');
  const std::string_view part = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const bool prefix_ok = slash == std::string_view::npos || IsDnsSubdomain(name.substr(0, slash));
  if (!prefix_ok || !IsQualifiedPart(part)) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot use resource name \"{}\": it is not a qualified name; write it like cpu or "
        "example.com/nic",
        Quoted(name));
  }
  return OkStatus();
}

}  // namespace qrm
