// Compares pods and holdings by all that placing reads of them.
#include "scheduler/topology/numa_verdicts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace qrm::scheduler {
namespace {

bool AskTheSame(const Pod& a, const Pod& b) {
  return a.pod_namespace == b.pod_namespace && a.qos_class == b.qos_class &&
         a.runtime_class == b.runtime_class && a.controller_kind == b.controller_kind &&
         a.priority_class == b.priority_class && a.containers == b.containers &&
         a.labels == b.labels && a.annotations == b.annotations;
}

std::string TenantText(const rules::Tenant& tenant) {
  return fmt::format("{} {} {}", tenant.role, tenant.share.anyone ? "any" : "some",
                     fmt::join(tenant.share.roles, " "));
}

std::string BindingText(const memory::Binding& binding) {
  std::string text = TenantText(binding.tenant);
  for (const auto& [node, bytes] : binding.bytes_by_node) {
    text += fmt::format(",{}:{}", node, bytes);
  }
  for (const MemoryBlock& block : binding.blocks) {
    text += fmt::format(";{}:{}:{}", ToString(block.nodes), block.type, block.bytes);
  }
  return text;
}

/// Equal for holdings that differ in whose they are only: a pod that has nothing there can share
/// and reuse with none of them in particular. What the containers of one pod use of pools and NICs
/// does not simply add up.
std::string ShapeOf(const placement::NodeHoldings& holdings) {
  std::vector<std::string> parts;
  parts.reserve(holdings.cpu.exclusive.size() + holdings.cpu.shared.size() +
                holdings.memory.size() + holdings.nic.uses().size());
  for (const auto& [key, holding] : holdings.cpu.exclusive) {
    parts.push_back(fmt::format("c {} {}", ToString(holding.cpus), TenantText(holding.tenant)));
  }
  for (const auto& [key, binding] : holdings.memory) {
    parts.push_back("m " + BindingText(binding));
  }
  std::map<std::string, std::vector<std::string>> by_pod;
  for (const auto& [key, guest] : holdings.cpu.shared) {
    by_pod[key.pod_uid].push_back(
        fmt::format("p {} {} {}", guest.pool, guest.milli_cpus, ToString(guest.type)));
  }
  for (const auto& [key, use] : holdings.nic.uses()) {
    by_pod[key.pod_uid].push_back(fmt::format("n {} {} {} {}", use.nic.netns, use.nic.interface,
                                              use.mbps, ToString(use.type)));
  }
  for (auto& [uid, of_pod] : by_pod) {
    std::sort(of_pod.begin(), of_pod.end());
    parts.push_back(fmt::format("{}", fmt::join(of_pod, ";")));
  }
  std::sort(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

Question Questions::Of(const Pod& pod) {
  const MutexLock lock(mutex_);
  for (const Question& question : latest_) {
    if (AskTheSame(*question, pod)) {
      return question;
    }
  }
  latest_.insert(latest_.begin(), std::make_shared<const Pod>(pod));
  if (latest_.size() > kKept) {
    latest_.pop_back();
  }
  return latest_.front();
}

Verdict Verdicts::Of(const Question& question, const std::function<Verdict()>& judge) {
  {
    const MutexLock lock(mutex_);
    for (const Said& said : latest_) {
      if (said.question == question) {
        return said.verdict;
      }
    }
  }
  Verdict verdict = judge();
  const MutexLock lock(mutex_);
  latest_.insert(latest_.begin(), {question, verdict});
  if (latest_.size() > Questions::kKept) {
    latest_.pop_back();
  }
  return verdict;
}

std::shared_ptr<Verdicts> VerdictsByHoldings::Of(const placement::NodeHoldings& holdings) {
  std::string shape = ShapeOf(holdings);
  const MutexLock lock(mutex_);
  if (by_shape_.size() >= sweep_at_) {
    std::erase_if(by_shape_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * by_shape_.size());
  }
  std::weak_ptr<Verdicts>& place = by_shape_[std::move(shape)];
  std::shared_ptr<Verdicts> verdicts = place.lock();
  if (verdicts == nullptr) {
    verdicts = std::make_shared<Verdicts>();
    place = verdicts;
  }
  return verdicts;
}

}  // namespace qrm::scheduler
