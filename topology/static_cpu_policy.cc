// Applies kubelet's rules about who may have which of the free CPUs, before the assignment.
#include "topology/static_cpu_policy.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "topology/hint_generation.h"

namespace qrm {
namespace {

constexpr std::size_t kMaxCpuHints = 4096;

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

StaticCpuPolicy::StaticCpuPolicy(CpuLayout layout, CpuAssignmentOptions options, CpuSet reserved)
    : layout_(std::move(layout)), options_(options), reserved_(std::move(reserved)) {}

Status StaticCpuPolicy::CheckCores(const StaticCpuRoom& room, int count) const {
  if (!options_.full_physical_cpus_only) {
    return OkStatus();
  }
  const int threads = ThreadsPerCore(layout_);
  if (count % threads != 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot give {} CPUs as whole cores: a core has {}; ask for a multiple of {}",
                  count, threads, threads);
  }
  const CpuSet physical = room.free - layout_.machine().CoresOf(reserved_);
  if (count > physical.Count()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot give {} CPUs as whole cores: {} are free outside reserved cores; ask for "
                  "fewer or free some",
                  count, physical.Count());
  }
  return OkStatus();
}

StatusOr<CpuSet> StaticCpuPolicy::Take(const StaticCpuRoom& room, int count,
                                       const NumaMask& affinity) const {
  QRM_RETURN_IF_ERROR(CheckCores(room, count));
  return TakeCpusLikeKubelet(layout_, room.free | room.reusable, count, affinity, options_);
}

HintList StaticCpuPolicy::HeldHints(const CpuSet& held, int count) const {
  return held.Count() == count ? Hints({.free = held}, count) : HintList::Impossible();
}

int StaticCpuPolicy::NarrowestWidth(int count) const {
  std::vector<int> sizes;
  for (const CpuGroup& node : layout_.elements(CpuLayout::kNode)) {
    sizes.push_back(node.cpus.Count());
  }
  return FewestOf(std::move(sizes), count);
}

/// A hint contains the nodes of all reusable CPUs, which count as free.
HintList StaticCpuPolicy::Hints(const StaticCpuRoom& room, int count) const {
  const Machine& machine = layout_.machine();
  const CpuSet free = (room.free | room.reusable) & machine.cpu_set();
  const NumaMask required = machine.NodesOf(room.reusable);
  const int narrowest = NarrowestWidth(count);
  const ClosestMasks masks(machine, machine.NodesOf(machine.cpu_set()));
  std::vector<TopologyHint> hints;
  int widest = masks.size();
  for (int width = 1; width <= widest && hints.size() < kMaxCpuHints; ++width) {
    masks.Visit(width, [&](const NumaMask& mask) {
      if (required.IsSubsetOf(mask) && (free & machine.CpusOf(mask)).Count() >= count) {
        const bool preferred =
            width == narrowest || (options_.align_by_socket && IsSocketAligned(mask, narrowest));
        hints.push_back({.nodes = mask, .preferred = preferred});
      }
      return hints.size() < kMaxCpuHints;
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
  const auto touched = std::ranges::count_if(
      layout_.machine().packages(),
      [&cpus](const CpuGroup& package) { return package.cpus.Intersects(cpus); });
  return touched == (narrowest + per_socket - 1) / per_socket;
}

}  // namespace qrm
