// Defines the metrics' names, help texts and labels.
#include "manager/observability/metrics.h"

#include <map>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "api/base/mutex.h"
#include "manager/admission/explanation.h"
#include "manager/runtime/nri/nri_answer.h"

namespace qrm::manager {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Histogram;
using prometheus::Registry;

const Histogram::BucketBoundaries kSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                              0.05,   0.1,   0.25,   0.5,   1,    2.5};

/// Has a bucket for each limit on answers: 20 ms and 100 ms for most answers, and the admission
/// deadline for all of them.
const Histogram::BucketBoundaries kAnswerSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02,
                                                    0.05,   0.1,   0.25,   0.5,   1.2,  1.5};

Histogram& AddHistogram(Registry& registry, const std::string& name, const std::string& help) {
  return BuildHistogram().Name(name).Help(help).Register(registry).Add({}, kSeconds);
}

Counter& AddCounter(Registry& registry, const std::string& name, const std::string& help,
                    const prometheus::Labels& labels = {}) {
  return BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}

Counter& AddAdmissionResult(Registry& registry, const std::string& result) {
  return AddCounter(registry, "qrm_admissions_total", "Containers decided, by result.",
                    {{"result", result}});
}

Counter& AddReloadResult(Registry& registry, const std::string& result) {
  return AddCounter(registry, "qrm_config_reloads_total",
                    "Reloads of the configuration while qrmd runs, by result.",
                    {{"result", result}});
}

Counter& AddPodResources(Registry& registry, const std::string& name, const std::string& help,
                         const std::string& version) {
  return AddCounter(registry, "pod_resources_endpoint_" + name, help,
                    {{"server_api_version", version}});
}

PodResourcesVersionMetrics::Method AddMethod(Registry& registry, const std::string& suffix,
                                             const std::string& method,
                                             const std::string& version) {
  return {
      .requests = AddPodResources(registry, "requests_" + suffix,
                                  "Requests to " + method + " of the pod-resources API.", version),
      .errors = AddPodResources(registry, "errors_" + suffix,
                                "Requests to " + method + " that ended in an error.", version)};
}

}  // namespace

AdmissionMetrics::AdmissionMetrics(Registry& registry)
    : duration_seconds_(AddHistogram(registry, "qrm_admission_duration_seconds",
                                     "Time from the start of a decision to its durable answer.")),
      admitted_total_(AddAdmissionResult(registry, "admitted")),
      repeated_total_(AddAdmissionResult(registry, "repeated")),
      skipped_total_(AddAdmissionResult(registry, "skipped")),
      rejected_total_(AddAdmissionResult(registry, "rejected")),
      rejections_by_resource_(
          BuildCounter()
              .Name("qrm_admission_rejections_total")
              .Help("Rejected containers, by the resource whose plugin rejected or failed, and by "
                    "reason.")
              .Register(registry)),
      ignored_keys_(BuildCounter()
                        .Name("qrm_ignored_annotation_keys_total")
                        .Help("Keys of QoS annotations of admitted containers that have no effect, "
                              "by key.")
                        .Register(registry)) {}

void AdmissionMetrics::Record(const AdmissionEvent& event) {
  const double seconds = std::chrono::duration<double>(event.took).count();
  for (const std::string_view key : event.ignored_keys) {
    ignored_keys_.Add({{"key", std::string(key)}}).Increment();
  }
  switch (event.result) {
    case AdmissionEvent::Result::kAdmitted:
      admitted_total_.Increment();
      duration_seconds_.Observe(seconds);
      break;
    case AdmissionEvent::Result::kRepeated:
      repeated_total_.Increment();
      break;
    case AdmissionEvent::Result::kSkipped:
      skipped_total_.Increment();
      break;
    case AdmissionEvent::Result::kRejected:
      rejected_total_.Increment();
      duration_seconds_.Observe(seconds);
      rejections_by_resource_
          .Add({{"resource", event.resource}, {"reason", std::string(event.reason)}})
          .Increment();
      break;
  }
}

struct PluginMetrics::Impl {
  struct Call {
    prometheus::Histogram& seconds;
    prometheus::Counter& errors;
  };
  Call& Find(const std::string& resource, const std::string& method);

  prometheus::Family<prometheus::Histogram>& call_seconds;
  prometheus::Family<prometheus::Counter>& call_errors;
  Mutex mutex;
  /// The families' metrics by resource and method; avoids building label maps for each call.
  std::map<std::pair<std::string, std::string>, Call> calls QRM_GUARDED_BY(mutex);
};

