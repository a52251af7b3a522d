// Queries the kernel by rtnetlink, whose messages are read without trusting their lengths, and by
// ioctl for the speed, which rtnetlink lacks.
#include "plugins/nic/namespace_sockets.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/vfs.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "api/base/errorf.h"

namespace qrm::nic {
namespace {

/// Addresses that cannot be bound yet, or that are about to be replaced.
constexpr uint32_t kUselessFlags = IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_TEMPORARY;

/// The T at the front of `bytes`, without alignment.
template <typename T>
std::optional<T> Read(std::string_view bytes) {
  T value;
  if (bytes.size() < sizeof value) {
    return std::nullopt;
  }
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

/// Removes `length` bytes and the padding to the next header from the front of `bytes`.
void Skip(std::string_view& bytes, std::size_t length) {
  bytes.remove_prefix(std::min(bytes.size(), std::size_t{NLMSG_ALIGN(length)}));
}

using Attributes = std::map<uint16_t, std::string_view>;

Attributes AttributesOf(std::string_view bytes) {
  Attributes attributes;
  for (auto header = Read<rtattr>(bytes); header.has_value(); header = Read<rtattr>(bytes)) {
    if (header->rta_len < sizeof *header || header->rta_len > bytes.size()) {
      break;
    }
    attributes[header->rta_type & NLA_TYPE_MASK] =
        bytes.substr(sizeof *header, header->rta_len - sizeof *header);
    Skip(bytes, header->rta_len);
  }
  return attributes;
}

std::string_view Find(const Attributes& attributes, uint16_t type) {
  const auto found = attributes.find(type);
  return found == attributes.end() ? std::string_view() : found->second;
}

/// Without the zero at the end.
std::string TextOf(std::string_view value) {
  return std::string(value.substr(0, value.find('\0')));
}

std::string AddressText(int family, std::string_view value) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const std::size_t length = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
  if (value.size() != length) {
    return "";
  }
  const char* const written = inet_ntop(family, value.data(), text.data(), text.size());
  return written == nullptr ? "" : written;
}

/// Devices without this state (loopback, tunnels) work while they are up.
bool HasLink(uint32_t flags, const Attributes& attributes) {
  const uint8_t state = Read<uint8_t>(Find(attributes, IFLA_OPERSTATE)).value_or(IF_OPER_UNKNOWN);
  return (flags & IFF_UP) != 0 && (state == IF_OPER_UP || state == IF_OPER_UNKNOWN);
}

/// The kernel answers at once; this is a limit for a kernel that does not.
constexpr timeval kAnswerTimeout = {.tv_sec = 2, .tv_usec = 0};
/// Larger than the kernel's datagrams of a dump. Source: netlink(7), "32 kB".
constexpr std::size_t kDatagramBytes = std::size_t{64} * 1024;
/// A dump during a change is incomplete, and is repeated.
constexpr int kDumpAttempts = 10;

struct Question {
  nlmsghdr header = {};
  ifinfomsg family = {};  // as long as ifaddrmsg, which also begins with the family, or longer
};

Status SystemError(StatusCode code, const char* what, int error) {
  return Errorf(code, "cannot {}: {}; see the key follow of the nic plugin", what,
                std::strerror(error));
}

bool Bind(int socket, uint32_t groups) {
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  sockaddr generic;
  static_assert(sizeof address <= sizeof generic);
  std::memcpy(&generic, &address, sizeof address);
  return socket >= 0 && ::bind(socket, &generic, sizeof address) == 0;
}

bool IsInterrupted(const NetlinkMessage& message) {
  return (message.flags & NLM_F_DUMP_INTR) != 0;
}

Status ErrorOf(const NetlinkMessage& message) {
  nlmsgerr error = {};
  std::memcpy(&error, message.payload.data(), std::min(message.payload.size(), sizeof error));
  return SystemError(StatusCode::kUnavailable, "list network interfaces", -error.error);
}

}  // namespace

std::vector<NetlinkMessage> SplitMessages(std::string_view datagram) {
  std::vector<NetlinkMessage> messages;
  for (auto header = Read<nlmsghdr>(datagram); header.has_value();
       header = Read<nlmsghdr>(datagram)) {
    if (header->nlmsg_len < sizeof *header || header->nlmsg_len > datagram.size()) {
      break;
    }
    messages.push_back(
        {.type = header->nlmsg_type,
         .flags = header->nlmsg_flags,
         .payload = datagram.substr(sizeof *header, header->nlmsg_len - sizeof *header)});
    Skip(datagram, header->nlmsg_len);
  }
  return messages;
}

void LinkTable::Take(const NetlinkMessage& message) {
  if (message.type == RTM_NEWLINK) {
    TakeLink(message.payload);
  } else if (message.type == RTM_NEWADDR) {
    TakeAddress(message.payload);
  }
}

void LinkTable::TakeLink(std::string_view payload) {
  const auto header = Read<ifinfomsg>(payload);
  if (!header.has_value()) {
    return;
  }
  Skip(payload, sizeof *header);
  const Attributes attributes = AttributesOf(payload);
  Link& link = links_[header->ifi_index];
  link.name = TextOf(Find(attributes, IFLA_IFNAME));
  link.bus = TextOf(Find(attributes, IFLA_PARENT_DEV_BUS_NAME));
  link.device = TextOf(Find(attributes, IFLA_PARENT_DEV_NAME));
  link.facts.up = (header->ifi_flags & IFF_UP) != 0;
  link.facts.has_link = HasLink(header->ifi_flags, attributes);
}

void LinkTable::TakeAddress(std::string_view payload) {
  const auto header = Read<ifaddrmsg>(payload);
  if (!header.has_value() || (header->ifa_family != AF_INET && header->ifa_family != AF_INET6) ||
      (header->ifa_family == AF_INET6 && header->ifa_scope == RT_SCOPE_LINK)) {
    return;
  }
  Skip(payload, sizeof *header);
  const Attributes attributes = AttributesOf(payload);
  const uint32_t flags =
      Read<uint32_t>(Find(attributes, IFA_FLAGS)).value_or(uint32_t{header->ifa_flags});
  const auto link = links_.find(static_cast<int>(header->ifa_index));
  if (link == links_.end() || (flags & kUselessFlags) != 0) {
    return;
  }
  // IFA_ADDRESS is the peer's address if the two differ.
  const std::string_view local = Find(attributes, IFA_LOCAL);
  const std::string text =
      AddressText(header->ifa_family, local.empty() ? Find(attributes, IFA_ADDRESS) : local);
  InterfaceFacts& facts = link->second.facts;
  if (!text.empty()) {
    (header->ifa_family == AF_INET ? facts.ipv4 : facts.ipv6).push_back(text);
  }
}

StatusOr<NamespaceId> IdOf(const std::string& path) {
  struct stat file = {};
  struct statfs system = {};
  if (::stat(path.c_str(), &file) != 0 || ::statfs(path.c_str(), &system) != 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return Errorf(missing ? StatusCode::kNotFound : StatusCode::kUnavailable,
                  "cannot find network namespace {}: {}; create it, or correct netns", path,
                  std::strerror(errno));
  }
  if (system.f_type != NSFS_MAGIC) {
    // ip-netns(8) leaves such a file for a moment, before it mounts the namespace there.
    return Errorf(StatusCode::kNotFound,
                  "cannot find network namespace {}: the file is not a namespace; create it, or "
                  "correct netns",
                  path);
  }
  return NamespaceId(file.st_dev, file.st_ino);
}

StatusOr<std::unique_ptr<NamespaceSockets>> NamespaceSockets::OpenHere(NamespaceId id) {
  const auto open = [] { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); };
  std::unique_ptr<NamespaceSockets> sockets(new NamespaceSockets(std::move(id), open(), open()));
  const int questions = sockets->questions_.get();
  if (!Bind(sockets->events(), RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR) ||
      !Bind(questions, 0) ||
      ::setsockopt(questions, SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout, sizeof kAnswerTimeout) !=
          0) {
    return SystemError(StatusCode::kUnavailable, "open rtnetlink sockets", errno);
  }
  return sockets;
}

