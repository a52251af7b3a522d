// The node's hardware as placement sees it: an immutable model, whatever it was read from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/id_set.h"

namespace qrm {

/// What a NUMA node's memory is.
enum class MemoryKind {
  kDram,     ///< ordinary memory
  kHbm,      ///< high-bandwidth memory
  kPmem,     ///< non-volatile memory
  kCxl,      ///< behind a CXL device
  kGpu,      ///< a GPU's
  kCpuLess,  ///< without CPUs beside it; more is not known
};

/// "dram", "hbm", "pmem", "cxl", "gpu" or "cpu-less"; absent for other words.
std::string_view WordOf(MemoryKind kind);
std::optional<MemoryKind> ParseMemoryKind(std::string_view word);

/// A NUMA node. CPU-less nodes (memory expanders) have empty `cpus`, memory-less ones
/// `memory_bytes` 0. Units: the kernel's numbers, bytes, pages.
/// Source: /sys/devices/system/node, as hwloc reads it.
struct NumaNode {
  int id = 0;       ///< the kernel's number
  int package = 0;  ///< id of the package it is nearest to
  CpuSet cpus;      ///< online CPUs
  uint64_t memory_bytes = 0;
  MemoryKind memory_kind = MemoryKind::kDram;
  /// The nodes with CPUs that its memory is nearest to. May be left empty: Machine finds them by
  /// distance, and itself where it has CPUs.
  NumaMask homes;
  std::map<uint64_t, uint64_t> hugepages;  ///< page size in bytes -> number of pages
};

/// A CPU's place. Ids are the smallest CPU number within the core or L3; `node` and `package` are
/// the kernel's numbers. Units: the kernel's CPU numbers.
/// Source: /sys/devices/system/cpu, as hwloc reads it.
struct Cpu {
  int id = 0;
  int core = 0;     ///< smallest CPU of the physical core
  int l3 = 0;       ///< smallest CPU that shares the L3 cache; of the package when there is no L3
  int node = 0;     ///< NUMA node
  int package = 0;  ///< socket
  /// 0 for machines with one kind of core; on hybrid machines higher kinds are more performant.
  int core_kind = 0;
  bool has_l3 = true;  ///< false: no L3 is known and `l3` stands for the package
};

/// A network interface with a place on the machine. Units: `node` is the kernel's number.
/// Source: hwloc's OS devices.
struct Nic {
  std::string name;         ///< interface name, such as "eth0"
  std::string pci_address;  ///< "0000:3b:00.0", or empty
  std::optional<int> node;  ///< NUMA node; absent when firmware does not say
};

/// A PCI device with a place on the machine. Numbers are those of PCI. Source: hwloc's PCI devices.
struct PciDevice {
  std::string address;  ///< "0000:3b:00.0"
  uint32_t device_class = 0;
  uint16_t vendor = 0;
  uint16_t device = 0;
  std::optional<int> node;
};

/// What discovery found; the input of Machine. Units: those of its parts.
struct MachineParts {
  std::vector<Cpu> cpus;  ///< online CPUs only
  std::vector<NumaNode>
      nodes;  ///< `NumaNode::cpus` may be left empty: Machine derives it from `cpus`
  /// distances[i][j] from nodes[i] to nodes[j], as in the firmware's SLIT (10 is local); empty when
  /// unknown.
  std::vector<std::vector<uint64_t>> distances;
  int l3s_without_cpus = 0;  ///< L3 caches without a CPU that may be used
  CpuSet offline;            ///< present but offline
  CpuSet disallowed;         ///< online, but outside this process's cpuset
  CpuSet isolated;           ///< kept from the kernel's load balancing by its boot parameter
  std::vector<Nic> nics;
  std::vector<PciDevice> pci_devices;
  /// What the kernel manages in all; 0 when unknown. Hot-plugged memory is not in all kernels'
  /// sums by node. Source: /proc/meminfo, MemTotal.
  uint64_t memory_bytes = 0;
  /// The file with the CPUs that are online now; empty for a machine that is only described.
  /// Source: Linux, admin-guide/cputopology.rst, /sys/devices/system/cpu/online.
  std::string online;
  std::string root;  ///< the directory with its /sys and /proc; empty: it is described otherwise
  std::vector<std::string>
      warnings;  ///< what was wrong or missing and how it was worked around, one sentence each
};

/// CPUs that share something: a core, an L3 cache, a package.
/// Units: the kernel's CPU numbers.
struct CpuGroup {
  int id = 0;  ///< as in Cpu
  CpuSet cpus;
};

/// The machine.
///
/// Threads: immutable, any. Units: bytes; the kernel's CPU and NUMA node numbers; SLIT distances.
/// Cost:    look-ups are O(1) but where said. Source: hwloc's object model, put in order.
class Machine {
 public:
  /// A machine of no CPU and no node; for members that are set later.
  Machine() = default;
  /// `parts` in any order; they are sorted by id. Ids must be unique, each CPU's node must exist
  /// and `distances` be empty or a square over `nodes`.
  /// Cost: O((CPUs + nodes) log) plus nodes squared for the distances.
  explicit Machine(MachineParts parts);

