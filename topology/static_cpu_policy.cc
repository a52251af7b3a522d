// State in, state out.
#include "topology/static_cpu_policy.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "topology/hint_generation.h"

namespace qrm {
namespace {

constexpr std::size_t kMaxHints = 4096;

const CpuSet* FindAssignment(const StaticCpuState& state, const std::string& pod,
                             const std::string& container) {
  const auto containers = state.assignments.find(pod);
  if (containers == state.assignments.end()) {
    return nullptr;
  }
  const auto found = containers->second.find(container);
  return found == containers->second.end() ? nullptr : &found->second;
}

/// Init containers give their CPUs to those that follow; others use theirs up.
void UpdateReusable(const ExclusiveCpuRequest& request, const CpuSet& cpus, StaticCpuState& state) {
  if (state.reusable_pod != request.pod) {
    state.reusable_pod = request.pod;
    state.reusable = CpuSet();
  }
  if (request.role == ContainerRole::kInit) {
    state.reusable |= cpus;
  } else {
    state.reusable -= cpus;
  }
}

Status Contradiction(const std::string& cause) {
  return Errorf(StatusCode::kFailedPrecondition,
                "cannot start from the CPU state: {}; drain the node and remove the state", cause);
}

}  // namespace

StatusOr<CpuSet> ReservedCpus(const CpuLayout& layout, int count, const CpuSet& listed,
                              const CpuAssignmentOptions& options) {
  if (listed.Empty()) {
    return TakeCpusLikeKubelet(layout, layout.all(), count, {}, options);
  }
  if (listed.Count() != count || !listed.IsSubsetOf(layout.all())) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot reserve CPUs {}: they are not {} CPUs of {}; list as many as are reserved",
        ToString(listed), count, ToString(layout.all()));
  }
  return listed;
}

StaticCpuPolicy::StaticCpuPolicy(CpuLayout layout, StaticCpuConfig config)
    : layout_(std::move(layout)), config_(std::move(config)) {}

StatusOr<StaticCpuState> StaticCpuPolicy::Start(const StaticCpuState& state) const {
  const bool strict = config_.strict == StrictReservation::kYes;
  const CpuSet all =
      strict ? layout_.machine().cpu_set() - config_.reserved : layout_.machine().cpu_set();
  if (state.shared.Empty()) {
    if (!state.assignments.empty()) {
      return Contradiction("no CPU is shared, but some are assigned");
    }
    StaticCpuState fresh = state;
    fresh.shared = all;
    return fresh;
  }
  if (strict && config_.reserved.Intersects(state.shared)) {
    return Contradiction("strictly reserved CPUs " + ToString(config_.reserved & state.shared) +
                         " are shared");
  }
  if (!strict && !config_.reserved.IsSubsetOf(state.shared)) {
    return Contradiction("reserved CPUs " + ToString(config_.reserved - state.shared) +
                         " are not shared");
  }
  CpuSet known = state.shared;
  for (const auto& [pod, containers] : state.assignments) {
    for (const auto& [container, cpus] : containers) {
      if (cpus.Intersects(state.shared)) {
        return Contradiction(fmt::format("CPUs {} of pod {}, container {} are also shared",
                                         ToString(cpus & state.shared), pod, container));
      }
      known |= cpus;
    }
  }
  if (known != all) {
    return Contradiction(
        fmt::format("it is about CPUs {}, the machine has {}", ToString(known), ToString(all)));
  }
  return state;
}

Status StaticCpuPolicy::CheckWholeCores(const StaticCpuState& state, int count) const {
  const int threads = ThreadsPerCore(layout_);
  if (count % threads != 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot give {} CPUs as whole cores: a core has {}; ask for a multiple of {}",
                  count, threads, threads);
  }
  const CpuSet physical = state.shared - layout_.machine().CoresOf(config_.reserved);
  if (count > physical.Count()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot give {} CPUs as whole cores: {} are free outside reserved cores; ask for "
                  "fewer or free some",
                  count, physical.Count());
  }
  return OkStatus();
}

CpuSet StaticCpuPolicy::Reusable(const StaticCpuState& state, const std::string& pod) const {
  return state.reusable_pod == pod ? state.reusable : CpuSet();
}

