// Draws pods of all kinds.
#include "test/model/pod_plan.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "api/proto/core/v1/pod.pb.h"
#include "test/model/model_machine.h"

namespace qrm::test {
namespace {

namespace core = ::k8s::io::api::core::v1;
using Kind = PlannedContainer::Kind;

constexpr int64_t kMiB = int64_t{1} << 20;

int DrawFrom(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
}

PlannedContainer Guaranteed(const std::string& name, int cpus) {
  return {.spec = {.name = name,
                   .milli_cpus = int64_t{cpus} * 1000,
                   .memory_bytes = 64 * kMiB,
                   .cpu_limit = true},
          .own_cpus = {cpus}};
}

PlannedContainer Sharing(const std::string& name, int milli_cpus, int64_t bytes) {
  return {.spec = {.name = name, .milli_cpus = milli_cpus, .memory_bytes = bytes}};
}

core::ResourceRequirements Resources(const PlannedContainer& container) {
  core::ResourceRequirements resources;
  const auto add = [&](const std::string& name, const std::string& quantity, bool limited) {
    (*resources.mutable_requests())[name].set_string(quantity);
    if (limited) {
      (*resources.mutable_limits())[name].set_string(quantity);
    }
  };
  if (container.spec.milli_cpus > 0) {
    add("cpu", fmt::format("{}m", container.spec.milli_cpus), container.spec.cpu_limit);
  }
  if (container.spec.memory_bytes > 0) {
    add("memory", std::to_string(container.spec.memory_bytes), true);
  }
  if (container.nic_mbps > 0) {
    add(kNicRequest, std::to_string(container.nic_mbps), true);
  }
  return resources;
}

template <typename Part>
auto Sum(const PodPlan& plan, Part part) {
  return std::accumulate(
      plan.containers.begin(), plan.containers.end(), decltype(part(plan.containers[0])){},
      [&](auto sum, const PlannedContainer& container) { return sum + part(container); });
}

PodPlan Empty(const std::string& name, int serial) {
  return {.name = name, .uid = fmt::format("uid-{}-{}", serial, name)};
}

}  // namespace

bool PodPlan::asks_nothing_special() const {
  return own_cpus() == 0 && bound_bytes() == 0 && nic_mbps() == 0;
}

int PodPlan::own_cpus() const {
  return Sum(*this, [](const PlannedContainer& container) {
    return container.own_cpus.empty() ? 0 : *container.own_cpus.rbegin();
  });
}

int64_t PodPlan::bound_bytes() const {
  return Sum(*this, [](const PlannedContainer& container) { return container.bound_bytes; });
}

int PodPlan::nic_mbps() const {
  return Sum(*this, [](const PlannedContainer& container) { return container.nic_mbps; });
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
  plan.told = true;
  plan.labels["katalyst.kubewharf.io/pod_role"] = kBoundRole;
  plan.containers = {Guaranteed("main", cpus)};
  plan.containers[0].spec.memory_bytes = bytes;
  plan.containers[0].bound_bytes = bytes;
  return plan;
}

PodPlan MakeNicUser(const std::string& name, int serial, int mbps) {
  PodPlan plan = Empty(name, serial);
  plan.told = true;
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
      sidecar.own_cpus.clear();  // by its pod's role, in the default pool
      plan.containers.insert(plan.containers.begin(), sidecar);
    }
    plan.told = kind == PodKind::kSidecar || random() % 2 == 0;
    return plan;
  }
  if (kind == PodKind::kNic) {
    return MakeNicUser(name, serial, DrawFrom(random, 1, 6) * 100);
  }
  PodPlan plan = Empty(name, serial);
  plan.told = random() % 2 == 0;
  if (kind == PodKind::kBestEffort) {
    plan.containers = {Sharing("main", 0, 0)};
  } else if (kind == PodKind::kBurstable) {
    plan.containers = {Sharing("main", DrawFrom(random, 1, 3000), 16 * kMiB)};
  } else if (kind == PodKind::kFraction) {
    plan.containers = {Guaranteed("main", 1)};
    plan.containers[0].spec.milli_cpus = 500 + 1000 * DrawFrom(random, 0, 2);
    plan.containers[0].own_cpus.clear();
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

void ResizeCpus(PlannedContainer& container, int cpus) {
  container.spec.milli_cpus = int64_t{cpus} * 1000;
  if (!container.own_cpus.empty()) {
    container.own_cpus.insert(cpus);
  } else if (container.spec.cpu_limit) {
    container.spec.milli_cpus -= 500;  // whole CPUs would be its own when it starts again
  }
}

}  // namespace qrm::test
