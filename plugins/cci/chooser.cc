// Tries the lines of a specification with more and more of their wishes.
#include "plugins/cci/chooser.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "topology/cpu_assignment.h"

namespace qrm::cci {
namespace {

/// Wishes that are to be kept.
using Wishes = std::set<const Attribute*>;

using Attributes = std::vector<const Attribute*>;

const Attribute* Find(const Attributes& attributes, AttributeKind kind) {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(),
                   [&](const Attribute* attribute) { return attribute->kind == kind; });
  return found == attributes.end() ? nullptr : *found;
}

/// What is asked of one line: all that is required, and the wishes that are to be kept.
Attributes Asked(const SpecLine& line, const Wishes& wishes) {
  Attributes asked;
  for (const Attribute& attribute : line.attributes) {
    if (!attribute.is_wish || wishes.contains(&attribute)) {
      asked.push_back(&attribute);
    }
  }
  return asked;
}

/// Lines that can be served from fewer places come first: named CPUs, then whole cores, then those
/// of certain nodes or kinds.
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

/// The CPUs of cores of which all threads are in `cpus`.
CpuSet WholeCores(const Machine& machine, const CpuSet& cpus) {
  CpuSet whole;
  for (const CpuGroup& core : machine.cores()) {
    if (core.cpus.Intersects(cpus) && core.cpus.IsSubsetOf(cpus)) {
      whole |= core.cpus;
    }
  }
  return whole;
}

/// The first thread of each core of `cpus`.
CpuSet FirstThreads(const Machine& machine, const CpuSet& cpus) {
  CpuSet first;
  for (const CpuGroup& core : machine.cores()) {
    if (core.cpus.Intersects(cpus)) {
      first.Add((core.cpus & cpus).First());
    }
  }
  return first;
}

StatusOr<CpuSet> CpusOfType(const Machine& machine, const Attribute& type) {
  const int highest = machine.highest_core_kind();
  if (highest == 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "{} cannot be: all cores of this machine are alike; leave it out", type.text);
  }
  CpuSet cpus;
  for (const Cpu& cpu : machine.cpus()) {
    if ((cpu.core_kind == highest) == (type.word == "performance")) {
      cpus.Add(cpu.id);
    }
  }
  return cpus;
}

