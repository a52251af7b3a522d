// Lists the keys.
#include "scheduler/extender/serve_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/section.h"
#include "api/http/http_address.h"

namespace qrm::scheduler {
namespace {

using config::ConfigKey;

std::vector<ConfigKey> AddressKeys(ServeOptions& options) {
  return {
      HttpAddressKey("address", options.address,
                     "The address for kube-scheduler: its extender's urlPrefix. Every client that "
                     "reaches it can bind pods, so an address other than a loopback address needs "
                     "client-ca-file. /dump is served here, too."),
      config::TextKey("certificate-file", options.certificate_file, "path; empty: without TLS",
                      "The certificate chain of that address, in PEM. Read again when it changes."),
      config::TextKey("key-file", options.key_file, "path", "Its private key, in PEM."),
      config::TextKey("client-ca-file", options.client_ca_file,
                      "path; empty: clients need no certificate",
                      "The authority, in PEM, that signed the certificate of kube-scheduler's "
                      "extender configuration (tlsConfig)."),
      HttpAddressKey("monitor-address", options.monitor_address,
                     "Where /metrics, /healthz and /readyz are served."),
  };
}

std::vector<std::string> TypesOf(const ServeOptions& options) {
  std::vector<std::string> types;
  for (const auto& [type, factory] : options.factories) {
    types.push_back(type);
  }
  return types;
}

StatusOr<WhenUnknown> ParseWhenUnknown(std::string_view word) {
  if (word != "filter" && word != "pass") {
    return Errorf(StatusCode::kInvalidArgument, "cannot read '{}'; write filter or pass", word);
  }
  return word == "filter" ? WhenUnknown::kFilter : WhenUnknown::kPass;
}

ConfigKey WhenUnknownKey(std::string name, WhenUnknown& place, std::string help) {
  return config::ChoiceKey<WhenUnknown>(
      std::move(name), place,
      {.what = "verdict", .words = {"filter", "pass"}, .parse = ParseWhenUnknown}, std::move(help));
}

std::vector<ConfigKey> ResourceKeys(ServeOptions& options) {
  return {
      config::WordsKey("resources", options.resources,
                       config::EnumerateWords(TypesOf(options), "or"),
                       "The extended resources that the filter checks. Each needs its custom "
                       "resource to exist, except numa and classes, which nodes report by "
                       "annotations."),
      {.name = "options",
       .shape = config::KeyShape::kMapping,
       .range = "a mapping for each resource that has options",
       .help = "Options of the resources, by their names.",
       .read = [&options](const config::Section& section, const std::string& name) -> Status {
         QRM_ASSIGN_OR_RETURN(const auto sections, section.Children(name));
         for (const auto& [type, given] : sections) {
           options.handle_options[type] = given.OneLine();
         }
         return OkStatus();
       },
       .show = [] { return std::string("{}"); }},
      WhenUnknownKey("unknown", options.unknown,
                     "How nodes that have not reported a resource judge the pods that request it: "
                     "filter rejects them, pass does not."),
      config::DurationKey("published-within", options.published_within, {"1m", "24h"},
                          "When a node's qrmd has given no sign of life for so long (its key "
                          "publish-heartbeat), pods that request what it publishes are judged as "
                          "`unknown` says."),
      WhenUnknownKey("failing", options.failing,
                     "How nodes are judged by a resource whose code fails, or does not return "
                     "within call-timeout: filter rejects all pods, pass leaves the resource out."),
      config::SwitchKey("preemption", options.preemption,
                        "Whether to end pods of less priority where only an extended resource is "
                        "short. kube-scheduler finds no victims there. Disruption budgets are not "
                        "respected."),
  };
}

std::vector<ConfigKey> ClusterKeys(ServeOptions& options) {
  return {
      config::TextKey("kubeconfig", options.kubeconfig, "path; empty: the pod's service account",
                      "The kubeconfig file for the API server."),
      config::TextKey("context", options.context, "name; empty: the current one",
                      "The context of the kubeconfig."),
      config::TextKey("lease-name", options.lease_name, "name; empty: no lease",
                      "The Lease: only its holder binds pods. Leave it empty only if never two "
                      "processes run at once, not even during an update."),
      config::TextKey("lease-namespace", options.lease_namespace,
                      "name; empty: the account's namespace", "The namespace of the Lease."),
  };
}

std::vector<ConfigKey> TimeKeys(ServeOptions& options) {
  return {
      config::DurationKey("call-timeout", options.call_timeout, {"10ms", "60s"},
                          "The deadline of a filter, prioritize or preempt call. After it, the "
                          "answer is an error, and kube-scheduler tries again. Must be less than "
                          "the extender's httpTimeout."),
      config::DurationKey("bind-timeout", options.bind_timeout, {"100ms", "60s"},
                          "How long a bind call waits for the API server. Must be less than the "
                          "extender's httpTimeout."),
      config::DurationKey("stale-after", options.stale_after, {"1s", "10m"},
                          "How long the watch of pods, nodes or custom resources may be broken "
                          "before calls are answered with an error."),
      config::ChoiceKey<log::Level>("log-level", options.log_level,
                                    {.what = "level",
                                     .words = {"debug", "info", "warning", "error"},
                                     .parse = log::ParseLevel},
                                    "The level of the log."),
  };
}

}  // namespace

std::vector<ConfigKey> ServeKeys(ServeOptions& options) {
  std::vector<ConfigKey> keys = AddressKeys(options);
  for (auto more : {ResourceKeys(options), ClusterKeys(options), TimeKeys(options)}) {
    std::move(more.begin(), more.end(), std::back_inserter(keys));
  }
  return keys;
}

Status CheckServe(const ServeOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot serve TLS with one file of two; set both certificate-file and key-file, "
                  "or none");
  }
  if (!options.client_ca_file.empty() && options.certificate_file.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot ask for certificates without TLS; set certificate-file and key-file "
                  "beside client-ca-file");
  }
  QRM_ASSIGN_OR_RETURN(const HttpAddress address, ParseHttpAddress(options.address));
  if (!IsLoopback(address) && options.client_ca_file.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot serve on {}: every client that reaches it could bind pods; set "
                  "client-ca-file, or an address such as 127.0.0.1:9755",
                  options.address);
  }
  const std::vector<std::string> known = TypesOf(options);
  for (const std::string& resource : options.resources) {
    if (std::find(known.begin(), known.end(), resource) == known.end()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot judge by resource '{}': it is not known; write {}", resource,
                    config::EnumerateWords(known, "or"));
    }
  }
  for (const auto& [type, given] : options.handle_options) {
    if (std::find(options.resources.begin(), options.resources.end(), type) ==
        options.resources.end()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot take options of '{}': it is none of the resources; add it to "
                    "resources, or leave its options out",
                    type);
    }
  }
  return HandlesOf(options)().status();
}

MakeHandles HandlesOf(const ServeOptions& options) {
  return [&options]() -> StatusOr<HandleRegistry> {
    HandleRegistry handles;
    handles.guard().unknown = options.unknown;
    handles.guard().published_within = options.published_within;
    handles.guard().failing = options.failing;
    for (const std::string& type : options.resources) {
      Handle& handle = handles.Register(type, options.factories.at(type));
      const auto given = options.handle_options.find(type);
      QRM_ASSIGN_OR_RETURN(
          const config::Section section,
          config::Section::Parse(given == options.handle_options.end() ? "" : given->second,
                                 "options." + type));
      QRM_RETURN_IF_ERROR(handle.Configure(section));
    }
    return handles;
  };
}

}  // namespace qrm::scheduler
