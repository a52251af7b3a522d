// The manager's calls to a resource plugin: resourceplugin.v1alpha1.ResourcePlugin.
#pragma once

#include "api/placement.h"
#include "api/resource.h"
#include "plugins/sdk/calls/call.h"

namespace qrm::calls {

struct GetOptions {
  static constexpr Method kMethod{
      "/resourceplugin.v1alpha1.ResourcePlugin/GetResourcePluginOptions", "get the options of",
      AnsweredBy::kAnyThread};
  using Request = Nothing;
  using Answer = PluginOptions;
};

struct GetTopologyHints {
  static constexpr Method kMethod{"/resourceplugin.v1alpha1.ResourcePlugin/GetTopologyHints",
                                  "get hints from", AnsweredBy::kAnyThreadIfQuick};
  using Request = ContainerRequest;
  using Answer = HintList;
};

struct Allocate {
  static constexpr Method kMethod{"/resourceplugin.v1alpha1.ResourcePlugin/Allocate",
                                  "allocate with", AnsweredBy::kAnyThreadIfQuickAndTaught};
  using Request = ContainerRequest;
  using Answer = AllocationByResource;
};

// Specialized because the walk from an admission to a policy is short.
template <>
StatusOr<HintList> CallTo<GetTopologyHints>::Serve(sdk::PluginDriver& driver,
                                                   const ContainerRequest& request);
template <>
StatusOr<AllocationByResource> CallTo<Allocate>::Serve(sdk::PluginDriver& driver,
                                                       const ContainerRequest& request);

struct RemovePod {
  static constexpr Method kMethod{"/resourceplugin.v1alpha1.ResourcePlugin/RemovePod",
                                  "remove a pod from"};
  using Request = std::string;  ///< its UID
  using Answer = Nothing;
};

/// The plugin reconciles first. The answer grows with the node and rarely changes.
struct GetResourcesAllocation {
  static constexpr Method kMethod{"/resourceplugin.v1alpha1.ResourcePlugin/GetResourcesAllocation",
                                  "get the allocations of"};
  using Request = Nothing;
  using Answer = HeldAllocations;
};
// Specialized because the answer is large.
template <>
void CallTo<GetResourcesAllocation>::Take(const Pieces& pieces, const NumaMask& machine_nodes);

/// The plugin's allocatable amounts, by resource.
struct GetAllocatable {
  static constexpr Method kMethod{
      "/resourceplugin.v1alpha1.ResourcePlugin/GetTopologyAwareAllocatableResources",
      "get the allocatable resources of"};
  using Request = Nothing;
  using Answer = AllocatableByResource;
};

/// One container's amounts by NUMA node, of all resources that the plugin allocated.
struct GetPlacement {
  static constexpr Method kMethod{
      "/resourceplugin.v1alpha1.ResourcePlugin/GetTopologyAwareResources",
      "get a container's placement from"};
  using Request = ContainerKey;
  using Answer = ContainerPlacement;
};

/// Called between a container's creation and its start, if the plugin's options request it.
struct PreStartContainer {
  static constexpr Method kMethod{"/resourceplugin.v1alpha1.ResourcePlugin/PreStartContainer",
                                  "prepare a container with"};
  struct Request {
    ContainerKey key;
    std::string pod_namespace;
    std::string pod_name;
  };
  using Answer = Nothing;
};

/// All of these calls, for the plugin's side.
std::vector<ServedCall> PluginCalls();

}  // namespace qrm::calls
