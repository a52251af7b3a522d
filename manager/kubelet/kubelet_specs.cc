// Creates the sources of pod specs that the configuration names.
#include "manager/kubelet/kubelet_specs.h"

#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "manager/demand/pod_spec.h"

namespace qrm::manager {
namespace {

// The sources call it on their own threads.
SpecCache::Gone OnLoop(const KubeletSpecs::Parts& parts) {
  return [&io = parts.io, gone = parts.on_pod_gone](const std::string& uid) {
    boost::asio::post(io, [gone, uid] { gone(uid); });
  };
}

std::unique_ptr<PodsApiClient> MakePodsApi(const KubeletSpecs::Parts& parts,
                                           const KubeletOptions& options) {
  if (options.pods_socket.empty()) {
    return nullptr;
  }
  return std::make_unique<PodsApiClient>(parts.io,
                                         PodsApiOptions{.socket = options.pods_socket,
                                                        .lookup_timeout = options.pod_spec_wait,
                                                        .on_gone = OnLoop(parts)});
}

std::unique_ptr<KubeletPods> MakeKubeletPods(const KubeletSpecs::Parts& parts,
                                             const KubeletOptions& options) {
  const StatusOr<HttpsUrl> url = ParseHttpsUrl(options.url);
  if (!url.ok()) {
    return nullptr;  // empty: the configuration rejects other addresses
  }
  return std::make_unique<KubeletPods>(KubeletPodsOptions{
      .url = *url,
      .token_file = options.token_file,
      .ca_file = options.ca_file,
      .pin = {.given_file = options.certificate_file,
              .kept_file = options.pin_first_use ? parts.pin_file : ""},
      .token_power = options.allow_nodes_proxy ? TokenPower::kAny : TokenPower::kNodesPods,
      .least_interval = options.poll_interval,
      .on_gone = OnLoop(parts)});
}

/// The exact sources first; sources that are not used are null.
std::vector<SpecSource*> SpecSourcesOf(SpecSource* pods_api, SpecSource* kubelet_pods,
                                       SpecSource* announced) {
  std::vector<SpecSource*> sources;
  for (SpecSource* source : {pods_api, kubelet_pods, announced}) {
    if (source != nullptr) {
      sources.push_back(source);
    }
  }
  return sources;
}

}  // namespace

KubeletSpecs::KubeletSpecs(const Parts& parts, const KubeletOptions& options,
                           const placement::PodKeys& pod_keys)
    : pods_api_(MakePodsApi(parts, options)),
      kubelet_pods_(MakeKubeletPods(parts, options)),
      specs_(parts.io, SpecSourcesOf(pods_api_.get(), kubelet_pods_.get(), &announced_),
             CgroupEstimate(pod_keys, parts.machine.memory_bytes()), options.pod_spec_wait),
      claims_(parts.claims),
      with_devices_(parts.io, specs_, parts.machine, claims_, parts.devices) {}

std::string KubeletSpecs::reporting() const {
  if (pods_api_ != nullptr && pods_api_->synced()) {
    return "kubelet's Pods API";
  }
  return kubelet_pods_ != nullptr && kubelet_pods_->reachable() ? "kubelet-url" : "";
}

SpecsFrom KubeletSpecs::specs_from() const {
  return reporting().empty() ? SpecsFrom::kCgroups : SpecsFrom::kKubelet;
}

std::string KubeletSpecs::problem() const {
  if (specs_from() == SpecsFrom::kKubelet) {
    return claims_.problem();
  }
  std::string cause = kubelet_pods_ != nullptr ? kubelet_pods_->problem() : std::string();
  if (cause.empty() && pods_api_ != nullptr) {
    cause = pods_api_->lost();
  }
  return cause.empty() ? claims_.problem()
                       : fmt::format(
                             "the requests of new pods are estimated from cgroup values, so that "
                             "extended resources and whole pods are not known: {}; see whether "
                             "kubelet runs (systemctl status kubelet)",
                             cause);
}

StatusOr<std::string> KubeletSpecs::Announce(const std::string& pod) {
  QRM_ASSIGN_OR_RETURN(PodSpec spec, ParsePodMessage(pod));
  std::string name = spec.pod_namespace + "/" + spec.name;
  announced_.Add(std::move(spec));
  return name;
}

void KubeletSpecs::Start() {
  claims_.Start();
  if (pods_api_ != nullptr) {
    pods_api_->Start();
  }
}

void KubeletSpecs::Stop() {
  with_devices_.Stop();
  claims_.Stop();
  specs_.Stop();
  if (pods_api_ != nullptr) {
    pods_api_->Stop();
  }
}

}  // namespace qrm::manager
