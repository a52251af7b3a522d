// Reads the interfaces of one network namespace.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/base/file_descriptor.h"
#include "api/base/status.h"
#include "plugins/nic/facts.h"
#include "plugins/nic/link_table.h"

namespace qrm::nic {

/// Identifies a namespace: device and inode, the same for all files of the namespace.
using NamespaceId = std::pair<uint64_t, uint64_t>;

/// Errors: kNotFound when there is no network namespace at `path`; kUnavailable.
/// Source: namespaces(7).
StatusOr<NamespaceId> IdOf(const std::string& path);

/// Sockets in a network namespace. They keep it alive: destroy them when its file is removed.
///
/// Threads: one at a time, any; sockets stay in the namespace in which they were created.
/// Source: rtnetlink(7), setns(2).
class NamespaceSockets {
 public:
  /// Opens the namespace at `path`; empty: that of this program, which needs no privilege. The
  /// caller's thread stays in its namespace. Errors: kNotFound when there is none;
  /// kPermissionDenied without CAP_SYS_ADMIN; kUnavailable.
  static StatusOr<std::unique_ptr<NamespaceSockets>> Open(const std::string& path);

  const NamespaceId& id() const { return id_; }

  /// Readable when a link or an address changed since Drain.
  int events() const { return events_.get(); }
  void Drain() const;

  /// All interfaces now. Cost: two dumps, and a call per interface with a device.
  /// Errors: kUnavailable with the system's error.
  StatusOr<std::map<std::string, InterfaceFacts>> Read() const;

 private:
  NamespaceSockets(NamespaceId id, int events, int questions)
      : id_(std::move(id)), events_(events), questions_(questions) {}
  static StatusOr<std::unique_ptr<NamespaceSockets>> OpenHere(NamespaceId id);
  static StatusOr<std::unique_ptr<NamespaceSockets>> EnterAndOpen(const std::string& path);

  Status Dump(uint16_t type, LinkTable& table) const;
  StatusOr<bool> TakeAnswer(uint16_t type, LinkTable& table) const;
  uint64_t SpeedOf(const std::string& interface) const;

  const NamespaceId id_;
  const FileDescriptor events_;
  const FileDescriptor questions_;
};

/// The NUMA node of a device, or of the device that it is plugged into; absent if unknown.
/// Source: Linux Documentation/ABI/testing/sysfs-bus-pci, numa_node, below `sysfs_root`.
std::optional<int> NodeOfDevice(const std::string& bus, const std::string& device,
                                const std::string& sysfs_root = "/sys");

}  // namespace qrm::nic
