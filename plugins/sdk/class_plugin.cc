// The answer of a class type to a request for an amount, and the names that classes may have.
#include "plugins/sdk/class_plugin.h"

#include <algorithm>
#include <cstddef>

#include "api/base/errorf.h"

namespace qrm::sdk {

StatusOr<ResourceAllocation> ClassPlugin::Allocate(const ContainerRequest& request,
                                                   const TopologyHint& /*hint*/) {
  return Errorf(StatusCode::kInvalidArgument,
                "cannot allocate {}: it has classes, not amounts; request a class by annotation",
                request.resource);
}

namespace {

constexpr std::size_t kLongestName = 63;

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

bool IsClassName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::ranges::all_of(text, [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace qrm::sdk
