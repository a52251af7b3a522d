// Tries the lines of a specification with more and more of their optional attributes.
#include "plugins/cci/chooser.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "topology/cpu_layout.h"

namespace qrm::cci {
namespace {

/// The optional attributes to keep.
using Wishes = std::set<const Attribute*>;

using Attributes = std::vector<const Attribute*>;

const Attribute* Find(const Attributes& attributes, AttributeKind kind) {
  const auto found = std::ranges::find_if(
      attributes, [&](const Attribute* attribute) { return attribute->kind == kind; });
  return found == attributes.end() ? nullptr : *found;
}

std::vector<Attribute> Copies(const Attributes& attributes) {
  std::vector<Attribute> copies;
  for (const Attribute* attribute : attributes) {
    copies.push_back(*attribute);
  }
  return copies;
}

/// The attributes of one line: all required ones, and the optional ones to keep.
Attributes Asked(const SpecLine& line, const Wishes& wishes) {
  Attributes asked;
  for (const Attribute& attribute : line.attributes) {
    if (!attribute.is_wish || wishes.contains(&attribute)) {
      asked.push_back(&attribute);
    }
  }
  return asked;
}

/// Lines with fewer choices come first: named CPUs, then whole cores, then certain nodes or core
/// types.
int Freedom(const SpecLine& line, const Wishes& wishes) {
  if (line.any == 0) {
    return 0;
  }
  int freedom = 3;
  for (const Attribute* attribute : Asked(line, wishes)) {
    switch (attribute->kind) {
      case AttributeKind::kSmtRequired:
      case AttributeKind::kSmtDenied:
        freedom = 1;
        break;
      case AttributeKind::kNuma:
      case AttributeKind::kNumaSingle:
      case AttributeKind::kCoreType:
        freedom = std::min(freedom, 2);
        break;
      default:
        break;
    }
  }
  return freedom;
}

StatusOr<CpuSet> CpusOfType(const Machine& machine, const Attribute& type) {
  if (machine.highest_core_kind() == 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} is not possible: all cores of this machine are alike; remove it", type.text);
  }
  const CpuSet fast = machine.PerformanceCpus();
  return type.word == "performance" ? fast : machine.cpu_set() - fast;
}

/// The CPUs in `free` for which `attribute` can be set. Errors: why it is possible for none.
StatusOr<CpuSet> Settable(const Attribute& attribute, const CpuSet& free,
                          const kernel::TunableMachine& knobs) {
  CpuSet settable;
  Status first;
  for (const int cpu : free) {
    const Status good = CheckKnob(attribute, {cpu}, free, knobs);
    if (good.ok()) {
      settable.Add(cpu);
    } else if (first.ok()) {
      first = good;
    }
  }
  return settable.Empty() && !first.ok() ? first : StatusOr<CpuSet>(settable);
}

/// At least `count` of the fastest CPUs in `free`.
CpuSet Fastest(const CpuSet& free, int count, const kernel::TunableMachine& knobs) {
  std::map<int64_t, CpuSet, std::greater<>> by_rank;
  for (const int cpu : free) {
    const auto rank = knobs.ranks.find(cpu);
    by_rank[rank == knobs.ranks.end() ? 0 : rank->second].Add(cpu);
  }
  CpuSet fastest;
  for (const auto& [rank, cpus] : by_rank) {
    if (fastest.Count() < count) {
      fastest |= cpus;
    }
  }
  return fastest;
}

/// The CPUs in `free` that have `attribute`, which does not set a value. Errors: it is not
/// supported.
StatusOr<CpuSet> Allowed(const Attribute& attribute, const CpuSet& free, const Machine& machine) {
  switch (attribute.kind) {
    case AttributeKind::kExclusive:
    case AttributeKind::kSmtPreferred:
    case AttributeKind::kNumaSingle:
      return free;
    case AttributeKind::kSmtRequired:
    case AttributeKind::kSmtDenied:
      return machine.WholeCores(free);
    case AttributeKind::kCoreType: {
      QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpusOfType(machine, attribute));
      return free & cpus;
    }
    case AttributeKind::kNuma:
      return free & machine.CpusOf(attribute.nodes & machine.node_mask());
    case AttributeKind::kMemory:
      if (attribute.word == "bind") {
        return free;
      }
      return Errorf(StatusCode::kInvalidArgument,
                    "{}: a driver cannot set this policy of the program; write mem=bind, or let "
                    "the program set it",
                    attribute.text);
    default:
      return Errorf(StatusCode::kInvalidArgument,
                    "{} is not supported by this driver; remove it, or write {}? to run without",
                    attribute.text, attribute.text);
  }
}