/// Those of `free` for which `attribute` can be set. Errors: why it can be for none.
StatusOr<CpuSet> Settable(const Attribute& attribute, const CpuSet& free, const CpuKnobs& knobs) {
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

/// The fastest of `free`, as many as are asked for or more.
CpuSet Fastest(const CpuSet& free, int count, const CpuKnobs& knobs) {
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

/// Where CPUs with `attribute`, which sets nothing, can be. Errors: it cannot be kept at all.
StatusOr<CpuSet> Allowed(const Attribute& attribute, const CpuSet& free, const Machine& machine) {
  switch (attribute.kind) {
    case AttributeKind::kExclusive:
    case AttributeKind::kSmtPreferred:
    case AttributeKind::kNumaSingle:
      return free;
    case AttributeKind::kSmtRequired:
    case AttributeKind::kSmtDenied:
      return WholeCores(machine, free);
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
                    "{} is a policy of the program, which no driver can set; write mem=bind, or "
                    "have the program set it",
                    attribute.text);
    default:
      return Errorf(StatusCode::kInvalidArgument,
                    "{} is nothing that this driver keeps; leave it out, or write {}? to run "
                    "without",
                    attribute.text, attribute.text);
  }
}

/// One line, as it is served.
class LineChoice {
 public:
  LineChoice(const SpecLine& line, Attributes asked, const Room& room, const CpuLayout& layout,
             const CpuKnobs& knobs)
      : line_(line), asked_(std::move(asked)), room_(room), layout_(layout), knobs_(knobs) {}

  /// From `free`.
  StatusOr<sdk::ComputePart> Take(const CpuSet& free) const {
    if (Find(asked_, AttributeKind::kShared) != nullptr) {
      return Share();
    }
    CpuSet allowed = free;
    for (const Attribute* attribute : asked_) {
      QRM_ASSIGN_OR_RETURN(const CpuSet narrower, Narrowed(*attribute, allowed));
      if (line_.any > 0 && narrower.Count() < line_.any) {
        return Errorf(StatusCode::kResourceExhausted,
                      "{} leaves CPUs {} and {} are asked for; ask for fewer or remove a pod",
                      attribute->text, narrower.Empty() ? "none" : ToString(narrower), line_.any);
      }
      allowed = narrower;
    }
    QRM_ASSIGN_OR_RETURN(sdk::ComputePart part,
                         line_.any == 0 ? TakeNamed(free, allowed) : TakeAny(allowed));
    std::vector<Attribute> kept;
    for (const Attribute* attribute : asked_) {
      kept.push_back(*attribute);
      kept.back().is_wish = false;
    }
    part.name = ToString(kept);
    return part;
  }

 private:
  const Machine& machine() const { return layout_.machine(); }

  /// CPUs that stay in the default pool.
  StatusOr<sdk::ComputePart> Share() const {
    for (const Attribute* attribute : asked_) {
      if (attribute->kind != AttributeKind::kShared) {
        return Errorf(StatusCode::kInvalidArgument,
                      "{} is of CPUs of a container's own, and shared ones are everybody's; leave "
                      "it out, or write exclusive",
                      attribute->text);
      }
    }
    if (!line_.named.IsSubsetOf(room_.shared)) {
      return Errorf(StatusCode::kResourceExhausted,
                    "CPUs {} are not in the default pool, for CPUs {} are; name those, or write "
                    "*{} for all of the pool",
                    ToString(line_.named - room_.shared), ToString(room_.shared),
                    line_.named.Count());
    }
    return sdk::ComputePart{.cpus = line_.named, .name = "shared", .shared = true};
  }

  StatusOr<CpuSet> Narrowed(const Attribute& attribute, const CpuSet& cpus) const {
    constexpr int64_t kHigh = 700;
    if (line_.any == 0 && attribute.kind == AttributeKind::kSmtRequired) {
      return cpus;  // Finish names the threads that are missing
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
                    "CPUs {} are not available, for CPUs {} are; name those, or write *{} for any",
                    ToString(named - free), ToString(free), named.Count());
    }
    if (!named.IsSubsetOf(allowed)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "CPUs {} cannot have {}; name others, or write *{} for any that can",
                    ToString(named - allowed), TextOfAsked(), named.Count());
    }
    if (Find(asked_, AttributeKind::kNumaSingle) != nullptr &&
        machine().NodesOf(named).Count() > 1) {
      return Errorf(StatusCode::kInvalidArgument, "CPUs {} are on nodes {}; name those of one",
                    ToString(named), ToString(machine().NodesOf(named)));
    }
    return Finish(named);
  }

  StatusOr<sdk::ComputePart> TakeAny(const CpuSet& allowed) const {
    const CpuSet threads = Find(asked_, AttributeKind::kSmtDenied) != nullptr
                               ? FirstThreads(machine(), allowed)
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
                  "no single NUMA node has {} of the CPUs {}; ask for fewer or remove a pod",
                  line_.any, ToString(threads));
  }

  /// Nodes that suit the other resources first, then those that are used already.
  std::vector<int> NodesByRoom(const CpuSet& cpus) const {
    const NumaMask mask = machine().node_mask();
    std::vector<int> nodes(mask.begin(), mask.end());
    const auto rank = [&](int node) {
      return std::pair(!room_.near.Has(node), (cpus & machine().CpusOf({node})).Count());
    };
    std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) { return rank(a) < rank(b); });
    return nodes;
  }

  StatusOr<CpuSet> TakeFrom(const CpuSet& cpus) const {
    const bool whole = Find(asked_, AttributeKind::kSmtRequired) != nullptr;
    StatusOr<CpuSet> taken =
        TakeCpusNear(layout_, cpus, line_.any, room_.near, {.full_physical_cpus_only = whole});
    if (!whole || taken.ok()) {
      return taken;
    }
    const CpuSet large = LargeCoresFirst(cpus);
    return large.Count() == line_.any ? large : taken;
  }

  /// Where cores have one thread or two, the small ones fill what large ones leave.
  CpuSet LargeCoresFirst(const CpuSet& cpus) const {
    std::vector<CpuSet> cores;
    for (const CpuGroup& core : machine().cores()) {
      if (core.cpus.IsSubsetOf(cpus)) {
        cores.push_back(core.cpus);
      }
    }
    std::stable_sort(cores.begin(), cores.end(),
                     [](const CpuSet& a, const CpuSet& b) { return a.Count() > b.Count(); });
    CpuSet taken;
    for (const CpuSet& core : cores) {
      if (taken.Count() + core.Count() <= line_.any) {
        taken |= core;
      }
    }
    return taken;
  }

  /// Checks what is true of the whole line only.
  StatusOr<sdk::ComputePart> Finish(const CpuSet& cpus) const {
    sdk::ComputePart part{.cpus = cpus};
    const CpuSet siblings = machine().CoresOf(cpus) - cpus;
    if (Find(asked_, AttributeKind::kSmtRequired) != nullptr && !siblings.Empty()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "smt-sibling-required needs CPUs {}, too, the other threads of the cores of "
                    "{}; ask for whole cores",
                    ToString(siblings), ToString(cpus));
    }
    if (Find(asked_, AttributeKind::kSmtDenied) != nullptr) {
      if (FirstThreads(machine(), cpus) != cpus) {
        return Errorf(StatusCode::kInvalidArgument,
                      "smt-sibling-denied and CPUs {} are threads of the same cores; name one "
                      "thread of each",
                      ToString(cpus));
      }
      part.idle = siblings;
    }
    return part;
  }

  std::string TextOfAsked() const {
    std::vector<Attribute> asked;
    for (const Attribute* attribute : asked_) {
      asked.push_back(*attribute);
    }
    return ToString(asked);
  }

  const SpecLine& line_;
  const Attributes asked_;
  const Room& room_;
  const CpuLayout& layout_;
  const CpuKnobs& knobs_;
};

