// The labels and annotations of pods that qrmd reads.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

/// The keys of a pod's role and type. A missing or empty label or annotation is ignored.
struct PodKeys {
  std::string role_label = "katalyst.kubewharf.io/pod_role";
  std::string role_annotation = "kubernetes.io/pod-role";  ///< read if the label is missing
  std::string type_annotation = "katalyst.kubewharf.io/pod_type";
  std::string type_annotation_fallback = "kubernetes.io/resource-type";
  std::string main_container_annotation = "kubernetes.io/main-container-name";
};

inline std::vector<config::ConfigKey> RoleAndTypeKeys(PodKeys& keys) {
  const char* const range = "label or annotation key; empty: not read";
  return {
      config::TextKey("pod-role-label", keys.role_label, range,
                      "The label that names a pod's role."),
      config::TextKey("pod-role-annotation", keys.role_annotation, range,
                      "The annotation that names a pod's role if the label is missing."),
      config::TextKey("pod-type-annotation", keys.type_annotation, range,
                      "The annotation that names a pod's type."),
      config::TextKey("pod-type-annotation-fallback", keys.type_annotation_fallback, range,
                      "The annotation that names a pod's type if pod-type-annotation is missing."),
      config::TextKey("main-container-annotation", keys.main_container_annotation, range,
                      "The annotation that names a pod's main container; the others are sidecars."),
  };
}

}  // namespace qrm::manager