PluginMetrics::PluginMetrics(Registry& registry)
    : impl_(new Impl{BuildHistogram()
                         .Name("qrm_plugin_call_duration_seconds")
                         .Help("Time that a plugin took to answer, by resource and method.")
                         .Register(registry),
                     BuildCounter()
                         .Name("qrm_plugin_call_errors_total")
                         .Help("Calls to a plugin that failed or missed their deadline.")
                         .Register(registry)}) {}

PluginMetrics::~PluginMetrics() = default;

PluginMetrics::Impl::Call& PluginMetrics::Impl::Find(const std::string& resource,
                                                     const std::string& method) {
  const MutexLock lock(mutex);
  const auto key = std::make_pair(resource, method);
  const auto known = calls.find(key);
  if (known != calls.end()) {
    return known->second;
  }
  const prometheus::Labels labels = {{"resource", resource}, {"method", method}};
  const Call call{.seconds = call_seconds.Add(labels, kSeconds), .errors = call_errors.Add(labels)};
  return calls.emplace(key, call).first->second;
}

void PluginMetrics::Record(const std::string& resource, const std::string& method,
                           std::chrono::nanoseconds took, bool ok) {
  Impl::Call& call = impl_->Find(resource, method);
  call.seconds.Observe(std::chrono::duration<double>(took).count());
  if (!ok) {
    call.errors.Increment();
  }
}

NriMetrics::NriMetrics(Registry& registry)
    : answer_seconds_(BuildHistogram()
                          .Name("qrm_nri_answer_duration_seconds")
                          .Help("Time that the runtime waited for qrmd's answer, by NRI call.")
                          .Register(registry)),
      undecided_total_(BuildCounter()
                           .Name("qrm_nri_undecided_total")
                           .Help("NRI calls answered without a decision because their time was "
                                 "over.")
                           .Register(registry)) {}

void NriMetrics::Record(const NriAnswer& answer) {
  const prometheus::Labels labels = {{"call", answer.call}};
  answer_seconds_.Add(labels, kAnswerSeconds)
      .Observe(std::chrono::duration<double>(answer.took).count());
  if (!answer.decided) {
    undecided_total_.Add(labels).Increment();
  }
}

StoreMetrics::StoreMetrics(Registry& registry)
    : commit_seconds(AddHistogram(registry, "qrm_checkpoint_commit_duration_seconds",
                                  "Time to make one change durable.")),
      commit_errors_total(AddCounter(registry, "qrm_checkpoint_commit_errors_total",
                                     "Changes that the disk did not accept.")),
      repairs_total(AddCounter(registry, "qrm_checkpoint_repairs_total",
                               "Repairs of a damaged, foreign or missing database.")) {}

void StoreMetrics::Record(std::chrono::nanoseconds took, bool ok, std::size_t repairs) {
  commit_seconds.Observe(std::chrono::duration<double>(took).count());
  if (!ok) {
    commit_errors_total.Increment();
  }
  repairs_total.Increment(static_cast<double>(repairs - std::exchange(counted_repairs, repairs)));
}

PodResourcesVersionMetrics::PodResourcesVersionMetrics(Registry& registry,
                                                       const std::string& version)
    : requests_total(AddPodResources(registry, "requests_total",
                                     "Requests to the pod-resources API.", version)),
      list(AddMethod(registry, "list", "List", version)),
      get_allocatable(AddMethod(registry, "get_allocatable", "GetAllocatableResources", version)),
      get(AddMethod(registry, "get", "Get", version)) {}

PodResourcesMetrics::PodResourcesMetrics(Registry& registry)
    : v1(registry, "v1"),
      v1alpha1(registry, "v1alpha1"),
      rate_limited_total(AddCounter(registry, "qrm_pod_resources_rate_limited_total",
                                    "Requests rejected because their sender was too fast.")),
      kubelet_errors_total(AddCounter(registry, "qrm_kubelet_pod_resources_errors_total",
                                      "Calls to kubelet's own pod-resources socket that failed.")),
      allocatable_errors_total(
          BuildCounter()
              .Name("qrm_allocatable_errors_total")
              .Help("Failures to report a plugin's allocatable resources, by resource.")
              .Register(registry)),
      placement_errors_total(
          BuildCounter()
              .Name("qrm_placement_errors_total")
              .Help("Failures to report a container's allocation by NUMA node, by resource.")
              .Register(registry)) {}

ReloadMetrics::ReloadMetrics(Registry& registry)
    : accepted_total(AddReloadResult(registry, "accepted")),
      refused_total(AddReloadResult(registry, "refused")) {}

Metrics::Metrics()
    : registry(std::make_shared<Registry>()),
      admission(*registry),
      nri(*registry),
      plugins(*registry),
      store(*registry),
      pod_resources(*registry),
      reloads(*registry) {}

}  // namespace qrm::manager
