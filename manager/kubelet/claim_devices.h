// Finds the NUMA nodes of the devices that DRA drivers gave to containers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "cluster/access.h"

namespace qrm::manager {

/// A device of a resource claim, as kubelet or the runtime names it.
struct ClaimDevice {
  std::string claim_namespace;
  std::string claim;  ///< empty: only the CDI IDs are known
  std::string driver;
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_ids;  ///< such as "gpu.example.com/gpu=0"

  /// "claim gpu: gpu.example.com/node1/gpu-0", or the CDI IDs.
  std::string Name() const;
};

/// The NUMA nodes that a device is near to; first the one that it is attached to. Empty: unknown.
using NearNodes = std::vector<int>;

/// A place where devices' NUMA nodes are known.
class NearNodesSource {
 public:
  using Found = std::function<void(const NearNodes&)>;

  virtual ~NearNodesSource() = default;
  /// Calls `found` once, within the call or later on the same thread, unless it is destroyed.
  virtual void Find(const ClaimDevice& device, Found found) = 0;
};

struct ClaimDevicesOptions {
  std::string node_name;
  /// Names of ResourceSlices' attributes with a NUMA node, read after the standard one. A name
  /// without a domain is one of the driver's own.
  std::vector<std::string> attributes;
  std::vector<std::string> cdi_dirs = {"/etc/cdi", "/var/run/cdi"};  ///< later ones go before
  std::string sysfs = "/sys";
  /// Address and credentials of the API server; null: it is not asked.
  std::function<StatusOr<cluster::ClusterAccess>()> access;
};

/// Asks one source after the other, each device of the answer before: the node's ResourceSlices (by
/// attribute, then by PCI address), the CDI specifications, the claim's status.
///
/// Nothing waits for its thread, which reads files and follows the API server.
/// Threads: any; Start and Stop from one thread.
class ClaimDevices {
 public:
  /// By the order of the devices that were asked about.
  using Located = std::function<void(std::vector<NearNodes>)>;

  explicit ClaimDevices(ClaimDevicesOptions options);
  ~ClaimDevices();
  ClaimDevices(const ClaimDevices&) = delete;
  ClaimDevices& operator=(const ClaimDevices&) = delete;

  void Start();
  /// Questions without an answer get none.
  void Stop();

  /// Calls `located` once, on its own thread, when all devices were looked for.
  void Locate(std::vector<ClaimDevice> devices, Located located);

  /// Why ResourceSlices are not read although they should be: one sentence; empty: they are, or
  /// need not be. Threads: any.
  std::string problem() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