/// What a line asks for, and the CPUs that it keeps where it can.
struct Wanted {
  Attributes asked;
  CpuSet kept;
};

/// The choice of CPUs for one line.
class LineChoice {
 public:
  LineChoice(const SpecLine& line, Wanted wanted, const Room& room, const CpuLayout& layout,
             const kernel::TunableMachine& knobs)
      : line_(line),
        asked_(std::move(wanted.asked)),
        kept_(std::move(wanted.kept)),
        room_(room),
        layout_(layout),
        knobs_(knobs) {}

  /// Takes CPUs from `free`.
  StatusOr<sdk::ComputePart> Take(const CpuSet& free) const {
    if (Find(asked_, AttributeKind::kShared) != nullptr) {
      return Share();
    }
    CpuSet allowed = free;
    for (const Attribute* attribute : asked_) {
      QRM_ASSIGN_OR_RETURN(const CpuSet narrower, Narrowed(*attribute, allowed));
      if (line_.any > 0 && narrower.Count() < line_.any) {
        return Errorf(
            StatusCode::kResourceExhausted,
            "{} permits CPUs {}, but {} CPUs are requested; request fewer or delete a pod",
            attribute->text, narrower.Empty() ? "none" : ToString(narrower), line_.any);
      }
      allowed = narrower;
    }
    QRM_ASSIGN_OR_RETURN(sdk::ComputePart part,
                         line_.any == 0 ? TakeNamed(free, allowed) : TakeAny(allowed));
    std::vector<Attribute> kept = Copies(asked_);
    for (Attribute& attribute : kept) {
      attribute.is_wish = false;
    }
    part.name = ToString(kept);
    return part;
  }

 private:
  const Machine& machine() const { return layout_.machine(); }

  /// Uses CPUs that stay in the default pool.
  StatusOr<sdk::ComputePart> Share() const {
    for (const Attribute* attribute : asked_) {
      if (attribute->kind != AttributeKind::kShared) {
        return Errorf(StatusCode::kInvalidArgument,
                      "{} applies only to exclusive CPUs, but the line is shared; remove it, or "
                      "write exclusive",
                      attribute->text);
      }
    }
    if (!line_.named.IsSubsetOf(room_.shared)) {
      return Errorf(StatusCode::kResourceExhausted,
                    "CPUs {} are not in the default pool, only CPUs {} are; name those, or write "
                    "*{} for the whole pool",
                    ToString(line_.named - room_.shared), ToString(room_.shared),
                    line_.named.Count());
    }
    return sdk::ComputePart{.cpus = line_.named, .name = "shared", .shared = true};
  }

  StatusOr<CpuSet> Narrowed(const Attribute& attribute, const CpuSet& cpus) const {
    constexpr int64_t kHigh = 700;
    if (line_.any == 0 && attribute.kind == AttributeKind::kSmtRequired) {
      return cpus;  // Finish reports the missing threads
    }
    if (!IsKnob(attribute)) {
      return Allowed(attribute, cpus, machine());
    }
    if (line_.any == 0) {
      QRM_RETURN_IF_ERROR(CheckKnob(attribute, line_.named, cpus, knobs_));
      return cpus;
    }
    QRM_ASSIGN_OR_RETURN(const CpuSet settable, Settable(attribute, cpus, knobs_));
    const bool is_fast = attribute.kind == AttributeKind::kPriority && attribute.least >= kHigh;
    return is_fast ? Fastest(settable, line_.any, knobs_) : settable;
  }

