// What a container is within its pod, as far as reuse of what init containers leave is concerned.
#pragma once

namespace qrm {

/// An app container, an init container that ends before the next starts, or one that stays.
/// Units, cost: none, a name only. Source: Kubernetes, "Init Containers" and "Sidecar Containers".
enum class ContainerRole { kApp, kInit, kSidecar };

}  // namespace qrm