StatusOr<std::unique_ptr<NamespaceSockets>> NamespaceSockets::EnterAndOpen(
    const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  QRM_ASSIGN_OR_RETURN(NamespaceId id, IdOf("/proc/self/fd/" + std::to_string(file.get())));
  if (::setns(file.get(), CLONE_NEWNET) != 0) {
    return Errorf(errno == EPERM ? StatusCode::kPermissionDenied : StatusCode::kNotFound,
                  "cannot enter network namespace {}: {}; give the program CAP_SYS_ADMIN, or set "
                  "follow of the nic plugin to host",
                  path, std::strerror(errno));
  }
  return OpenHere(std::move(id));
}

StatusOr<std::unique_ptr<NamespaceSockets>> NamespaceSockets::Open(const std::string& path) {
  if (path.empty()) {
    return OpenHere({});
  }
  QRM_RETURN_IF_ERROR(IdOf(path).status());
  StatusOr<std::unique_ptr<NamespaceSockets>> opened = Status(StatusCode::kInternal, "");
  std::thread([&] { opened = EnterAndOpen(path); }).join();  // the thread ends in that namespace
  return opened;
}

void NamespaceSockets::Drain() const {
  std::array<char, 4096> ignored;  // what is cut off is also ignored
  // An overflow (ENOBUFS) is another sign of a change.
  while (::recv(events(), ignored.data(), ignored.size(), MSG_DONTWAIT) >= 0 || errno == ENOBUFS ||
         errno == EINTR) {
  }
}

