// Gets kubelet's list of pods over HTTPS when a pod is not known.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/base/status.h"
#include "api/http/https_url.h"
#include "manager/kubelet/cached_specs.h"
#include "manager/kubelet/kubelet_options.h"

namespace qrm::manager {

/// What the token may do at kubelet: only read pods, or anything (nodes/proxy). The latter is
/// rejected unless the configuration allows it.
enum class TokenPower { kNodesPods, kAny };

/// The source of kubelet's certificate, which authenticates it by its SHA-256 (DER, in hex);
/// without one, a certificate authority has to confirm it.
struct PinOptions {
  std::string given_file;  ///< kubelet's own certificate in PEM, read again each time
  std::string kept_file;   ///< has the fingerprint of the first certificate that kubelet served
};

struct KubeletPodsOptions {
  HttpsUrl url;
  std::string token_file;  ///< read again for each poll, since tokens rotate; empty: none
  std::string ca_file;
  PinOptions pin;  ///< instead of `ca_file`
  TokenPower token_power = TokenPower::kNodesPods;
  std::chrono::milliseconds timeout{5000};
  std::chrono::milliseconds least_interval =
      KubeletOptions().poll_interval;  ///< between polls; doubles while they fail
  std::chrono::milliseconds most_interval{30'000};
  SpecCache::Gone on_gone = [](const std::string&) {};
};

/// The pods of GET /pods. Kubelet is queried only for unknown pods and while it cannot be reached,
/// and not more often than the options say. While it cannot be reached, lookups end at once.
///
/// Threads: any. Has a separate thread, where lists of megabytes are read.
class KubeletPods final : public CachedSpecs {
 public:
  explicit KubeletPods(KubeletPodsOptions options);
  /// Ends calls under way.
  ~KubeletPods() override;
  KubeletPods(const KubeletPods&) = delete;
  KubeletPods& operator=(const KubeletPods&) = delete;

  /// False from a failed poll to the next that succeeds.
  bool reachable() const;
  /// Why it cannot be reached: one sentence; empty while it can.
  std::string problem() const;

  std::string name() const override { return "kubelet"; }
  void Prefetch(const std::string& uid) override;

 private:
  SpecCache& cache() const override;

  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
