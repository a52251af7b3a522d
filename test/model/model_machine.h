// The node of the model test: small enough to be full most of the time.
#pragma once

#include <cstdint>
#include <string>

#include "api/base/status.h"
#include "api/id_set.h"

namespace qrm::test {

inline constexpr int kModelNodes = 2;
inline constexpr int kCpusPerNode = 12;
inline constexpr int64_t kBytesPerNode = int64_t{4} << 30;
inline constexpr int kNicMbps = 1000;  ///< of each NIC; one at each NUMA node
inline constexpr char kNicRequest[] = "qrm.io/nic";
inline constexpr char kNicEnv[] = "AFFINITY_NIC_ADDR_IPV4";
inline constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";
inline constexpr char kBoundRole[] = "database";
inline constexpr char kPoolRole[] = "burst";  ///< its pool follows limits
inline constexpr int kMostInPool = 6;         ///< CPUs

inline CpuSet AllCpus() {
  return CpuSet::Range(0, kModelNodes * kCpusPerNode - 1);
}
inline CpuSet CpusOfNode(int node) {
  return CpuSet::Range(node * kCpusPerNode, (node + 1) * kCpusPerNode - 1);
}
/// The first CPU of each node; containers share them, and they are never exclusive.
inline CpuSet ReservedCpus() {
  return {0, kCpusPerNode};
}
inline std::string NicAddress(int node) {
  return "192.0.2." + std::to_string(node + 1);
}

/// Writes the machine without the CPUs `offline` to `file`, as hwloc's XML. Errors: the disk's.
Status WriteMachine(const std::string& file, const CpuSet& offline);

}  // namespace qrm::test