  StatusOr<sdk::ComputePart> TakeNamed(const CpuSet& free, const CpuSet& allowed) const {
    const CpuSet& named = line_.named;
    if (!named.IsSubsetOf(free)) {
      return Errorf(StatusCode::kResourceExhausted,
                    "CPUs {} are not available, only CPUs {} are; name those, or write *{} for any",
                    ToString(named - free), ToString(free), named.Count());
    }
    if (!named.IsSubsetOf(allowed)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "CPUs {} cannot have {}; name other CPUs, or write *{} for any that can",
                    ToString(named - allowed), ToString(Copies(asked_)), named.Count());
    }
    if (Find(asked_, AttributeKind::kNumaSingle) != nullptr &&
        machine().NodesOf(named).Count() > 1) {
      return Errorf(StatusCode::kInvalidArgument, "CPUs {} are on nodes {}; name CPUs of one node",
                    ToString(named), ToString(machine().NodesOf(named)));
    }
    return Finish(named);
  }

  StatusOr<sdk::ComputePart> TakeAny(const CpuSet& allowed) const {
    const CpuSet threads = Find(asked_, AttributeKind::kSmtDenied) != nullptr
                               ? machine().FirstThreads(allowed)
                               : allowed;
    if (Find(asked_, AttributeKind::kNumaSingle) == nullptr) {
      QRM_ASSIGN_OR_RETURN(const CpuSet cpus, TakeFrom(threads));
      return Finish(cpus);
    }
    for (const int node : NodesByRoom(threads)) {
      if (const StatusOr<CpuSet> cpus = TakeFrom(threads & machine().CpusOf({node})); cpus.ok()) {
        return Finish(*cpus);
      }
    }
    return Errorf(StatusCode::kResourceExhausted,
                  "no single NUMA node has {} of the CPUs {}; request fewer or delete a pod",
                  line_.any, ToString(threads));
  }

  /// Nodes that suit the other resources come first, then partly used nodes.
  std::vector<int> NodesByRoom(const CpuSet& cpus) const {
    const NumaMask mask = machine().node_mask();
    std::vector<int> nodes(mask.begin(), mask.end());
    const auto rank = [&](int node) {
      const CpuSet& of_node = machine().CpusOf({node});
      return std::tuple(!of_node.Intersects(kept_), !room_.near.Has(node),
                        (cpus & of_node).Count());
    };
    std::ranges::stable_sort(nodes, [&](int a, int b) { return rank(a) < rank(b); });
    return nodes;
  }

  /// A running container keeps its CPUs, and loses some or gets further ones.
  StatusOr<CpuSet> TakeFrom(const CpuSet& cpus) const {
    const bool keeps = !kept_.Empty() && kept_.IsSubsetOf(cpus);
    if (!keeps || kept_.Count() >= line_.any) {
      return TakeSome(keeps ? kept_ : cpus, line_.any);
    }
    QRM_ASSIGN_OR_RETURN(const CpuSet more, TakeSome(cpus - kept_, line_.any - kept_.Count()));
    return kept_ | more;
  }

  StatusOr<CpuSet> TakeSome(const CpuSet& cpus, int count) const {
    const bool whole = Find(asked_, AttributeKind::kSmtRequired) != nullptr;
    StatusOr<CpuSet> taken =
        TakeCpusNear(layout_, cpus, count, room_.near, {.full_physical_cpus_only = whole});
    if (!whole || taken.ok()) {
      return taken;
    }
    const CpuSet large = LargeCoresFirst(cpus, count);
    return large.Count() == count ? large : taken;
  }

  /// Cores with two threads come first; cores with one thread fill the rest.
  CpuSet LargeCoresFirst(const CpuSet& cpus, int count) const {
    std::vector<CpuSet> cores;
    for (const CpuGroup& core : machine().cores()) {
      if (core.cpus.IsSubsetOf(cpus)) {
        cores.push_back(core.cpus);
      }
    }
    std::ranges::stable_sort(
        cores, [](const CpuSet& a, const CpuSet& b) { return a.Count() > b.Count(); });
    CpuSet taken;
    for (const CpuSet& core : cores) {
      if (taken.Count() + core.Count() <= count) {
        taken |= core;
      }
    }
    return taken;
  }

  /// Checks the conditions on the whole line.
  StatusOr<sdk::ComputePart> Finish(const CpuSet& cpus) const {
    sdk::ComputePart part{.cpus = cpus};
    const CpuSet siblings = machine().CoresOf(cpus) - cpus;
    if (Find(asked_, AttributeKind::kSmtRequired) != nullptr && !siblings.Empty()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "smt-sibling-required also needs CPUs {}, the other threads of the cores of "
                    "{}; request whole cores",
                    ToString(siblings), ToString(cpus));
    }
    if (Find(asked_, AttributeKind::kSmtDenied) != nullptr) {
      if (machine().FirstThreads(cpus) != cpus) {
        return Errorf(StatusCode::kInvalidArgument,
                      "smt-sibling-denied, but CPUs {} are threads of the same cores; name one "
                      "thread of each",
                      ToString(cpus));
      }
      part.idle = siblings;
    }
    return part;
  }

  const SpecLine& line_;
  const Attributes asked_;
  const CpuSet kept_;
  const Room& room_;
  const CpuLayout& layout_;
  const kernel::TunableMachine& knobs_;
};