/// A cgroup is a partition with all of its CPUs.
Status CheckBalance(const SpecLines& spec, const Wishes& wishes) {
  const auto is_balanced = [&](const SpecLine& line) {
    return Find(Asked(line, wishes), AttributeKind::kNoBalance) == nullptr;
  };
  const auto balanced = std::count_if(spec.begin(), spec.end(), is_balanced);
  return balanced == 0 || static_cast<std::size_t>(balanced) == spec.size()
             ? OkStatus()
             : Errorf(StatusCode::kInvalidArgument,
                      "no-balance is of all CPUs of a container, and stands in {} of {} lines; "
                      "write it in each",
                      spec.size() - static_cast<std::size_t>(balanced), spec.size());
}

/// OK when what `wishes` keep can be set for `parts` together.
Status CheckKnobs(const SpecLines& spec, const Wishes& wishes,
                  const std::vector<sdk::ComputePart>& parts, const CpuKnobs& knobs) {
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

/// Whether `own` CPUs, idle ones among them, and `shared` ones are as many as requested.
Status CheckUsed(int own, int shared, const Room& room) {
  const int requested = room.cpus + (room.has_fraction ? 1 : 0);
  if (own + shared != requested) {
    return Errorf(StatusCode::kInvalidArgument,
                  "the spec takes {} CPUs, idle thread siblings among them, and the container "
                  "requests {}, so that scheduler and node would count differently; make them the "
                  "same",
                  own + shared, requested);
  }
  if (own > room.cpus) {
    return Errorf(StatusCode::kInvalidArgument,
                  "the spec takes {} CPUs for the container alone, and of what it requests {} are "
                  "whole; have the rest shared",
                  own, room.cpus);
  }
  return own > 0 ? OkStatus()
                 : Errorf(StatusCode::kInvalidArgument,
                          "all of its CPUs would be shared; write exclusive for one at least, or "
                          "leave the container without a driver");
}

/// All lines, and whether they are as many CPUs as requested.
StatusOr<std::vector<sdk::ComputePart>> Try(const SpecLines& spec, const Wishes& wishes,
                                            const Room& room, const CpuLayout& layout,
                                            const CpuKnobs& knobs) {
  std::vector<std::size_t> order(spec.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return Freedom(spec[a], wishes) < Freedom(spec[b], wishes);
  });
  std::vector<sdk::ComputePart> parts(spec.size());
  CpuSet free = room.available & layout.all();
  int own = 0;
  int shared = 0;
  for (const std::size_t i : order) {
    StatusOr<sdk::ComputePart> part =
        LineChoice(spec[i], Asked(spec[i], wishes), room, layout, knobs).Take(free);
    QRM_RETURN_IF_ERROR(Annotate(part.status(), fmt::format("cores, line {}", i + 1)));
    const CpuSet taken = part->cpus | part->idle;
    free -= taken;
    (part->shared ? shared : own) += part->shared ? spec[i].Count() : taken.Count();
    parts[i] = *std::move(part);
  }
  QRM_RETURN_IF_ERROR(CheckUsed(own, shared, room));
  QRM_RETURN_IF_ERROR(CheckBalance(spec, wishes));
  QRM_RETURN_IF_ERROR(CheckKnobs(spec, wishes, parts, knobs));
  return parts;
}

/// What is so with every choice: found before any is tried.
Status CheckCount(const SpecLines& spec, const Room& room) {
  const int asked = std::accumulate(spec.begin(), spec.end(), 0, [](int sum, const SpecLine& line) {
    return sum + line.Count();
  });
  if (const int requested = room.cpus + (room.has_fraction ? 1 : 0); asked > requested) {
    return Errorf(StatusCode::kInvalidArgument,
                  "the spec asks for {} CPUs and the container requests {}; make them the same",
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
                                   const CpuKnobs& knobs) {
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
