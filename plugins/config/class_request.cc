// Finds the annotations of one type: the container's before the pod's.
#include "plugins/config/class_request.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/config_key.h"
#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::config {
namespace {

constexpr std::string_view kAlpha = ".resources.alpha.kubernetes.io/";
constexpr std::string_view kBeta = ".resources.beta.kubernetes.io/";
constexpr std::string_view kLast = ".resources.kubernetes.io/";
constexpr std::string_view kOwn = ".resources.qrm.io/";
constexpr std::string_view kContainer = "container.";

Status CheckForm(const ClassAnnotation& annotation) {
  if (annotation.second.empty() || sdk::IsClassName(annotation.second)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument, "{} does not name a class: {}",
                ShownAnnotation(annotation), sdk::kClassNameForm);
}

/// "TYPE.resources.VERSION.kubernetes.io/REST", in parts; without a type: another key.
struct ClassKey {
  std::string_view type;
  std::string_view domain;  // ".resources.VERSION.kubernetes.io/"
  std::string_view rest;

  bool HasVersion() const {
    return domain == kAlpha || domain == kBeta || domain == kLast || domain == kOwn;
  }
  bool IsRuntimes() const { return domain == kBeta && (type == "blockio" || type == "rdt"); }
  /// The rest of a key for the pod as a whole, or for the default of its containers.
  std::string_view PodsRest() const {
    return domain == kBeta || domain == kOwn ? "pod" : "default";
  }
  bool IsPods() const { return rest == PodsRest(); }
  bool IsOf(std::string_view container) const {
    return domain != kOwn && rest.starts_with(kContainer) &&
           rest.substr(kContainer.size()) == container;
  }
};

// The versions that exist are found by comparison: an admission splits each key of a pod many
// times.
ClassKey Split(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) {
    return {};
  }
  const std::string_view head = key.substr(0, slash + 1);
  std::size_t at = std::string_view::npos;
  for (const std::string_view domain : {kAlpha, kBeta, kLast, kOwn}) {
    if (head.ends_with(domain)) {
      at = head.size() - domain.size();
    }
  }
  if (at == std::string_view::npos && head.ends_with(".kubernetes.io/")) {
    at = head.rfind(".resources.");
  }
  return at == std::string_view::npos
             ? ClassKey()
             : ClassKey{head.substr(0, at), head.substr(at), key.substr(slash + 1)};
}

/// The keys for one purpose, which must agree.
struct SamePurpose {
  const ClassAnnotation* first = nullptr;
  const ClassAnnotation* other = nullptr;  // the first that asks for another class

  void Add(const ClassAnnotation& more) {
    if (first == nullptr) {
      first = &more;
    } else if (other == nullptr && more.second != first->second) {
      other = &more;
    }
  }

  StatusOr<std::optional<ClassRequest>> Request() const {
    if (first == nullptr) {
      return std::nullopt;
    }
    QRM_RETURN_IF_ERROR(CheckForm(*first));
    if (other != nullptr) {
      QRM_RETURN_IF_ERROR(CheckForm(*other));
      return Errorf(StatusCode::kInvalidArgument,
                    "{} and {} contradict each other; remove one of them from the pod",
                    ShownAnnotation(*first), ShownAnnotation(*other));
    }
    return std::optional(ClassRequest{.name = first->second, .key = ShownAnnotation(*first)});
  }
};

}  // namespace

std::string ShownAnnotation(const ClassAnnotation& annotation) {
  return fmt::format("annotation {}={}", Quoted(annotation.first), Quoted(annotation.second));
}

StatusOr<std::optional<ClassRequest>> FindClassRequest(const StringMap& annotations,
                                                       const ClassTypeName& type,
                                                       const std::string& container) {
  SamePurpose own;
  SamePurpose defaults;
  SamePurpose whole;
  for (const ClassAnnotation& annotation : annotations) {
    const ClassKey key = Split(annotation.first);
    if (key.type != type.name || !key.HasVersion()) {
      continue;
    }
    if (key.IsPods()) {
      (key.domain == kOwn ? whole : defaults).Add(annotation);
    } else if (key.IsOf(container)) {
      own.Add(annotation);
    }
  }
  if (type.level == sdk::ClassLevel::kPod) {
    const ClassAnnotation* const wrong = own.first != nullptr ? own.first : defaults.first;
    return wrong == nullptr ? whole.Request()
                            : Errorf(StatusCode::kInvalidArgument,
                                     "{}: type {} is for whole pods; write {}{}pod",
                                     ShownAnnotation(*wrong), type.name, type.name, kOwn);
  }
  if (whole.first != nullptr) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{}: type {} is for single containers; write {}{}default",
                  ShownAnnotation(*whole.first), type.name, type.name, kAlpha);
  }
  return own.first != nullptr ? own.Request() : defaults.Request();
}

StatusOr<std::vector<const ClassAnnotation*>> AllClassRequests(const StringMap& annotations,
                                                               const std::string& type) {
  std::vector<const ClassAnnotation*> requests;
  for (const ClassAnnotation& annotation : annotations) {
    const ClassKey key = Split(annotation.first);
    if (key.type != type || !key.HasVersion()) {
      continue;
    }
    if (!key.IsPods() && (key.domain == kOwn || !key.rest.starts_with(kContainer))) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} has a key that no container reads; write {}{}{}",
                    ShownAnnotation(annotation), type, key.domain, key.PodsRest());
    }
    QRM_RETURN_IF_ERROR(CheckForm(annotation));
    requests.push_back(&annotation);
  }
  return requests;
}

bool IsClassKey(const std::string& key) {
  return !Split(key).type.empty();
}

bool NamesClassType(const StringMap& annotations) {
  return std::ranges::any_of(annotations, [](const auto& annotation) {
    const ClassKey key = Split(annotation.first);
    return !key.type.empty() && !key.IsRuntimes();
  });
}

bool HasRuntimeKey(const StringMap& annotations) {
  return std::ranges::any_of(
      annotations, [](const auto& annotation) { return Split(annotation.first).IsRuntimes(); });
}

Status CheckClassTypes(const StringMap& annotations, const std::vector<std::string>& types) {
  for (const auto& annotation : annotations) {
    const ClassKey key = Split(annotation.first);
    if (key.type.empty() || key.IsRuntimes()) {
      continue;
    }
    if (!key.HasVersion()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} has a version that does not exist; write {}{}default",
                    ShownAnnotation(annotation), key.type, kAlpha);
    }
    if (std::ranges::find(types, key.type) == types.end()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} is of a type of classes that this node does not have; remove it from the "
                    "pod, or use one of {}",
                    ShownAnnotation(annotation), EnumerateWords(types, "and"));
    }
  }
  return OkStatus();
}

Status CheckClassContainers(const StringMap& annotations,
                            const std::vector<std::string>& containers) {
  for (const auto& annotation : annotations) {
    const ClassKey key = Split(annotation.first);
    if (key.rest.starts_with(kContainer) &&
        std::ranges::find(containers, key.rest.substr(kContainer.size())) == containers.end()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} names a container that the pod does not have; its containers are {}",
                    ShownAnnotation(annotation), EnumerateWords(containers, "and"));
    }
  }
  return OkStatus();
}

}  // namespace qrm::config
