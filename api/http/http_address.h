// Where a server listens: the form of addresses and their configuration keys.
#pragma once

#include <cstdint>
#include <string>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm {

/// A place to listen at.
struct HttpAddress {
  std::string host;  ///< an IPv4 or IPv6 address without brackets; empty: all of both kinds
  uint16_t port = 0;
};

/// Reads `:9753`, `127.0.0.1:9753` or `[::1]:9753`. Errors: kInvalidArgument with the form.
StatusOr<HttpAddress> ParseHttpAddress(const std::string& text);

/// A text that is empty or an HttpAddress.
config::ConfigKey HttpAddressKey(std::string name, std::string& place, std::string help);

/// Whether an address is reached from this machine only.
bool IsLoopback(const HttpAddress& address);

/// The name in the Host header of a request, without port and brackets.
std::string NameInHost(const std::string& host);
/// Whether it is "localhost" or an address; other names are rejected to prevent DNS rebinding.
bool IsLocalName(const std::string& name);

}  // namespace qrm
