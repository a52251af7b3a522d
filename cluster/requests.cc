// Writes the bodies as JSON.
#include "cluster/requests.h"

#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/foreign_text.h"

namespace qrm::cluster {
namespace {

using nlohmann::json;

std::string SecondTime(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

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

std::string PodPath(const std::string& pod_namespace, const std::string& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", PercentEncoded(pod_namespace),
                     PercentEncoded(pod));
}

ApiRequest BindRequest(const Binding& binding) {
  const json body = {
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata",
       {{"name", binding.pod}, {"uid", binding.uid}, {"annotations", binding.annotations}}},
      {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", binding.node}}}};
  return {.method = "POST",
          .path = PodPath(binding.pod_namespace, binding.pod) + "/binding",
          .body = Written(body)};
}

ApiRequest MergePatchRequest(const std::string& path, const json& patch) {
  return {.method = "PATCH",
          .path = path,
          .content_type = "application/merge-patch+json",
          .body = Written(patch)};
}

// JSON is YAML, and the only content type that servers before 1.33 take for it says YAML.
ApiRequest ApplyRequest(const std::string& path, const json& object, const std::string& manager) {
  return {.method = "PATCH",
          .path = path + "?force=true&fieldManager=" + PercentEncoded(manager),
          .content_type = "application/apply-patch+yaml",
          .body = Written(object)};
}

ApiRequest WarningRequest(const PodWarning& warning) {
  constexpr std::size_t kMostMessageBytes = 1024;  // more is rejected
  constexpr std::size_t kMostMarkBytes = 40;       // of what is put behind it
  const json body = {{"apiVersion", "v1"},
                     {"kind", "Event"},
                     {"metadata", {{"name", warning.name}, {"namespace", warning.pod_namespace}}},
                     {"involvedObject",
                      {{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"namespace", warning.pod_namespace},
                       {"name", warning.pod_name},
                       {"uid", warning.pod_uid}}},
                     {"reason", warning.reason},
                     {"message", Cut(warning.message, kMostMessageBytes - kMostMarkBytes)},
                     {"source", {{"component", warning.component}, {"host", warning.host}}},
                     {"type", "Warning"},
                     {"count", warning.count},
                     {"firstTimestamp", SecondTime(warning.first)},
                     {"lastTimestamp", SecondTime(warning.last)}};
  return ApplyRequest(
      fmt::format("/api/v1/namespaces/{}/events/{}", PercentEncoded(warning.pod_namespace),
                  PercentEncoded(warning.name)),
      body, warning.component);
}

std::string MicroTime(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(time - seconds).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), micros);
}

}  // namespace qrm::cluster
