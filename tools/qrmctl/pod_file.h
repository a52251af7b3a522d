// Reads a pod as kubectl writes it.
#pragma once

#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"

namespace k8s::io::api::core::v1 {
class Pod;
}  // namespace k8s::io::api::core::v1

namespace qrm::manager::cli {

/// What runs in a container.
struct Program {
  std::string image;
  std::vector<std::string> command;  ///< in place of the image's entry point, unless empty
  std::vector<std::string> args;
};

struct PodFile {
  std::shared_ptr<::k8s::io::api::core::v1::Pod> pod;  ///< what decides about its admission
  std::vector<Program> programs;  ///< of pod.spec().containers(), in their order
};

/// The pod in YAML or JSON: a v1 Pod, or the template in what makes pods (a Deployment, DaemonSet,
/// StatefulSet, ReplicaSet, Job or CronJob) under that one's name and namespace, "default" without.
/// `file` is the text's name in errors.
/// Errors: kInvalidArgument with file, line, field, value and remedy, also for texts beyond 1.5
/// MiB, which Kubernetes does not take.
StatusOr<PodFile> ReadPod(std::istream& text, const std::string& file);

/// The same of the file at `path`; "-" is standard input.
StatusOr<PodFile> ReadPodAt(const std::string& path);

}  // namespace qrm::manager::cli
