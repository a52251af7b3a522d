// What a pod's annotations request of QoS-class resources.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::config {

/// The class of one type that an annotation requests.
struct ClassRequest {
  std::string name;  ///< empty: no class, even if there is a default
  std::string key;   ///< its source: "annotation KEY=VALUE"

  bool operator==(const ClassRequest&) const = default;
};

/// A type, as annotations name it.
struct ClassTypeName {
  std::string name;
  sdk::ClassLevel level = sdk::ClassLevel::kContainer;
};

/// A key and its value.
using ClassAnnotation = StringMap::value_type;

/// "annotation KEY=VALUE", as messages show it.
std::string ShownAnnotation(const ClassAnnotation& annotation);

/// The names of types as a node offers them.
template <typename Types>
std::vector<std::string> TypeNames(const Types& types) {
  std::vector<std::string> names;
  names.reserve(types.size());
  for (const auto& each : types) {
    names.push_back(each.type.name);
  }
  return names;
}

/// What `annotations` request of `type`, for `container` or its pod; nothing without such a key.
///
/// Of a container-level type, the container's own key wins over the pod's, which is a default:
///   TYPE.resources.beta.kubernetes.io/container.NAME and /pod, which runtimes read too;
///   TYPE.resources.alpha.kubernetes.io/container.NAME and /default, the proposal's;
///   TYPE.resources.kubernetes.io/container.NAME and /default, the same in its last version.
/// Of a pod-level type: TYPE.resources.qrm.io/pod.
/// Errors: kInvalidArgument when keys for the same purpose differ, when a value is not a class
/// name, or when a key is of the other level.
StatusOr<std::optional<ClassRequest>> FindClassRequest(const StringMap& annotations,
                                                       const ClassTypeName& type,
                                                       const std::string& container);

/// Those of `annotations` that request a class of `type`, for whichever container.
/// Errors: kInvalidArgument for a key that no container of any pod has, and for a value that is not
/// a class name.
StatusOr<std::vector<const ClassAnnotation*>> AllClassRequests(const StringMap& annotations,
                                                               const std::string& type);

/// Whether an annotation's key asks for a class, also in a version that does not exist.
bool IsClassKey(const std::string& key);

/// Whether a key that only this node manager reads names a type. Runtimes read the keys with beta
/// of blockio and rdt, too: a pod with only these may be for a node without this node manager.
bool NamesClassType(const StringMap& annotations);

/// Whether there is a key that runtimes read, too.
bool HasRuntimeKey(const StringMap& annotations);

/// OK when all such keys have a version that exists and a type of `types`. Errors:
/// kInvalidArgument with the list of types.
Status CheckClassTypes(const StringMap& annotations, const std::vector<std::string>& types);

/// OK when the containers that class keys name are in `containers`, which are all of the pod's.
/// Errors: kInvalidArgument for the first key that names another one.
Status CheckClassContainers(const StringMap& annotations,
                            const std::vector<std::string>& containers);

}  // namespace qrm::config
