// Checks what a plugin gives, in the order of a container's life.
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "manager/runtime/run_options.h"
#include "manager/state/allocation_check.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "tools/plugin_check/run.h"

namespace qrm::manager {
namespace {

/// "cpu: CpusetCpus=0-3, memory: no knob=", or "nothing".
std::string Describe(const AllocationByResource& allocations) {
  std::string text;
  for (const auto& [resource, allocation] : allocations) {
    text += fmt::format("{}{}: {}={}", text.empty() ? "" : ", ", resource,
                        allocation->oci_property.empty() ? "no knob" : allocation->oci_property,
                        allocation->value);
    for (const auto& [name, value] : allocation->envs) {
      text += fmt::format(" {}={}", name, value);
    }
    for (const auto& [name, value] : allocation->annotations) {
      text += fmt::format(" annotation {}={}", name, value);
    }
    for (const DeviceSpec& device : allocation->devices) {
      text += fmt::format(" device {} ({})", device.container_path, device.permissions);
    }
    for (const Mount& mount : allocation->mounts) {
      text += fmt::format(" mount {} of {}{}", mount.container_path, mount.host_path,
                          mount.read_only ? " (read-only)" : "");
    }
  }
  return text.empty() ? "nothing" : text;
}

/// As many ask until the plugin is full.
constexpr int kMostContainers = 64;

CpuSet ExclusiveCpusOf(const AllocationByResource& given) {
  CpuSet cpus;
  for (const auto& [resource, allocation] : given) {
    if (allocation->exclusive && allocation->oci_property == kCpusetCpus) {
      const auto parsed = CpuSet::Parse(allocation->value);
      cpus |= parsed.ok() ? *parsed : CpuSet{};
    }
  }
  return cpus;
}

}  // namespace

StatusOr<AllocationByContainer> Run::Reconcile() {
  QRM_ASSIGN_OR_RETURN(const calls::HeldAllocations held, Ask<calls::GetResourcesAllocation>({}));
  AllocationByContainer allocations;
  for (const auto& [key, resource, allocation] : *held) {
    allocations[key].emplace(resource, allocation);
  }
  return allocations;
}

ContainerRequest Run::RequestFor(const std::string& container, uint64_t index) const {
  ContainerRequest request;
  request.key = {kCheckedPod, container};
  request.pod_namespace = "default";
  request.pod_name = "qrm-plugin-check";
  request.type = index == 0 ? ContainerType::kMain : ContainerType::kSidecar;
  request.index = index;
  request.pod_role = settings_.pod_role;
  request.pod_type = settings_.pod_type;
  request.resource = resource_;
  request.requests = {{resource_, settings_.amount}};
  request.labels = settings_.labels;
  request.annotations = settings_.annotations;
  request.native_qos_class = "Guaranteed";
  return request;
}

Status Run::CheckAgainstMachine(const ContainerKey& key, const AllocationByResource& given) const {
  for (const auto& [resource, allocation] : given) {
    Status fits = CheckProperty(allocation);
    if (fits.ok()) {
      fits = CheckAllocation(key, ContainerType::kMain, allocation, machine_, {});
    }
    if (!fits.ok()) {
      return Annotate(fits, "resource " + resource);
    }
  }
  return OkStatus();
}

void Run::Lifetime() {
  ContainerRequest first_request = RequestFor("main", 0);
  ContainerRequest second_request = RequestFor("sidecar", 1);
  first_request.hint = hint_;
  second_request.hint = hint_.has_value() ? std::optional(TopologyHint{}) : std::nullopt;
  AllocationByResource first;
  AllocationByResource second;
  if (Allocates(first_request, first)) {
    GivesTheSameAgain(first_request, first, "gives the same allocation when it is asked again");
    Prepares(first_request.key);
    if (Allocates(second_request, second)) {
      KeepsCpusApart(first, second);
      Reconciles(first, second);
    }
    Survives(first_request, first);
    RefusesWhenFull(ExclusiveCpusOf(first) | ExclusiveCpusOf(second));
  }
  Offers();
  Removes();
  SurvivesNonsense();  // while there is room
  if (!first.empty()) {
    GivesAgain(first_request);
  }
}

bool Run::Allocates(const ContainerRequest& request, AllocationByResource& given) {
  const std::string rule = "allocates for container " + request.key.container;
  StatusOr<AllocationByResource> answer = Ask<calls::Allocate>(request);
  if (!answer.ok()) {
    return RefusedOrBroken(rule, answer.status());
  }
  given = *std::move(answer);
  return HoldsIf(CheckAgainstMachine(request.key, given), rule, Describe(given));
}

void Run::GivesTheSameAgain(const ContainerRequest& request, const AllocationByResource& given,
                            const std::string& rule) {
  const StatusOr<AllocationByResource> again = Ask<calls::Allocate>(request);
  if (!again.ok()) {
    Broken(rule, MessageOf(again.status()));
  } else if (*again != given) {
    Broken(rule, fmt::format("first {}, then {}", Describe(given), Describe(*again)));
  } else {
    Holds(rule);
  }
}

void Run::Prepares(const ContainerKey& key) {
  if (options_.pre_start_required) {
    HoldsIf(Ask<calls::PreStartContainer>(
                {.key = key, .pod_namespace = "default", .pod_name = "qrm-plugin-check"})
                .status(),
            "prepares a container that is about to start");
  }
}

void Run::KeepsCpusApart(const AllocationByResource& first, const AllocationByResource& second) {
  const std::string rule = "gives exclusive CPUs to one container only";
  const CpuSet shared = ExclusiveCpusOf(first) & ExclusiveCpusOf(second);
  shared.Empty() ? Holds(rule) : Broken(rule, fmt::format("both have {}", ToString(shared)));
}

void Run::Survives(const ContainerRequest& request, const AllocationByResource& given) {
  const std::string rule = "has after kill -9 and a start what it gave before";
  if (settings_.command.empty()) {
    Skipped(rule, "give --command, by which the plugin can be started");
    return;
  }
  if (const Status anew = plugin_.RunAnew(); !anew.ok()) {
    Broken(rule, MessageOf(anew));
    return;
  }
  GivesTheSameAgain(request, given, rule);
}

// Containers that get nothing of their own, such as CPUs of a pool, may be any number.
void Run::RefusesWhenFull(CpuSet taken) {
  const std::string rule = "rejects a request with a sentence when nothing is left";
  for (int i = 2; i < kMostContainers; ++i) {
    ContainerRequest request = RequestFor(fmt::format("more{}", i), static_cast<uint64_t>(i));
    request.hint = hint_.has_value() ? std::optional(TopologyHint{}) : std::nullopt;
    const StatusOr<AllocationByResource> answer = Ask<calls::Allocate>(request);
    if (!answer.ok()) {
      plugin_.refused() && !MessageOf(answer.status()).empty()
          ? Holds(rule, fmt::format("{} containers have theirs; {}", i, MessageOf(answer.status())))
          : Broken(rule, MessageOf(answer.status()));
      return;
    }
    if (const Status fits = CheckAgainstMachine(request.key, *answer); !fits.ok()) {
      Broken(rule, fmt::format("container {}: {}", request.key.container, MessageOf(fits)));
      return;
    }
    const CpuSet own = ExclusiveCpusOf(*answer);
    if (own.Intersects(taken)) {
      Broken(rule, fmt::format("container {} got CPUs {}, which others own", request.key.container,
                               ToString(own & taken)));
      return;
    }
    taken |= own;
  }
  Skipped(rule,
          fmt::format("{} containers got theirs: it is shared, or there is more", kMostContainers));
}

void Run::GivesAgain(const ContainerRequest& request) {
  const std::string rule = "gives again what a removed pod had";
  HoldsIf(Ask<calls::Allocate>(request).status(), rule);
  Ask<calls::RemovePod>(kCheckedPod)
      .status()
      .IgnoreError();  // only cleans up: it was checked before
}

std::optional<AllocationByContainer> Run::Listed(const std::string& rule) {
  if (!options_.need_reconcile) {
    Skipped(rule, "the plugin does not reconcile");
    return std::nullopt;
  }
  StatusOr<AllocationByContainer> listed = Reconcile();
  if (!listed.ok()) {
    Broken(rule, MessageOf(listed.status()));
    return std::nullopt;
  }
  return *std::move(listed);
}

void Run::Reconciles(const AllocationByResource& first, const AllocationByResource& second) {
  const std::string rule = "lists its allocations in GetResourcesAllocation";
  const std::optional<AllocationByContainer> listed = Listed(rule);
  if (!listed.has_value()) {
    return;
  }
  for (const auto& [container, given] : {std::pair("main", first), std::pair("sidecar", second)}) {
    const ContainerKey key{kCheckedPod, container};
    if (!given.empty() && !listed->contains(key)) {
      Broken(rule, fmt::format("container {} is missing", container));
      return;
    }
  }
  for (const auto& [key, given] : *listed) {
    if (const Status fits = CheckAgainstMachine(key, given); !fits.ok()) {
      Broken(rule, fmt::format("container {} of pod {}: {}", key.container, key.pod_uid,
                               MessageOf(fits)));
      return;
    }
  }
  Holds(rule, fmt::format("{} containers", listed->size()));
}

void Run::Offers() {
  const std::string rule = "says what the node has to offer";
  const auto offered = Ask<calls::GetAllocatable>({});
  if (absl::IsUnimplemented(offered.status())) {
    Skipped(rule, "the plugin leaves it out: the pod-resources API will not show it");
    return;
  }
  HoldsIf(offered.status(), rule, offered.ok() ? fmt::format("{} resources", offered->size()) : "");
}

void Run::SurvivesNonsense() {
  const std::string rule = "rejects a request without a pod and keeps running";
  ContainerRequest nonsense = RequestFor("", 0);
  nonsense.key = {};
  nonsense.requests = {{resource_, -1}};
  const StatusOr<AllocationByResource> answer = Ask<calls::Allocate>(nonsense);
  const auto options = Ask<calls::GetOptions>({});
  if (!options.ok() && !absl::IsUnimplemented(options.status())) {
    Broken(rule, "afterwards: " + MessageOf(options.status()));
  } else if (answer.ok()) {
    Broken(rule, "it allocated " + Describe(*answer));
    Ask<calls::RemovePod>("").status().IgnoreError();  // only cleans up: the rule is broken already
  } else {
    Holds(rule, MessageOf(answer.status()));
  }
}

void Run::Removes() {
  if (!HoldsIf(Ask<calls::RemovePod>(kCheckedPod).status(), "removes a pod")) {
    return;
  }
  HoldsIf(Ask<calls::RemovePod>(kCheckedPod).status(), "removes a pod that is gone already");
  ForgetsThePod();
}

void Run::ForgetsThePod() {
  const std::string rule = "forgets what a removed pod had";
  const std::optional<AllocationByContainer> listed = Listed(rule);
  if (!listed.has_value()) {
    return;
  }
  for (const auto& [key, given] : *listed) {
    if (key.pod_uid == kCheckedPod) {
      Broken(rule, fmt::format("container {} still has {}", key.container, Describe(given)));
      return;
    }
  }
  Holds(rule);
}

}  // namespace qrm::manager
