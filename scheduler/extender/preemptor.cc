// Nominates first, so that pods of less priority do not take what becomes free.
#include "scheduler/extender/preemptor.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/log.h"
#include "cluster/requests.h"

namespace qrm::scheduler {
namespace {

using Victims = std::vector<PodPtr>;

/// Victims are in the order of their priority, the highest first.
bool IsBetter(const Victims& a, const Victims& b) {
  return std::pair(a.front()->priority, a.size()) < std::pair(b.front()->priority, b.size());
}

}  // namespace

void Preemptor::Preempt(const Pod& pod, const std::vector<std::string>& nodes) {
  std::string best;
  Victims victims;
  peers_.cache.Run([&](ClusterCache& now) {
    for (const std::string& node : nodes) {
      std::optional<Victims> there = now.VictimsOn(pod, node);
      if (there.has_value() && there->empty()) {
        best.clear();
        return;
      }
      if (there.has_value() && (best.empty() || IsBetter(*there, victims))) {
        best = node;
        victims = *std::move(there);
      }
    }
  });
  if (best.empty()) {
    return;
  }
  const nlohmann::json nomination = {{"metadata", {{"uid", pod.uid}}},
                                     {"status", {{"nominatedNodeName", best}}}};
  peers_.client.Call(
      cluster::MergePatchRequest(cluster::PodPath(pod.pod_namespace, pod.name) + "/status",
                                 nomination),
      [weak = weak_from_this(), name = pod.pod_namespace + "/" + pod.name, best,
       victims](const StatusOr<std::string>& answer) {
        const auto self = weak.lock();
        if (self == nullptr) {
          return;
        }
        if (!answer.ok()) {
          log::Warning("pod not nominated",
                       {{"pod", name}, {"node", best}, {"error", MessageOf(answer.status())}});
          return;
        }
        for (const PodPtr& victim : victims) {
          self->End(*victim, name, best);
        }
      });
}

void Preemptor::End(const Pod& victim, const std::string& pod, const std::string& node) {
  const nlohmann::json options = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", victim.uid}}}};
  peers_.client.Call(
      {.method = "DELETE",
       .path = cluster::PodPath(victim.pod_namespace, victim.name),
       .body = options.dump()},
      [weak = weak_from_this(), name = victim.pod_namespace + "/" + victim.name, pod,
       node](const StatusOr<std::string>& answer) {
        const auto self = weak.lock();
        if (self == nullptr) {
          return;
        }
        self->peers_.metrics.CountPreempted(answer.ok());
        if (answer.ok()) {
          log::Info("pod preempted", {{"victim", name}, {"for", pod}, {"node", node}});
        } else {
          log::Warning("pod not preempted",
                       {{"victim", name}, {"for", pod}, {"error", MessageOf(answer.status())}});
        }
      });
}

}  // namespace qrm::scheduler