StatusOr<StaticCpuState> StaticCpuPolicy::Allocate(const StaticCpuState& state,
                                                   const ExclusiveCpuRequest& request) const {
  StaticCpuState next = state;
  if (request.count <= 0) {
    return next;
  }
  if (const CpuSet* const held = FindAssignment(state, request.pod, request.container);
      held != nullptr) {
    UpdateReusable(request, *held, next);
    return next;
  }
  if (config_.options.full_physical_cpus_only) {
    QRM_RETURN_IF_ERROR(CheckWholeCores(state, request.count));
  }
  const CpuSet available = (state.shared - config_.reserved) | Reusable(state, request.pod);
  QRM_ASSIGN_OR_RETURN(const CpuSet cpus, TakeCpusLikeKubelet(layout_, available, request.count,
                                                              request.affinity, config_.options));
  next.shared -= cpus;
  next.assignments[request.pod][request.container] = cpus;
  UpdateReusable(request, cpus, next);
  return next;
}

StaticCpuState StaticCpuPolicy::Remove(const StaticCpuState& state, const std::string& pod,
                                       const std::string& container) const {
  StaticCpuState next = state;
  const CpuSet* const held = FindAssignment(state, pod, container);
  if (held == nullptr) {
    return next;
  }
  std::map<std::string, CpuSet>& containers = next.assignments[pod];
  containers.erase(container);
  CpuSet released = *held;
  for (const auto& [sibling, cpus] : containers) {
    released -= cpus;
  }
  if (containers.empty()) {
    next.assignments.erase(pod);
  }
  next.shared |= released;
  if (next.reusable_pod == pod) {
    next.reusable -= released;
  }
  return next;
}

HintList StaticCpuPolicy::Hints(const StaticCpuState& state,
                                const ExclusiveCpuRequest& request) const {
  if (request.count <= 0) {
    return HintList::NoPreference();
  }
  if (const CpuSet* const held = FindAssignment(state, request.pod, request.container);
      held != nullptr) {
    return held->Count() == request.count ? HintsFrom(*held, CpuSet(), request.count)
                                          : HintList::Impossible();
  }
  const CpuSet reusable = Reusable(state, request.pod);
  return HintsFrom(state.shared - config_.reserved - reusable, reusable, request.count);
}

/// A hint contains the nodes of all reusable CPUs, which count as free.
HintList StaticCpuPolicy::HintsFrom(const CpuSet& available, const CpuSet& reusable,
                                    int count) const {
  const CpuSet free = (available | reusable) & layout_.machine().cpu_set();
  const NumaMask required = layout_.machine().NodesOf(reusable);
  const NumaMask nodes = layout_.machine().NodesOf(layout_.machine().cpu_set());
  std::vector<int> sizes;
  for (const int node : nodes) {
    sizes.push_back(layout_.machine().FindNode(node)->cpus.Count());
  }
  std::sort(sizes.rbegin(), sizes.rend());
  int narrowest = 0;
  for (int sum = 0; narrowest < nodes.Count() && sum < count; ++narrowest) {
    sum += sizes[static_cast<std::size_t>(narrowest)];
  }

  const ClosestMasks masks(layout_.machine(), nodes);
  std::vector<TopologyHint> hints;
  int widest = masks.size();
  for (int width = 1; width <= widest && hints.size() < kMaxHints; ++width) {
    masks.Visit(width, [&](const NumaMask& mask) {
      if (required.IsSubsetOf(mask) && (free & layout_.machine().CpusOf(mask)).Count() >= count) {
        const bool preferred = width == narrowest || (config_.options.align_by_socket &&
                                                      IsSocketAligned(mask, narrowest));
        hints.push_back({.nodes = mask, .preferred = preferred});
      }
      return hints.size() < kMaxHints;
    });
    if (!hints.empty()) {
      widest = masks.WidestWorthOffering(hints.front().nodes.Count());
    }
  }
  return HintList(std::move(hints));
}

bool StaticCpuPolicy::IsSocketAligned(const NumaMask& mask, int narrowest) const {
  const auto nodes = layout_.elements(CpuLayout::kNode).size();
  const auto sockets = layout_.elements(CpuLayout::kPackage).size();
  const int per_socket = static_cast<int>(nodes / std::max(sockets, std::size_t{1}));
  if (per_socket == 0) {
    return false;
  }
  const CpuSet cpus = layout_.machine().CpusOf(mask);
  const auto touched =
      std::count_if(layout_.machine().packages().begin(), layout_.machine().packages().end(),
                    [&cpus](const CpuGroup& package) { return package.cpus.Intersects(cpus); });
  return touched == (narrowest + per_socket - 1) / per_socket;
}

}  // namespace qrm
