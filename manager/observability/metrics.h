// Metrics that are counted when something happens; node_collector.h has those that are read
// at each scrape. Names are qrm_<noun>_<unit>; the pod-resources API keeps kubelet's names.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "api/base/durations.h"

namespace prometheus {
class Counter;
class Histogram;
class Registry;
template <typename T>
class Family;
}  // namespace prometheus

namespace qrm::manager {

struct AdmissionEvent;
struct NriAnswer;

/// Decisions about containers that are being created.
class AdmissionMetrics {
 public:
  explicit AdmissionMetrics(prometheus::Registry& registry);

  /// Counts one decision; the shape of an AdmissionListener. Threads: any.
  void Record(const AdmissionEvent& event);

 private:
  prometheus::Histogram& duration_seconds_;  // of admissions and rejections
  prometheus::Counter& admitted_total_;
  prometheus::Counter& repeated_total_;
  prometheus::Counter& skipped_total_;
  prometheus::Counter& rejected_total_;
  prometheus::Family<prometheus::Counter>& rejections_by_resource_;
  prometheus::Family<prometheus::Counter>& ignored_keys_;
};

/// Calls to plugins, by the plugin's resource.
class PluginMetrics {
 public:
  explicit PluginMetrics(prometheus::Registry& registry);
  ~PluginMetrics();
  PluginMetrics(const PluginMetrics&) = delete;
  PluginMetrics& operator=(const PluginMetrics&) = delete;

  /// Counts one call; `method` as in the API: "Allocate". Threads: any.
  void Record(const std::string& resource, const std::string& method, std::chrono::nanoseconds took,
              bool ok);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// NRI calls. The runtime waits for their answers, so they delay every container on the node.
class NriMetrics {
 public:
  explicit NriMetrics(prometheus::Registry& registry);

  /// Counts one answer; the shape of NriOptions::on_answer. Threads: any.
  void Record(const NriAnswer& answer);

 private:
  prometheus::Family<prometheus::Histogram>& answer_seconds_;
  prometheus::Family<prometheus::Counter>& undecided_total_;
};

/// Writes and repairs of the checkpoint.
struct StoreMetrics {
  explicit StoreMetrics(prometheus::Registry& registry);

  /// Counts one write, after which there were `repairs` since the start. Threads: one at a time.
  void Record(std::chrono::nanoseconds took, bool ok, std::size_t repairs);

  prometheus::Histogram& commit_seconds;
  prometheus::Counter& commit_errors_total;
  prometheus::Counter& repairs_total;
  std::size_t counted_repairs = 0;
};

/// One version of the pod-resources API. Source: kubelet's metrics of the same names.
struct PodResourcesVersionMetrics {
  PodResourcesVersionMetrics(prometheus::Registry& registry, const std::string& version);

  struct Method {
    prometheus::Counter& requests;
    prometheus::Counter& errors;
  };
  prometheus::Counter& requests_total;
  Method list;
  Method get_allocatable;
  Method get;
};

/// Requests to the pod-resources socket.
struct PodResourcesMetrics {
  explicit PodResourcesMetrics(prometheus::Registry& registry);

  PodResourcesVersionMetrics v1;
  PodResourcesVersionMetrics v1alpha1;
  prometheus::Counter& rate_limited_total;    ///< not counted as requests
  prometheus::Counter& kubelet_errors_total;  ///< calls that kubelet's own socket failed
  prometheus::Family<prometheus::Counter>& allocatable_errors_total;  ///< by resource
  prometheus::Family<prometheus::Counter>& placement_errors_total;    ///< by resource
};

/// Reloads of the configuration file while qrmd runs.
struct ReloadMetrics {
  explicit ReloadMetrics(prometheus::Registry& registry);

  prometheus::Counter& accepted_total;
  prometheus::Counter& refused_total;
};

/// All metrics of this file, on one registry.
struct Metrics {
  Metrics();

  std::shared_ptr<prometheus::Registry> registry;  ///< served as /metrics
  AdmissionMetrics admission;
  NriMetrics nri;
  PluginMetrics plugins;
  StoreMetrics store;
  PodResourcesMetrics pod_resources;
  ReloadMetrics reloads;
};

}  // namespace qrm::manager
