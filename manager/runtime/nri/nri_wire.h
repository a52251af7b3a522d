// Converts between NRI messages and pods, containers and changes, and finds the version of NRI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/runtime/container.h"

namespace nri::pkg::api::v1alpha1 {
class Container;
class ContainerAdjustment;
class ContainerUpdate;
class LinuxResources;
class PodSandbox;
enum Event : int;
}  // namespace nri::pkg::api::v1alpha1

namespace qrm::manager {

namespace nri = ::nri::pkg::api::v1alpha1;

/// Wrapper messages with a zero count as not set: containerd sends them for absent values.
LinuxResources FromWire(const nri::LinuxResources& wire);
RuntimePod FromWire(const nri::PodSandbox& wire);
/// A container without a name (CRI-O, at creation) gets it from kubelet's label.
RuntimeContainer FromWire(const nri::Container& wire);

/// The message has only values that are set: a wrapper that is present claims its field.
nri::LinuxResources ToWire(const LinuxResources& resources);
/// Errors: kInvalidArgument for a device whose path on the host is missing or not a device node,
/// and for a key that NRI takes as a removal.
StatusOr<nri::ContainerAdjustment> ToWire(const ContainerAdjustment& adjustment);
/// Hugepage limits are left out: containerd appends them to existing ones.
nri::ContainerUpdate ToWire(const ContainerUpdate& update);

/// The events to subscribe to: one bit per event, 1 << (Event - 1). Every runtime with NRI has all
/// of them: a runtime rejects a plugin for an unknown bit.
int32_t SubscribedEvents();

/// Why this runtime's NRI is unsafe to use, as one sentence; empty when no problem is known.
std::string KnownProblemOf(const RuntimeInfo& runtime);

}  // namespace qrm::manager
