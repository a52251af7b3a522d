// Converts between NRI messages and pods, containers and changes.
#pragma once

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

/// Wrappers that are present with a zero count as not set: containerd sends them so.
LinuxResources FromWire(const nri::LinuxResources& wire);
RuntimePod FromWire(const nri::PodSandbox& wire);
/// A container without a name (CRI-O, at creation) gets it from kubelet's label.
RuntimeContainer FromWire(const nri::Container& wire);

/// Only what is set appears in the message: a wrapper that is present claims its field.
nri::LinuxResources ToWire(const LinuxResources& resources);
/// Errors: kInvalidArgument for a device whose node on the host is missing or is none, and for a
/// key that NRI takes for a removal.
StatusOr<nri::ContainerAdjustment> ToWire(const ContainerAdjustment& adjustment);
/// Hugepage limits are left out: containerd appends them to those the container has.
nri::ContainerUpdate ToWire(const ContainerUpdate& update);

}  // namespace qrm::manager
