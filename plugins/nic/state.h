// The NICs and their users: values, rebuilt from grants.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/nic/config.h"
#include "plugins/nic/facts.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::nic {

/// Identifies a NIC: interface names repeat in different network namespaces.
struct NicId {
  std::string netns;
  std::string interface;

  auto operator<=>(const NicId&) const = default;
};

/// A NIC that containers may get.
struct NicInfo {
  NicId id;
  std::optional<int> node;  ///< absent: near no node
  std::string ipv4;
  std::string ipv6;
  uint64_t egress_mbps = 0;  ///< 0: not accounted for
  uint64_t ingress_mbps = 0;
  std::vector<std::string> addresses;  ///< all known addresses of the interface
  /// Why no new container gets it, such as "has no link"; empty while it is healthy.
  std::string problem;

  bool operator==(const NicInfo&) const = default;
};

/// One container's use of a NIC.
struct Use {
  NicId nic;
  double mbps = 0;
  ContainerType type = ContainerType::kMain;

  bool operator==(const Use&) const = default;
};

/// What all containers use of a NIC.
struct Load {
  uint64_t containers = 0;
  double mbps = 0;  ///< of each pod, what it uses at the same time
};

/// Which container uses which NIC.
class NicState {
 public:
  /// `key` uses `use` in place of what it used before.
  void Put(const ContainerKey& key, Use use);
  /// `key` uses nothing. Returns what it used.
  std::optional<Use> Take(const ContainerKey& key);
  /// No container of the pod uses anything. False if none did before.
  bool TakePod(const std::string& pod_uid);
  /// Containers of `more` that use nothing here get their use there.
  void Merge(const NicState& more);

  const std::map<ContainerKey, Use>& uses() const { return uses_; }
  bool IsUsedByPod(const std::string& pod_uid, const NicId& nic) const;
  /// Independent of the order of changes. Cost: O(different amounts).
  Load LoadOf(const NicId& nic) const;
  /// The same as if `key` used `use` of its NIC. Cost: also O(containers of the pod).
  Load LoadWith(const ContainerKey& key, const Use& use) const;

 private:
  struct Users {
    uint64_t containers = 0;
    std::map<double, uint64_t> pods;  ///< Mbit/s -> pods that use this much at the same time
  };

  std::optional<double> AtOnce(const std::string& pod_uid, const NicId& nic,
                               const ContainerKey* without = nullptr,
                               const Use* more = nullptr) const;
  template <typename Edit>
  void Change(const ContainerKey& key, const NicId& nic, const Edit& edit);

  std::map<ContainerKey, Use> uses_;
  std::map<NicId, Users> users_;  ///< of the containers in uses_
};

/// The input of a decision; all of it outlives the view.
struct View {
  const Machine& machine;
  const NicPluginConfig& config;
  const std::vector<NicInfo>& nics;
  const NicState& state;
};

/// The declared NICs, completed with the interface's node, addresses and speed. If none is
/// declared, the machine's NICs that have an address, or had an address in `before`. Missing
/// `facts` are unknown, and not a problem. Errors: kInvalidArgument for a NUMA node that the
/// machine does not have.
StatusOr<std::vector<NicInfo>> FindNics(const NicPluginConfig& config, const Machine& machine,
                                        const NicFacts& facts,
                                        const std::vector<NicInfo>& before = {});

/// Null if `id` is not among `nics`.
const NicInfo* FindNic(const std::vector<NicInfo>& nics, const NicId& id);

/// The NIC that a container got, whatever the name of the annotation for its namespace was.
NicId NicOf(const ResourceAllocation& allocation);

/// The state after a restart: containers keep their NICs, even those that no longer exist.
NicState Rebuild(const NicPluginConfig& config, const sdk::Grants& grants);

}  // namespace qrm::nic
