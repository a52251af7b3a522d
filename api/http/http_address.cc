// Parses the addresses, so that an unusable address is rejected with the configuration.
#include "api/http/http_address.h"

#include <optional>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "api/base/section.h"

namespace qrm {
namespace {

constexpr char kForm[] = "`:PORT`, `IP:PORT` or `[IPv6]:PORT`; empty: off";

/// "::1" of "[::1]"; nothing for an IPv6 address without brackets, whose port would be ambiguous.
std::optional<std::string> HostIn(const std::string& text) {
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  std::string host = bracketed ? text.substr(1, text.size() - 2) : text;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  if (host.empty() || (!error && address.is_v6() == bracketed)) {
    return host;
  }
  return std::nullopt;
}

}  // namespace

StatusOr<HttpAddress> ParseHttpAddress(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon != std::string::npos) {
    const std::optional<std::string> host = HostIn(text.substr(0, colon));
    const auto port = ParseNumber<uint16_t>(text.substr(colon + 1));
    if (host.has_value() && port.has_value()) {
      return HttpAddress{.host = *host, .port = *port};
    }
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot serve HTTP on \"{}\": it is not an address; write it like :9753, "
                "127.0.0.1:9753 or [::1]:9753",
                text);
}

config::ConfigKey HttpAddressKey(std::string name, std::string& place, std::string help) {
  config::ConfigKey address = config::TextKey(std::move(name), place, kForm, std::move(help));
  address.read = [&place](const config::Section& section, const std::string& key) -> Status {
    QRM_ASSIGN_OR_RETURN(place, section.Text(key, ""));
    if (!place.empty() && !ParseHttpAddress(place).ok()) {
      return section.Error(key, fmt::format("is '{}', which is not an address to listen at", place),
                           "write one such as :9753, 127.0.0.1:9753 or \"[::1]:9753\"");
    }
    return OkStatus();
  };
  return address;
}

bool IsLoopback(const HttpAddress& address) {
  boost::system::error_code error;
  return !address.host.empty() && boost::asio::ip::make_address(address.host, error).is_loopback();
}

std::string NameInHost(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  std::string name = has_port ? host.substr(0, colon) : host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  return name;
}

bool IsLocalName(const std::string& name) {
  boost::system::error_code error;
  boost::asio::ip::make_address(name, error);
  return name == "localhost" || !error;
}

}  // namespace qrm
