// Compares the answers of the runtime, the kernel and qrmd.
#include "test/e2e/agreement.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

/// A pod's UID, or its namespace and name in one text; and the container's name.
using Key = std::pair<std::string, std::string>;

/// qrmd's values for one container.
struct Reported {
  std::string runtime_id;
  CpuSet cpus;
  NumaMask mems;
  bool exclusive = false;
  Key listed_as;
};

StatusOr<Reported> Read(const v1::Pod& pod, const v1::Container& container) {
  Reported reported{.runtime_id = container.runtime_id(),
                    .listed_as = {pod.namespace_() + "/" + pod.name(), container.name()}};
  for (const v1::Allocation& allocation : container.allocations()) {
    if (allocation.oci_property() == "CpusetCpus") {
      QRM_ASSIGN_OR_RETURN(reported.cpus, CpuSet::Parse(allocation.value()));
      reported.exclusive = allocation.exclusive();
    } else if (allocation.oci_property() == "CpusetMems") {
      QRM_ASSIGN_OR_RETURN(reported.mems, NumaMask::Parse(allocation.value()));
    }
  }
  return reported;
}

StatusOr<std::map<Key, Reported>> ReadAll(const Node& node) {
  QRM_ASSIGN_OR_RETURN(const v1::ListPodsResponse response, node.ListPods());
  std::map<Key, Reported> all;
  for (const v1::Pod& pod : response.pods()) {
    for (const v1::Container& container : pod.containers()) {
      QRM_ASSIGN_OR_RETURN((all[{pod.uid(), container.name()}]), Read(pod, container));
    }
  }
  return all;
}

/// The exclusive CPUs that List reports, by container.
StatusOr<std::map<Key, CpuSet>> ReadList(const Node& node) {
  QRM_ASSIGN_OR_RETURN(const ::v1::ListPodResourcesResponse response, node.ListPodResources());
  std::map<Key, CpuSet> all;
  for (const ::v1::PodResources& pod : response.pod_resources()) {
    for (const ::v1::ContainerResources& container : pod.containers()) {
      CpuSet& cpus = all[{pod.namespace_() + "/" + pod.name(), container.name()}];
      for (const int64_t cpu : container.cpu_ids()) {
        cpus.Add(static_cast<int>(cpu));
      }
    }
  }
  return all;
}

template <typename... Args>
Status Differ(fmt::format_string<Args...> format, Args&&... args) {
  return Errorf(StatusCode::kInternal, format, std::forward<Args>(args)...);
}

Status CompareCgroup(Kubelet& kubelet, const ListedContainer& container, const Reported& reported) {
  QRM_ASSIGN_OR_RETURN(const nlohmann::json info, kubelet.Inspect(container.id));
  QRM_ASSIGN_OR_RETURN(const manager::CgroupCpuset actual,
                       manager::CgroupReader().ReadByPid(info.value("pid", 0U)));
  if (actual.cpus != reported.cpus) {
    return Differ("container {} of pod {} has CPUs {} where qrmd says {}", container.name,
                  container.pod_uid, ToString(actual.cpus), ToString(reported.cpus));
  }
  if (!reported.mems.Empty() && actual.mems != reported.mems) {
    return Differ("container {} of pod {} has memory nodes {} where qrmd says {}", container.name,
                  container.pod_uid, ToString(actual.mems), ToString(reported.mems));
  }
  return OkStatus();
}

Status CompareList(const std::map<Key, CpuSet>& list, const Reported& reported) {
  const auto listed = list.find(reported.listed_as);
  const auto& [pod, container] = reported.listed_as;
  if (listed == list.end()) {
    return Differ("List leaves out container {} of pod {}", container, pod);
  }
  const CpuSet own = reported.exclusive ? reported.cpus : CpuSet();
  if (listed->second != own) {
    return Differ("List gives container {} of pod {} CPUs {} where qrmctl says {}", container, pod,
                  ToString(listed->second), ToString(own));
  }
  return OkStatus();
}

}  // namespace

Status CompareAll(Kubelet& kubelet, const Node& node) {
  QRM_ASSIGN_OR_RETURN(const auto containers, kubelet.ListContainers());
  QRM_ASSIGN_OR_RETURN(const auto reports, ReadAll(node));
  QRM_ASSIGN_OR_RETURN(const auto list, ReadList(node));
  std::set<std::string> ids;
  for (const ListedContainer& container : containers) {
    ids.insert(container.id);
    const auto report = reports.find({container.pod_uid, container.name});
    if (report == reports.end()) {
      return Differ("qrmd does not know container {} of pod {}", container.name, container.pod_uid);
    }
    if (report->second.runtime_id != container.id) {
      return Differ("qrmd takes container {} of pod {} for {} and not {}", container.name,
                    container.pod_uid, report->second.runtime_id, container.id);
    }
    QRM_RETURN_IF_ERROR(CompareList(list, report->second));
    if (container.running) {
      QRM_RETURN_IF_ERROR(CompareCgroup(kubelet, container, report->second));
    }
  }
  for (const auto& [key, report] : reports) {
    if (!report.runtime_id.empty() && !ids.contains(report.runtime_id)) {
      return Differ("qrmd takes container {} of pod {} for {}, which is gone", key.second,
                    key.first, report.runtime_id);
    }
  }
  return OkStatus();
}

Status AwaitAgreement(Kubelet& kubelet, const Node& node, std::chrono::milliseconds limit) {
  Status difference;
  Await(
      [&] {
        difference = CompareAll(kubelet, node);
        return difference.ok();
      },
      limit);
  return difference;
}

}  // namespace qrm::test
