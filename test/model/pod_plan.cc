// Draws pods of all kinds.
#include "test/model/pod_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/proto/core/v1/pod.pb.h"
#include "test/model/model_machine.h"

namespace qrm::test {
namespace {

namespace core = ::k8s::io::api::core::v1;
using Kind = PlannedContainer::Kind;
using Told = PodPlan::Told;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kAboveRequest = 500;  // a limit: else the pod would become a Guaranteed one

int DrawFrom(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
}

PlannedContainer Guaranteed(const std::string& name, int cpus) {
  return {.spec = {.name = name,
                   .milli_cpus = int64_t{cpus} * 1000,
                   .memory_bytes = 64 * kMiB,
                   .cpu_limit = true},
          .baselines = {cpus}};
}

PlannedContainer Sharing(const std::string& name, int milli_cpus, int64_t bytes) {
  return {.spec = {.name = name, .milli_cpus = milli_cpus, .memory_bytes = bytes}};
}

core::ResourceRequirements Resources(const PlannedContainer& container) {
  core::ResourceRequirements resources;
  const auto add = [&](const std::string& name, const std::string& request,
                       const std::string& limit) {
    (*resources.mutable_requests())[name].set_string(request);
    if (!limit.empty()) {
      (*resources.mutable_limits())[name].set_string(limit);
    }
  };
  const ContainerSpec& spec = container.spec;
  if (spec.milli_cpus > 0) {
    const int64_t limit = spec.cpu_limit ? spec.milli_cpus : spec.milli_limit;
    add("cpu", fmt::format("{}m", spec.milli_cpus),
        limit > 0 ? fmt::format("{}m", limit) : std::string());
  }
  if (spec.memory_bytes > 0) {
    const std::string bytes = std::to_string(spec.memory_bytes);
    add("memory", bytes, bytes);
  }
  if (container.nic_mbps > 0) {
    const std::string mbps = std::to_string(container.nic_mbps);
    add(kNicRequest, mbps, mbps);
  }
  return resources;
}

/// The largest of what init containers need, which run one after another before the others, or what
/// these need together: the larger of both.
template <typename Part>
auto AtOnce(const PodPlan& plan, Part part) {
  using Amount = decltype(part(plan.containers[0]));
  Amount largest_init{};
  Amount others{};
  for (const PlannedContainer& container : plan.containers) {
    if (container.kind == Kind::kInit) {
      largest_init = std::max(largest_init, part(container));
    } else {
      others += part(container);
    }
  }
  return std::max(largest_init, others);
}

PodPlan Empty(const std::string& name, int serial) {
  return {.name = name, .uid = fmt::format("uid-{}-{}", serial, name)};
}

Told DrawTold(std::mt19937& random) {
  return random() % 2 == 0 ? Told::kFirst : Told::kNo;
}

}  // namespace

std::set<int> PlannedContainer::own_counts() const {
  std::set<int> counts;
  for (const int baseline : baselines) {
    counts.insert(std::max(baseline, whole_cpus()));
  }
  return counts;
}

bool PodPlan::asks_nothing_special() const {
  return own_cpus() == 0 && bound_bytes() == 0 && nic_mbps() == 0 && !is_pooled();
}

bool PodPlan::is_pooled() const {
  const auto role = labels.find(kRoleLabel);
  return role != labels.end() && role->second == kPoolRole;
}

int PodPlan::own_cpus() const {
  return AtOnce(*this, [](const PlannedContainer& container) {
    return container.owns_cpus() ? *container.own_counts().rbegin() : 0;
  });
}

int64_t PodPlan::bound_bytes() const {
  return AtOnce(*this, [](const PlannedContainer& container) { return container.bound_bytes; });
}

int PodPlan::nic_mbps() const {
  return AtOnce(*this, [this](const PlannedContainer& container) {
    return told == Told::kNo ? 0 : container.nic_mbps;
  });
}

PodSpec PodPlan::SpecFor(const PlannedContainer& container) const {
  return {.name = name, .uid = uid, .labels = labels, .container = container.spec};
}

std::string PodPlan::Message() const {
  core::Pod pod;
  pod.mutable_metadata()->set_uid(uid);
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->mutable_labels()->insert(labels.begin(), labels.end());
  for (const PlannedContainer& container : containers) {
    core::Container& made = container.kind == Kind::kApp
                                ? *pod.mutable_spec()->add_containers()
                                : *pod.mutable_spec()->add_init_containers();
    made.set_name(container.spec.name);
    made.set_restart_policy(container.kind == Kind::kSidecar ? "Always" : "");
    *made.mutable_resources() = Resources(container);
  }
  return pod.SerializeAsString();
}

PodPlan MakeDatabase(const std::string& name, int serial, int cpus, int64_t bytes) {
  PodPlan plan = Empty(name, serial);
  plan.told = Told::kFirst;
  plan.labels[kRoleLabel] = kBoundRole;
  plan.containers = {Guaranteed("main", cpus)};
  plan.containers[0].spec.memory_bytes = bytes;
  plan.containers[0].bound_bytes = bytes;
  return plan;
}

PodPlan MakeNicUser(const std::string& name, int serial, int mbps) {
  PodPlan plan = Empty(name, serial);
  plan.told = Told::kFirst;
  plan.containers = {Sharing("main", 200, 16 * kMiB)};
  plan.containers[0].nic_mbps = mbps;
  return plan;
}

PodPlan MakePlan(PodKind kind, const std::string& name, int serial, std::mt19937& random) {
  if (kind == PodKind::kDatabase || kind == PodKind::kSidecar) {
    PodPlan plan = MakeDatabase(name, serial, DrawFrom(random, 1, 4),
                                int64_t{DrawFrom(random, 1, 12)} * 128 * kMiB);
    if (kind == PodKind::kSidecar) {
      PlannedContainer sidecar = Guaranteed("sidecar", 1);
      sidecar.kind = Kind::kSidecar;
      sidecar.baselines.clear();  // by its pod's role, in the default pool
      plan.containers.insert(plan.containers.begin(), sidecar);
    }
    plan.told = kind == PodKind::kSidecar ? Told::kFirst : DrawTold(random);
    return plan;
  }
  if (kind == PodKind::kNic || kind == PodKind::kNicInit) {
    PodPlan plan = MakeNicUser(name, serial, DrawFrom(random, 1, 6) * 100);
    if (kind == PodKind::kNicInit) {
      plan.containers.insert(plan.containers.begin(), plan.containers[0]);
      plan.containers[0].spec.name = "init";
      plan.containers[0].kind = Kind::kInit;
      plan.containers[0].nic_mbps = DrawFrom(random, 1, 9) * 100;
    } else {
      plan.told = DrawTold(random);
    }
    return plan;
  }
  PodPlan plan = Empty(name, serial);
  plan.told = DrawTold(random);
  if (kind == PodKind::kBestEffort) {
    plan.containers = {Sharing("main", 0, 0)};
  } else if (kind == PodKind::kBurstable) {
    plan.containers = {Sharing("main", DrawFrom(random, 1, 3000), 16 * kMiB)};
  } else if (kind == PodKind::kFraction) {
    plan.containers = {Guaranteed("main", 1)};
    plan.containers[0].spec.milli_cpus = 500 + 1000 * DrawFrom(random, 0, 2);
    plan.containers[0].baselines.clear();
  } else if (kind == PodKind::kPooled) {
    plan.labels[kRoleLabel] = kPoolRole;
    plan.containers = {Sharing("main", DrawFrom(random, 2, 10) * 100, 16 * kMiB)};
    ResizeLimit(plan.containers[0], DrawFrom(random, 1, 4));
  } else {
    plan.containers = {Guaranteed("main", DrawFrom(random, 1, 4))};
  }
  if (kind == PodKind::kInit) {
    PlannedContainer init = Guaranteed("init", DrawFrom(random, 1, 4));
    init.kind = Kind::kInit;
    plan.containers.insert(plan.containers.begin(), init);
  } else if (kind == PodKind::kTwins) {
    plan.containers.push_back(Guaranteed("twin", DrawFrom(random, 1, 3)));
  }
  return plan;
}

PodPlan MakeGrowth(const PodPlan& plan, const PlannedContainer& container, int cpus) {
  PodPlan growth = Empty(plan.name + "-growth", 0);
  growth.labels = plan.labels;
  growth.containers = {Guaranteed(container.spec.name, cpus)};
  return growth;
}

int PoolSizeFor(int64_t milli_limits) {
  return std::clamp(static_cast<int>((milli_limits + 999) / 1000), 1, kMostInPool);
}

void ResizeCpus(PlannedContainer& container, int cpus) {
  ContainerSpec& spec = container.spec;
  spec.milli_cpus = int64_t{cpus} * 1000;
  if (!container.owns_cpus() && spec.cpu_limit) {
    spec.milli_cpus -= 500;  // whole CPUs would be its own when it starts again
  }
  if (spec.milli_limit > 0) {
    spec.milli_limit = std::max(spec.milli_limit, spec.milli_cpus + kAboveRequest);
  }
}

void ResizeLimit(PlannedContainer& container, int cpus) {
  ContainerSpec& spec = container.spec;
  spec.milli_limit = std::max(int64_t{cpus} * 1000, spec.milli_cpus + kAboveRequest);
}

}  // namespace qrm::test