/// A cgroup can only be a partition with all of its CPUs.
Status CheckBalance(const SpecLines& spec, const Wishes& wishes) {
  const auto is_balanced = [&](const SpecLine& line) {
    return Find(Asked(line, wishes), AttributeKind::kNoBalance) == nullptr;
  };
  const auto balanced = std::ranges::count_if(spec, is_balanced);
  return balanced == 0 || static_cast<std::size_t>(balanced) == spec.size()
             ? OkStatus()
             : Errorf(StatusCode::kInvalidArgument,
                      "no-balance applies to all CPUs of a container, but is in {} of {} lines; "
                      "write it in each",
                      spec.size() - static_cast<std::size_t>(balanced), spec.size());
}

/// OK if the kept attributes can be set for all `parts` together.
Status CheckKnobs(const SpecLines& spec, const Wishes& wishes,
                  const std::vector<sdk::ComputePart>& parts, const kernel::TunableMachine& knobs) {
  CpuSet own;
  for (const sdk::ComputePart& part : parts) {
    own |= part.cpus | part.idle;
  }
  for (std::size_t i = 0; i < spec.size(); ++i) {
    for (const Attribute* attribute : Asked(spec[i], wishes)) {
      if (IsKnob(*attribute)) {
        QRM_RETURN_IF_ERROR(Annotate(CheckKnob(*attribute, parts[i].cpus, own, knobs),
                                     fmt::format("cores, line {}", i + 1)));
      }
    }
  }
  return OkStatus();
}

/// Checks that `own` CPUs, including idle ones, and `shared` CPUs add up to the request.
Status CheckUsed(int own, int shared, const Room& room) {
  const int requested = room.cpus + (room.has_fraction ? 1 : 0);
  if (own + shared != requested) {
    return Errorf(StatusCode::kInvalidArgument,
                  "the spec takes {} CPUs, including idle thread siblings, but the container "
                  "requests {}, so scheduler and node would count differently; make them equal",
                  own + shared, requested);
  }
  if (own > room.cpus) {
    return Errorf(StatusCode::kInvalidArgument,
                  "the spec takes {} exclusive CPUs, but the container requests {} whole CPUs; "
                  "write shared for the rest",
                  own, room.cpus);
  }
  return OkStatus();
}

/// Rejects a container that has named CPUs of the pool and no others.
Status CheckLasting(const std::vector<sdk::ComputePart>& parts) {
  const bool lasts = std::ranges::any_of(
      parts, [](const sdk::ComputePart& part) { return !part.shared || part.cpus.Empty(); });
  return lasts ? OkStatus()
               : Errorf(StatusCode::kInvalidArgument,
                        "all of its CPUs would be shared ones that the pool may lose; write "
                        "exclusive for at least one, or share a number of CPUs");
}

