// What an admission is told by the configuration.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "api/resource.h"
#include "topology/merge.h"

namespace qrm::manager {

/// A resource that containers get without asking for it in their spec: CRI and NRI do not carry
/// extended resources.
struct ImplicitResource {
  std::string resource;
  std::set<std::string> roles;  ///< pods of these roles get it
  std::string annotation;       ///< pods with this annotation, not empty and not "false", get it
};

struct AdmissionOptions {
  MergeOptions merge;
  TopologyScope scope = TopologyScope::kContainer;
  /// The name by which a pod asks for a resource -> the name its plugin is registered under.
  StringMap resource_names;
  std::vector<ImplicitResource> implicit_resources;
  /// Resources, by their plugins' names, that every container uses: one that requests none asks for
  /// an amount of 0, so that it is kept off what others own.
  std::vector<std::string> native_resources = {"cpu", "memory"};
  std::set<std::string> skipped_namespaces;
  std::string skip_annotation = "katalyst.kubewharf.io/skip_qrm_admit";
  std::set<std::string> skipped_priority_classes;
  /// Those of QoS level system_cores are placed all the same.
  bool skip_daemonset_pods = true;
  std::chrono::milliseconds plugin_call_deadline{500};
};

}  // namespace qrm::manager
