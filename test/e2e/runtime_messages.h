// Pods and containers as a runtime describes them, over NRI and over CRI.
#pragma once

#include "api/proto/nri/v1alpha1/nri.pb.h"
#include "api/proto/runtime/v1/api.pb.h"
#include "test/e2e/kubelet.h"

namespace qrm::test {

namespace cri = ::runtime::v1;
namespace nri = ::nri::pkg::api::v1alpha1;

nri::PodSandbox MakePod(const PodSpec& spec);
nri::Container MakeContainer(const PodSpec& spec);
cri::PodSandbox CriPod(const nri::PodSandbox& from);
/// One that runs.
cri::Container CriContainer(const nri::Container& from);

}  // namespace qrm::test
