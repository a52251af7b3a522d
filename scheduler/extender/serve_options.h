// The configuration of `qrm-scheduler serve`: options, their defaults and their keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/log_level.h"
#include "api/base/status.h"
#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

struct ServeOptions {
  std::string address = "127.0.0.1:9755";
  std::string certificate_file;
  std::string key_file;
  std::string client_ca_file;
  std::string monitor_address = ":9756";
  std::string kubeconfig;              ///< empty: the pod's service account
  std::string context;                 ///< empty: its current one
  HandleFactories factories;           ///< what the program has
  std::vector<std::string> resources;  ///< types of them
  StringMap handle_options;            ///< by type, YAML
  WhenUnknown unknown = WhenUnknown::kFilter;
  std::chrono::milliseconds published_within = HandleGuard().published_within;
  WhenUnknown failing = WhenUnknown::kFilter;
  std::string lease_name = "qrm-scheduler";  ///< empty: no other process runs
  std::string lease_namespace;               ///< empty: the account's namespace
  std::chrono::milliseconds call_timeout{500};
  std::chrono::milliseconds bind_timeout{4'000};
  std::chrono::milliseconds stale_after{10'000};
  bool preemption = false;  ///< ends pods, so that only a configuration switches it on
  log::Level log_level = log::Level::kInfo;
};

/// The keys with their places in `options`, which outlives them.
std::vector<config::ConfigKey> ServeKeys(ServeOptions& options);

/// Makes the chosen handles, with their options; the options outlive what it returns. Errors: those
/// of Handle::Configure.
MakeHandles HandlesOf(const ServeOptions& options);

/// Whether the options fit together. Errors: kInvalidArgument for an address that other machines
/// reach without a client certificate, for half of a certificate, and those of the handles.
Status CheckServe(const ServeOptions& options);

}  // namespace qrm::scheduler
