// Reads the interfaces of one network namespace from rtnetlink's messages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/file_descriptor.h"
#include "api/base/status.h"
#include "plugins/nic/facts.h"

namespace qrm::nic {

/// One message of the kernel, without its header.
struct NetlinkMessage {
  uint16_t type = 0;
  uint16_t flags = 0;
  std::string_view payload;
};

/// The messages of a datagram, up to the first that is cut off.
/// Source: netlink(7), struct nlmsghdr.
std::vector<NetlinkMessage> SplitMessages(std::string_view datagram);

/// A link as rtnetlink reports it.
struct Link {
  std::string name;
  std::string bus;     ///< of its device, such as "pci"; empty for virtual ones
  std::string device;  ///< its name there, such as "0000:3b:00.0"
  InterfaceFacts facts;
};

/// The interfaces of one namespace, from its dumps of links and addresses.
class LinkTable {
 public:
  /// Reads RTM_NEWLINK and RTM_NEWADDR, and ignores other messages and those that are cut off.
  /// Links come before their addresses. Source: rtnetlink(7).
  void Take(const NetlinkMessage& message);

  std::map<int, Link>& links() { return links_; }  ///< by the kernel's index

 private:
  void TakeLink(std::string_view payload);
  void TakeAddress(std::string_view payload);

  std::map<int, Link> links_;
};

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
