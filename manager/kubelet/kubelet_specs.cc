// Makes the sources of pod specs that the configuration names.
#include "manager/kubelet/kubelet_specs.h"

#include <vector>

namespace qrm::manager {
namespace {

std::unique_ptr<PodsApiClient> MakePodsApi(boost::asio::io_context& io,
                                           const KubeletOptions& options) {
  if (options.pods_socket.empty()) {
    return nullptr;
  }
  return std::make_unique<PodsApiClient>(
      io, PodsApiOptions{.socket = options.pods_socket, .lookup_timeout = options.pod_spec_wait});
}

std::unique_ptr<KubeletPods> MakeKubeletPods(const KubeletOptions& options) {
  const StatusOr<HttpsUrl> url = ParseHttpsUrl(options.url);
  if (!url.ok()) {
    return nullptr;  // empty: other addresses are no configuration
  }
  return std::make_unique<KubeletPods>(
      KubeletPodsOptions{.url = *url,
                         .token_file = options.token_file,
                         .check = options.insecure ? PeerCheck::kNone : PeerCheck::kCertificate,
                         .ca_file = options.ca_file,
                         .least_interval = options.poll_interval});
}

/// The exact first; those that are not asked are null.
std::vector<SpecSource*> SpecSourcesOf(SpecSource* pods_api, SpecSource* kubelet_pods) {
  std::vector<SpecSource*> sources;
  for (SpecSource* source : {pods_api, kubelet_pods}) {
    if (source != nullptr) {
      sources.push_back(source);
    }
  }
  return sources;
}

}  // namespace

KubeletSpecs::KubeletSpecs(boost::asio::io_context& io, const KubeletOptions& options,
                           const PodKeys& pod_keys, const Machine& machine)
    : pods_api_(MakePodsApi(io, options)),
      kubelet_pods_(MakeKubeletPods(options)),
      source_(io, SpecSourcesOf(pods_api_.get(), kubelet_pods_.get()),
              CgroupEstimate(pod_keys, machine.memory_bytes()), options.pod_spec_wait) {}

SpecsFrom KubeletSpecs::specs_from() const {
  const bool told = (pods_api_ != nullptr && pods_api_->synced()) ||
                    (kubelet_pods_ != nullptr && kubelet_pods_->reachable());
  return told ? SpecsFrom::kKubelet : SpecsFrom::kCgroups;
}

void KubeletSpecs::Start() {
  if (pods_api_ != nullptr) {
    pods_api_->Start();
  }
}

void KubeletSpecs::Stop() {
  source_.Stop();
  if (pods_api_ != nullptr) {
    pods_api_->Stop();
  }
}

}  // namespace qrm::manager