StatusOr<bool> NamespaceSockets::TakeAnswer(uint16_t type, LinkTable& table) const {
  Question question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = type;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  if (::send(questions_.get(), &question, sizeof question, 0) < 0) {
    return SystemError(StatusCode::kUnavailable, "ask for network interfaces", errno);
  }
  std::string datagram(kDatagramBytes, '\0');
  bool whole = true;
  for (;;) {
    const ssize_t size = ::recv(questions_.get(), datagram.data(), datagram.size(), 0);
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      return SystemError(StatusCode::kUnavailable, "read network interfaces", errno);
    }
    for (const NetlinkMessage& message :
         SplitMessages({datagram.data(), static_cast<std::size_t>(size)})) {
      whole = whole && !IsInterrupted(message);
      if (message.type == NLMSG_DONE) {
        return whole;
      }
      if (message.type == NLMSG_ERROR) {
        return ErrorOf(message);
      }
      table.Take(message);
    }
  }
}

Status NamespaceSockets::Dump(uint16_t type, LinkTable& table) const {
  for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
    LinkTable now = table;
    QRM_ASSIGN_OR_RETURN(const bool whole, TakeAnswer(type, now));
    if (whole) {
      table = std::move(now);
      return OkStatus();
    }
  }
  return SystemError(StatusCode::kUnavailable, "list network interfaces while they change", EAGAIN);
}

StatusOr<std::map<std::string, InterfaceFacts>> NamespaceSockets::Read() const {
  LinkTable table;
  QRM_RETURN_IF_ERROR(Dump(RTM_GETLINK, table));
  QRM_RETURN_IF_ERROR(Dump(RTM_GETADDR, table));
  std::map<std::string, InterfaceFacts> interfaces;
  for (auto& [index, link] : table.links()) {
    link.facts.speed_mbps = SpeedOf(link.name);
    link.facts.node = NodeOfDevice(link.bus, link.device);
    interfaces[link.name] = std::move(link.facts);
  }
  return interfaces;
}

/// Not from /sys/class/net, which only shows the namespace in which it was mounted.
uint64_t NamespaceSockets::SpeedOf(const std::string& interface) const {
  // The first answer has the number of words of the masks of modes, which follow the settings:
  // three masks of up to 127 words.
  constexpr std::size_t kMasksBytes = std::size_t{3} * 127 * sizeof(uint32_t);
  alignas(ethtool_link_settings) std::array<std::byte, sizeof(ethtool_link_settings) + kMasksBytes>
      answer = {};
  auto* const settings = new (answer.data()) ethtool_link_settings{};
  ifreq request = {};
  if (interface.empty() || interface.size() >= sizeof request.ifr_name) {
    return 0;
  }
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  request.ifr_data = reinterpret_cast<char*>(answer.data());
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  if (::ioctl(questions_.get(), SIOCETHTOOL, &request) != 0 ||
      settings->link_mode_masks_nwords >= 0) {
    return 0;
  }
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  settings->link_mode_masks_nwords = static_cast<int8_t>(-settings->link_mode_masks_nwords);
  if (::ioctl(questions_.get(), SIOCETHTOOL, &request) != 0 ||
      settings->speed == static_cast<uint32_t>(SPEED_UNKNOWN)) {
    return 0;
  }
  return settings->speed;
}

std::optional<int> NodeOfDevice(const std::string& bus, const std::string& device,
                                const std::string& sysfs_root) {
  namespace fs = std::filesystem;
  if (bus.empty() || device.empty()) {
    return std::nullopt;
  }
  std::error_code error;
  const fs::path root = fs::canonical(sysfs_root, error);
  // A virtio device is on the node of the PCI device above it.
  for (fs::path at = fs::canonical(root / "bus" / bus / "devices" / device, error);
       !error && at != root && at.has_relative_path(); at = at.parent_path()) {
    int node = -1;
    if (std::ifstream(at / "numa_node") >> node; node >= 0) {
      return node;
    }
  }
  return std::nullopt;
}

}  // namespace qrm::nic