/// Chooses CPUs for all lines, and checks their number.
StatusOr<std::vector<sdk::ComputePart>> Try(const SpecLines& spec, const Wishes& wishes,
                                            const Room& room, const CpuLayout& layout,
                                            const kernel::TunableMachine& knobs) {
  std::vector<std::size_t> order(spec.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return Freedom(spec[a], wishes) < Freedom(spec[b], wishes);
  });
  std::vector<sdk::ComputePart> parts(spec.size());
  CpuSet free = room.available & layout.all();
  int own = 0;
  int shared = 0;
  for (const std::size_t i : order) {
    StatusOr<sdk::ComputePart> part =
        LineChoice(spec[i],
                   {.asked = Asked(spec[i], wishes),
                    .kept = i < room.kept.size() ? room.kept[i] : CpuSet()},
                   room, layout, knobs)
            .Take(free);
    QRM_RETURN_IF_ERROR(Annotate(part.status(), fmt::format("cores, line {}", i + 1)));
    const CpuSet taken = part->cpus | part->idle;
    free -= taken;
    (part->shared ? shared : own) += part->shared ? spec[i].Count() : taken.Count();
    parts[i] = *std::move(part);
  }
  QRM_RETURN_IF_ERROR(CheckUsed(own, shared, room));
  QRM_RETURN_IF_ERROR(CheckLasting(parts));
  QRM_RETURN_IF_ERROR(CheckBalance(spec, wishes));
  QRM_RETURN_IF_ERROR(CheckKnobs(spec, wishes, parts, knobs));
  return parts;
}

/// A check that does not depend on the choice, before any is tried.
Status CheckCount(const SpecLines& spec, const Room& room) {
  const int asked = std::accumulate(spec.begin(), spec.end(), 0, [](int sum, const SpecLine& line) {
    return sum + line.Count();
  });
  if (const int requested = room.cpus + (room.has_fraction ? 1 : 0); asked > requested) {
    return Errorf(StatusCode::kInvalidArgument,
                  "the spec asks for {} CPUs, but the container requests {}; make them equal",
                  asked, requested);
  }
  return OkStatus();
}

NumaMask MemoryNodes(const SpecLines& spec, const Wishes& wishes, const Machine& machine,
                     const std::vector<sdk::ComputePart>& parts) {
  CpuSet bound;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (Find(Asked(spec[i], wishes), AttributeKind::kMemory) != nullptr) {
      bound |= parts[i].cpus;
    }
  }
  return machine.NodesOf(bound);
}

}  // namespace

StatusOr<sdk::ComputeGrant> Choose(const SpecLines& spec, const Room& room, const CpuLayout& layout,
                                   const kernel::TunableMachine& knobs) {
  QRM_RETURN_IF_ERROR(CheckCount(spec, room));
  std::vector<const Attribute*> wished;
  for (const SpecLine& line : spec) {
    for (const Attribute& attribute : line.attributes) {
      if (attribute.is_wish) {
        wished.push_back(&attribute);
      }
    }
  }
  sdk::ComputeGrant grant;
  Wishes kept(wished.begin(), wished.end());
  StatusOr<std::vector<sdk::ComputePart>> parts = Try(spec, kept, room, layout, knobs);
  if (!parts.ok() && !wished.empty()) {
    kept.clear();
    parts = Try(spec, kept, room, layout, knobs);
    QRM_RETURN_IF_ERROR(parts.status());
    for (const Attribute* wish : wished) {
      kept.insert(wish);
      StatusOr<std::vector<sdk::ComputePart>> more = Try(spec, kept, room, layout, knobs);
      if (more.ok()) {
        parts = std::move(more);
      } else {
        kept.erase(wish);
        grant.unmet.push_back({.token = wish->text + "?", .reason = MessageOf(more.status())});
      }
    }
  }
  QRM_RETURN_IF_ERROR(parts.status());
  grant.mems = MemoryNodes(spec, kept, layout.machine(), *parts);
  grant.parts = *std::move(parts);
  return grant;
}

}  // namespace qrm::cci
