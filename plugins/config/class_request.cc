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

std::string Shown(const StringMap::value_type& annotation) {
  return fmt::format("annotation {}={}", Quoted(annotation.first), Quoted(annotation.second));
}

Status CheckForm(const StringMap::value_type& annotation) {
  if (annotation.second.empty() || sdk::IsClassName(annotation.second)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument, "{} does not name a class: {}", Shown(annotation),
                sdk::kClassNameForm);
}

/// The value of those of `keys` that exist; they must agree.
StatusOr<std::optional<ClassRequest>> FindAmong(const StringMap& annotations,
                                                const std::vector<std::string>& keys) {
  std::optional<ClassRequest> request;
  for (const std::string& key : keys) {
    const auto found = annotations.find(key);
    if (found == annotations.end()) {
      continue;
    }
    QRM_RETURN_IF_ERROR(CheckForm(*found));
    if (request.has_value() && request->name != found->second) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} and {} contradict each other; remove one of them from the pod",
                    request->key, Shown(*found));
    }
    request = request.value_or(ClassRequest{.name = found->second, .key = Shown(*found)});
  }
  return request;
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
};

ClassKey Split(std::string_view key) {
  const std::size_t slash = key.find('/');
  const std::size_t at = key.substr(0, slash).rfind(".resources.");
  if (slash == std::string_view::npos || at == std::string_view::npos) {
    return {};
  }
  const std::string_view domain = key.substr(at, slash + 1 - at);
  const bool asks = domain == kOwn || domain.ends_with(".kubernetes.io/");
  return asks ? ClassKey{key.substr(0, at), domain, key.substr(slash + 1)} : ClassKey();
}

/// Errors: kInvalidArgument for the first of `keys` in `annotations`.
Status RefuseAny(const StringMap& annotations, const std::vector<std::string>& keys,
                 std::string_view why) {
  for (const std::string& key : keys) {
    if (const auto found = annotations.find(key); found != annotations.end()) {
      return Errorf(StatusCode::kInvalidArgument, "{}: {}", Shown(*found), why);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::optional<ClassRequest>> FindClassRequest(const StringMap& annotations,
                                                       const ClassTypeName& type,
                                                       const std::string& container) {
  const auto key = [&](std::string_view domain, std::string_view rest) {
    return fmt::format("{}{}{}", type.name, domain, rest);
  };
  const std::string of_container = "container." + container;
  const std::vector<std::string> own = {key(kBeta, of_container), key(kAlpha, of_container),
                                        key(kLast, of_container)};
  const std::vector<std::string> defaults = {key(kBeta, "pod"), key(kAlpha, "default"),
                                             key(kLast, "default")};
  const std::vector<std::string> pods = {key(kOwn, "pod")};
  if (type.level == sdk::ClassLevel::kPod) {
    const std::string why =
        fmt::format("type {} is for whole pods; write {}", type.name, pods.front());
    QRM_RETURN_IF_ERROR(RefuseAny(annotations, own, why));
    QRM_RETURN_IF_ERROR(RefuseAny(annotations, defaults, why));
    return FindAmong(annotations, pods);
  }
  QRM_RETURN_IF_ERROR(
      RefuseAny(annotations, pods,
                fmt::format("type {} is for single containers; write {}", type.name, defaults[1])));
  QRM_ASSIGN_OR_RETURN(std::optional<ClassRequest> request, FindAmong(annotations, own));
  return request.has_value() ? StatusOr<std::optional<ClassRequest>>(std::move(request))
                             : FindAmong(annotations, defaults);
}

StatusOr<std::vector<ClassRequest>> AllClassRequests(const StringMap& annotations,
                                                     const std::string& type) {
  std::vector<ClassRequest> requests;
  for (const auto& annotation : annotations) {
    const ClassKey key = Split(annotation.first);
    if (key.type != type || !key.HasVersion()) {
      continue;
    }
    const std::string_view of_pod = key.domain == kBeta || key.domain == kOwn ? "pod" : "default";
    if (key.rest != of_pod && (key.domain == kOwn || !key.rest.starts_with(kContainer))) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} has a key that no container reads; write {}{}{}", Shown(annotation), type,
                    key.domain, of_pod);
    }
    QRM_RETURN_IF_ERROR(CheckForm(annotation));
    requests.push_back({.name = annotation.second, .key = Shown(annotation)});
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
                    "{} has a version that does not exist; write {}{}default", Shown(annotation),
                    key.type, kAlpha);
    }
    if (std::ranges::find(types, key.type) == types.end()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} is of a type of classes that this node does not have; remove it from the "
                    "pod, or use one of {}",
                    Shown(annotation), EnumerateWords(types, "and"));
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
                    Shown(annotation), EnumerateWords(containers, "and"));
    }
  }
  return OkStatus();
}

}  // namespace qrm::config
