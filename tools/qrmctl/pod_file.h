// Reads a pod as kubectl writes it.
#pragma once

#include <istream>
#include <string>

#include "api/base/status.h"
#include "api/proto/core/v1/pod.pb.h"

namespace qrm::manager::cli {

/// The pod in YAML or JSON: a v1 Pod, or the template in what makes pods (a Deployment, DaemonSet,
/// StatefulSet, ReplicaSet, Job or CronJob) under that one's name and namespace, "default" without.
/// Only what decides about its admission is read. `file` is the text's name in errors.
/// Errors: kInvalidArgument with file, line, field, value and remedy, also for texts beyond 1.5
/// MiB, which Kubernetes does not take.
StatusOr<::k8s::io::api::core::v1::Pod> ReadPod(std::istream& text, const std::string& file);

}  // namespace qrm::manager::cli
