// The NUMA nodes of devices by the API server's ResourceSlices, and by the status of claims.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cluster/api_client.h"
#include "cluster/list_watch.h"
#include "manager/kubelet/claim_devices.h"
#include "manager/kubelet/sysfs_nodes.h"

namespace qrm::manager {

/// The attribute that says where a device is: an integer, or a list whose first node is the one
/// that the device is attached to. Source: Kubernetes, KEP-6072.
inline constexpr char kNumaNodeAttribute[] = "resource.kubernetes.io/numaNode";

/// The ResourceSlices of this node, as a watch reports them. Threads: that of the watch.
class SliceNodes final : public NearNodesSource, public cluster::ObjectListener {
 public:
  /// `attributes` as in ClaimDevicesOptions.
  SliceNodes(std::vector<std::string> attributes, SysfsNodes sysfs);
  ~SliceNodes() override;
  SliceNodes(const SliceNodes&) = delete;
  SliceNodes& operator=(const SliceNodes&) = delete;

  void Find(const ClaimDevice& device, Found found) override;

  void OnListBegin() override;
  void OnItem(const nlohmann::json& object) override;
  void OnListEnd(const std::string& version) override;
  void OnSet(const nlohmann::json& object) override;
  void OnDelete(const nlohmann::json& last_state) override;
  void OnVersion(const std::string& /*version*/) override {}

 private:
  /// What is kept of a slice.
  struct Slice {
    std::string driver;
    std::string pool;
    int64_t generation = 0;
    std::map<std::string, NearNodes> nodes;  // by device
  };
  Slice Read(const nlohmann::json& object) const;
  NearNodes NodesOf(const std::string& driver, const nlohmann::json& attributes) const;

  const std::vector<std::string> attributes_;
  const SysfsNodes sysfs_;
  std::map<std::string, Slice> slices_;  // by name
  std::map<std::string, Slice> listed_;
};

/// Asks for the claim, for a device that is a network interface of the host.
class ClaimStatusNodes final : public NearNodesSource {
 public:
  /// `client` outlives it.
  ClaimStatusNodes(cluster::ApiClient& client, SysfsNodes sysfs);

  void Find(const ClaimDevice& device, Found found) override;

 private:
  cluster::ApiClient& client_;
  const SysfsNodes sysfs_;
};

}  // namespace qrm::manager
