// What this node publishes to the API server: the options, with their defaults and keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::manager {

/// The values of the key `publish`.
inline constexpr char kPublishTopology[] = "topology";
inline constexpr char kPublishResources[] = "extended-resources";
inline constexpr char kPublishClasses[] = "classes";
inline constexpr char kPublishClassResources[] = "class-resources";
inline constexpr char kPublishPodClasses[] = "pod-classes";
inline constexpr char kPublishPodFailures[] = "pod-failures";
inline constexpr char kPublishNodeConfig[] = "node-config";
inline constexpr char kPublishDrivers[] = "drivers";
inline constexpr char kPublishEvents[] = "events";

struct PublishOptions {
  std::vector<std::string> what;  ///< empty: the API server is not called
  std::string node_name;          ///< empty: the host's name
  std::string kubeconfig;         ///< empty: the service account of the pod
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds grace{300'000};
  std::chrono::milliseconds heartbeat{300'000};

  bool Has(const char* word) const;
};

/// The name of this node's Node object.
std::string NodeNameOf(const PublishOptions& options);

/// Errors: kInvalidArgument for an unknown word in `what`.
Status CheckPublish(const PublishOptions& options);

std::vector<config::ConfigKey> PublishKeys(PublishOptions& options);

}  // namespace qrm::manager
