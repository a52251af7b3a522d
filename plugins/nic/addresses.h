// The addresses of this network namespace's interfaces.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"

namespace qrm::nic {

/// The addresses that containers may bind to; empty where an interface has none of the family.
struct InterfaceAddresses {
  std::string ipv4;
  std::string ipv6;
};

using AddressesByInterface = std::map<std::string, InterfaceAddresses>;

/// The first address of each family of every interface that is up; link-local ones are left out.
/// Errors: kUnavailable with the system's word. Source: getifaddrs(3).
StatusOr<AddressesByInterface> ReadAddresses();

}  // namespace qrm::nic