  const std::vector<Cpu>& cpus() const { return parts_.cpus; }
  const std::vector<NumaNode>& nodes() const { return parts_.nodes; }
  const MachineParts& parts() const { return parts_; }

  /// The kernel's total, which kubelet takes for the node's capacity; where it is unknown, the sum
  /// of the nodes'.
  uint64_t memory_bytes() const;

  /// All CPUs that were online when the machine was read; all NUMA nodes.
  const CpuSet& cpu_set() const { return cpu_set_; }
  const NumaMask& node_mask() const { return node_mask_; }

  /// Those of cpu_set() that went offline since. Empty for a machine that is only described, and
  /// when the kernel cannot be asked. Cost: one small file.
  CpuSet OfflineNow() const;

  /// Null when there is no such online CPU or node.
  const Cpu* FindCpu(int id) const;
  const NumaNode* FindNode(int id) const;

  /// The CPUs of all `nodes`; the nodes of all `cpus`. Cost: O(nodes), O(cpus).
  CpuSet CpusOf(const NumaMask& nodes) const;
  NumaMask NodesOf(const CpuSet& cpus) const;
  /// All threads of the cores that `cpus` touch. Cost: O(cpus).
  CpuSet CoresOf(const CpuSet& cpus) const;
  /// The CPUs in `cpus` whose core is entirely in `cpus`, apart from its threads in `offline`.
  /// Cost: O(cores).
  CpuSet WholeCores(const CpuSet& cpus, const CpuSet& offline = {}) const;
  /// The first thread of each core of `cpus`. Cost: O(cores).
  CpuSet FirstThreads(const CpuSet& cpus) const;
  /// The CPUs of the highest core kind, which is for performance; all CPUs if all cores are alike.
  CpuSet PerformanceCpus() const;
  /// All CPUs of the packages that hold CPUs of `nodes`. Cost: O(packages x CPUs / 64).
  CpuSet PackagesOf(const NumaMask& nodes) const;

  /// Those with online CPUs, by ascending id. An L3 that no CPU reports is not among l3s().
  const std::vector<CpuGroup>& packages() const { return packages_; }
  const std::vector<CpuGroup>& cores() const { return cores_; }
  const std::vector<CpuGroup>& l3s() const { return l3s_; }

  /// Counts include packages and L3s of which only memory, but no CPU may be used.
  int package_count() const { return package_count_; }
  int core_count() const { return static_cast<int>(cores_.size()); }
  int l3_count() const { return static_cast<int>(l3s_.size()) + parts_.l3s_without_cpus; }
  /// The highest Cpu::core_kind; 0 when all cores are alike.
  int highest_core_kind() const { return highest_core_kind_; }

  /// Between nodes by id, SLIT units; 10 for the same node and 20 for different ones when firmware
  /// does not say.
  uint64_t Distance(int from, int to) const;

  /// A copy in which the nodes named by id have that kind of memory.
  /// Cost: that of copying the machine.
  Machine WithMemoryKinds(const std::map<int, MemoryKind>& kind_by_node) const;

  /// A copy in which the nodes named by id have that much memory, in bytes.
  /// For machines described by a synthetic string, whose nodes are all alike.
  /// Cost: that of copying the machine.
  Machine WithNodeMemory(const std::map<int, uint64_t>& bytes_by_node) const;

 private:
  template <typename Value>
  Machine With(const std::map<int, Value>& by_node, Value NumaNode::* member) const;
  void SortNodes();
  void IndexNodes();
  void IndexCpus();
  void FindHomes();
  NumaMask NearestWithCpus(const NumaNode& node) const;

  MachineParts parts_;
  CpuSet cpu_set_;
  NumaMask node_mask_;
  std::vector<int> cpu_index_;   // CPU id -> index into parts_.cpus, or -1
  std::vector<int> node_index_;  // node id -> index into parts_.nodes, or -1
  std::vector<CpuGroup> packages_;
  std::vector<CpuGroup> cores_;
  std::vector<CpuGroup> l3s_;
  std::vector<int> core_index_;  // core id -> index into cores_, or -1
  int package_count_ = 0;
  int highest_core_kind_ = 0;
};

}  // namespace qrm
