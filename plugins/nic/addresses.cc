// Reads interface addresses from the kernel.
#include "plugins/nic/addresses.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <ifaddrs.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

namespace qrm::nic {
namespace {

std::string TextOf(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const char* const written = inet_ntop(family, address, text.data(), text.size());
  return written == nullptr ? "" : written;
}

/// The text of an AF_INET or AF_INET6 `address`, or "" for a link-local one: it is of no use
/// without the interface.
std::string TextOf(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in ipv4;
    std::memcpy(&ipv4, &address, sizeof ipv4);
    return TextOf(AF_INET, &ipv4.sin_addr);
  }
  sockaddr_in6 ipv6;
  std::memcpy(&ipv6, &address, sizeof ipv6);
  return IN6_IS_ADDR_LINKLOCAL(&ipv6.sin6_addr) ? "" : TextOf(AF_INET6, &ipv6.sin6_addr);
}

void Add(const ifaddrs& entry, AddressesByInterface& addresses) {
  const int family = entry.ifa_addr == nullptr ? AF_UNSPEC : entry.ifa_addr->sa_family;
  if ((entry.ifa_flags & IFF_UP) == 0 || (family != AF_INET && family != AF_INET6)) {
    return;
  }
  InterfaceAddresses& of_interface = addresses[entry.ifa_name];
  std::string& slot = family == AF_INET ? of_interface.ipv4 : of_interface.ipv6;
  if (slot.empty()) {
    slot = TextOf(*entry.ifa_addr);
  }
}

}  // namespace

StatusOr<AddressesByInterface> ReadAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return Errorf(
        StatusCode::kUnavailable,
        "cannot read the addresses of the network interfaces: {}; declare them under nics",
        std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  AddressesByInterface addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    Add(*entry, addresses);
  }
  return addresses;
}

}  // namespace qrm::nic
