// Random configurations with permissions, and random pods that ask for what these may forbid. The
// test of qrmd and the test of the API server's policies draw the same ones.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/resource.h"

namespace qrm::test {

using Random = std::mt19937;

/// A pod before it is written as JSON or as protobuf.
struct AskingPod {
  struct Container {
    std::string name;
    bool init = false;
    std::map<std::string, std::string> requests;
    std::map<std::string, std::string> limits;
  };

  std::string pod_namespace;
  StringMap labels;
  StringMap annotations;
  std::string runtime_class;
  std::string priority_class;
  bool of_daemon_set = false;
  std::vector<Container> containers;
};

/// The names that pods use: they have to exist in a cluster.
std::vector<std::string> PodNamespaces();
std::vector<std::string> RuntimeClasses();

/// A configuration of qrmd, which is YAML when it is written out.
nlohmann::json DrawConfig(Random& random);

AskingPod DrawPod(Random& random);

/// `pod` with other labels, annotations and requests, as if these had been changed after its
/// creation.
AskingPod ChangedPod(AskingPod pod, Random& random);

/// `pod` as a manifest.
nlohmann::json ManifestOf(const AskingPod& pod);

/// `pod` as a serialized v1.Pod.
std::string MessageOfPod(const AskingPod& pod);

}  // namespace qrm::test
