// Talks to the kernel as ip(8) and ethtool(8) do, which may not be installed.
#include "test/plugins/nic/test_namespace.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <net/if.h>

#include "api/base/errorf.h"
#include "api/base/file_descriptor.h"
#include "test/plugins/nic/netlink_bytes.h"

namespace qrm::test {
namespace {

int ErrorOr0(int result) {
  return result < 0 ? errno : 0;
}

/// Sends the request, and returns what the kernel makes of it.
int Ask(uint16_t type, int flags, const std::string& payload) {
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const std::string request =
      Message(type, static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags), payload);
  if (socket.get() < 0 || ::send(socket.get(), request.data(), request.size(), 0) < 0) {
    return errno;
  }
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char request[1024];
  } answer = {};
  if (::recv(socket.get(), &answer, sizeof answer, 0) < 0) {
    return errno;
  }
  return -answer.error.error;
}

std::string NameAttribute(const std::string& name) {
  return Attribute(IFLA_IFNAME, std::string_view(name.c_str(), name.size() + 1));
}

int AddLink(const std::string& kind, const std::string& name, const std::string& data = "") {
  const std::string info =
      Attribute(IFLA_INFO_KIND, kind) + (data.empty() ? "" : Attribute(IFLA_INFO_DATA, data));
  return Ask(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL,
             BytesOf(ifinfomsg{}) + NameAttribute(name) + Attribute(IFLA_LINKINFO, info));
}

std::string PeerData(const std::string& peer, const std::string& more = "") {
  return Attribute(VETH_INFO_PEER, BytesOf(ifinfomsg{}) + NameAttribute(peer) + more);
}

ifreq RequestFor(const std::string& name) {
  ifreq request = {};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return request;
}

}  // namespace

bool OwnMounts() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

StatusOr<std::unique_ptr<TestNamespace>> TestNamespace::Make(const std::string& path) {
  std::unique_ptr<TestNamespace> made(new TestNamespace(path));
  {
    const FileDescriptor file(::open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0444));
  }
  int error = 0;
  std::thread([&] {
    error = ErrorOr0(::unshare(CLONE_NEWNET));
    if (error == 0) {
      error =
          ErrorOr0(::mount("/proc/thread-self/ns/net", path.c_str(), nullptr, MS_BIND, nullptr));
    }
  }).join();
  if (error != 0) {
    return Errorf(StatusCode::kUnavailable, "cannot make a network namespace: {}; run as root",
                  std::strerror(error));
  }
  return made;
}

void TestNamespace::Remove() {
  ::umount2(path_.c_str(), MNT_DETACH);
  ::unlink(path_.c_str());
}

int TestNamespace::Inside(const std::function<int()>& action) const {
  int error = 0;
  std::thread([&] {
    const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    error = ErrorOr0(::setns(file.get(), CLONE_NEWNET));
    if (error == 0) {
      error = action();
    }
  }).join();
  return error;
}

int TestNamespace::AddVeth(const std::string& name, const std::string& peer) const {
  return Inside([&] { return AddLink("veth", name, PeerData(peer)); });
}

int TestNamespace::AddVethTo(const std::string& name, const TestNamespace& other,
                             const std::string& peer) const {
  const FileDescriptor there(::open(other.path_.c_str(), O_RDONLY | O_CLOEXEC));
  return Inside([&] {
    return AddLink("veth", name,
                   PeerData(peer, Attribute(IFLA_NET_NS_FD, BytesOf(int32_t{there.get()}))));
  });
}

int TestNamespace::AddDummy(const std::string& name) const {
  return Inside([&] { return AddLink("dummy", name); });
}

int TestNamespace::AddTap(const std::string& name) const {
  return Inside([&] {
    const FileDescriptor tun(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    ifreq request = RequestFor(name);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    const int error = ErrorOr0(::ioctl(tun.get(), TUNSETIFF, &request));
    return error != 0 ? error : ErrorOr0(::ioctl(tun.get(), TUNSETPERSIST, 1));
  });
}

int TestNamespace::SetFlags(const std::string& name, unsigned flags) const {
  return Inside([&] {
    ifinfomsg header = {};
    header.ifi_index = static_cast<int>(::if_nametoindex(name.c_str()));
    header.ifi_flags = flags;
    header.ifi_change = IFF_UP;
    return Ask(RTM_NEWLINK, 0, BytesOf(header));
  });
}

int TestNamespace::SetUp(const std::string& name) const {
  return SetFlags(name, IFF_UP);
}

int TestNamespace::SetDown(const std::string& name) const {
  return SetFlags(name, 0);
}

int TestNamespace::ChangeAddress(uint16_t type, uint16_t flags, const std::string& name,
                                 const std::string& ipv4) const {
  return Inside([&] {
    in_addr address = {};
    ifaddrmsg header = {};
    header.ifa_family = AF_INET;
    header.ifa_prefixlen = 32;
    header.ifa_index = ::if_nametoindex(name.c_str());
    if (::inet_pton(AF_INET, ipv4.c_str(), &address) != 1) {
      return EINVAL;
    }
    return Ask(type, flags, BytesOf(header) + Attribute(IFA_LOCAL, BytesOf(address)));
  });
}

int TestNamespace::AddAddress(const std::string& name, const std::string& ipv4) const {
  return ChangeAddress(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, name, ipv4);
}

int TestNamespace::RemoveAddress(const std::string& name, const std::string& ipv4) const {
  return ChangeAddress(RTM_DELADDR, 0, name, ipv4);
}

int TestNamespace::SetSpeed(const std::string& name, uint32_t mbps) const {
  return Inside([&] {
    const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ethtool_cmd command = {};
    command.cmd = ETHTOOL_SSET;
    ethtool_cmd_speed_set(&command, mbps);
    ifreq request = RequestFor(name);
    request.ifr_data = reinterpret_cast<char*>(&command);
    return ErrorOr0(::ioctl(socket.get(), SIOCETHTOOL, &request));
  });
}

int TestNamespace::Delete(const std::string& name) const {
  return Inside([&] {
    ifinfomsg header = {};
    header.ifi_index = static_cast<int>(::if_nametoindex(name.c_str()));
    return Ask(RTM_DELLINK, 0, BytesOf(header));
  });
}

}  // namespace qrm::test
