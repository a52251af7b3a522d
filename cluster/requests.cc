// Writes the bodies as JSON.
#include "cluster/requests.h"

#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace qrm::cluster {
namespace {

using nlohmann::json;

std::string Written(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string PercentEncoded(const std::string& text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

ApiRequest BindRequest(const Binding& binding) {
  const json body = {
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata",
       {{"name", binding.pod}, {"uid", binding.uid}, {"annotations", binding.annotations}}},
      {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", binding.node}}}};
  return {.method = "POST",
          .path = fmt::format("/api/v1/namespaces/{}/pods/{}/binding",
                              PercentEncoded(binding.pod_namespace), PercentEncoded(binding.pod)),
          .body = Written(body)};
}

ApiRequest MergePatchRequest(const std::string& path, const json& patch) {
  return {.method = "PATCH",
          .path = path,
          .content_type = "application/merge-patch+json",
          .body = Written(patch)};
}

std::string MicroTime(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(time - seconds).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), micros);
}

}  // namespace qrm::cluster
