// Pods and containers as a runtime describes them, over NRI and over CRI.
#pragma once

#include <cstdint>

#include "api/proto/nri/v1alpha1/nri.pb.h"
#include "api/proto/runtime/v1/api.pb.h"
#include "test/e2e/kubelet.h"

namespace qrm::test {

namespace cri = ::runtime::v1;
namespace nri = ::nri::pkg::api::v1alpha1;

nri::PodSandbox MakePod(const PodSpec& spec);
/// `attempt` counts how often the container was made before.
nri::Container MakeContainer(const PodSpec& spec, uint32_t attempt = 0);
/// The container as the runtime reports it when it was created with `adjustment`.
void Adjust(const nri::ContainerAdjustment& adjustment, nri::Container& container);
cri::PodSandbox CriPod(const nri::PodSandbox& from, cri::PodSandboxState state);
/// In the same state.
cri::Container CriContainer(const nri::Container& from, uint32_t attempt = 0);

/// The values of its requests.
cri::LinuxContainerResources CriResources(const nri::Container& from);

}  // namespace qrm::test
