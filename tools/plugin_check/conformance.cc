// Checks what a plugin says before it gives anything.
#include "tools/plugin_check/conformance.h"

#include <fmt/format.h>

#include "api/wire.h"
#include "manager/registry/registration_check.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "tools/plugin_check/run.h"

namespace qrm::manager {
namespace {

/// "with_topology_alignment=true need_reconcile=false pre_start_required=false".
std::string Describe(const PluginOptions& options) {
  return fmt::format("with_topology_alignment={} need_reconcile={} pre_start_required={}",
                     options.with_topology_alignment, options.need_reconcile,
                     options.pre_start_required);
}

/// "no preference", "impossible" or "3 hints".
std::string Describe(const HintList& hints) {
  if (hints.IsNoPreference()) {
    return "no preference";
  }
  return hints.IsImpossible() ? "impossible" : fmt::format("{} hints", hints.hints().size());
}

/// The hint that a manager would choose of one plugin's alone: preferred before not, then narrow.
TopologyHint BestOf(const HintList& hints) {
  TopologyHint best;
  bool any = false;
  for (const TopologyHint& hint : hints.hints()) {
    const bool better =
        hint.preferred != best.preferred ? hint.preferred : hint.nodes.Count() < best.nodes.Count();
    if (!any || better) {
      best = hint;
      any = true;
    }
  }
  return best;
}

}  // namespace

Verdict Run::All() {
  if (Starts() && Options() && Identity()) {
    Hints();
    Lifetime();
  }
  return Worst();
}

bool Run::Starts() {
  return settings_.command.empty() ||
         HoldsIf(plugin_.RunAnew(), "serves its socket when it is started");
}

bool Run::Options() {
  const std::string rule = "answers GetResourcePluginOptions";
  const auto options = Ask<calls::GetOptions>({});
  if (absl::IsUnimplemented(options.status())) {
    return Broken(rule, "it leaves it out, so that qrmd takes it for no plugin; answer it");
  }
  if (!options.ok()) {
    return Broken(rule, MessageOf(options.status()));
  }
  options_ = *options;
  return Holds(rule, Describe(options_));
}

bool Run::Identity() {
  const std::string rule = "announces itself to the watched directory's manager";
  const auto identity = Ask<calls::GetInfo>({});
  if (absl::IsUnimplemented(identity.status())) {
    Skipped(rule, "no pluginregistration service: it must call Register itself");
  } else if (!identity.ok()) {
    Broken(rule, MessageOf(identity.status()));
  } else {
    if (identity->type != wire::kResourcePluginType) {
      Broken(rule, fmt::format("its type is \"{}\"; answer \"{}\"", identity->type,
                               wire::kResourcePluginType));
    } else {
      HoldsIf(CheckVersions(identity->supported_versions), rule,
              "as the plugin of " + identity->name);
    }
    resource_ = resource_.empty() ? identity->name : resource_;
  }
  if (resource_.empty()) {
    return Broken("serves a resource with a valid name", "it names none; give --resource");
  }
  return HoldsIf(CheckResourceName(resource_), "serves a resource with a valid name", resource_);
}

void Run::Hints() {
  const std::string rule = "gives hints that this machine can satisfy";
  if (!options_.with_topology_alignment) {
    Skipped(rule, "the plugin does not align with topology");
    return;
  }
  hint_ = TopologyHint{};
  const auto ask = [&] { return Ask<calls::GetTopologyHints>(RequestFor("main", 0)); };
  const StatusOr<HintList> hints = ask();
  if (!hints.ok()) {
    RefusedOrBroken(rule, hints.status());
    return;
  }
  Holds(rule, Describe(*hints));
  if (hints->IsImpossible()) {
    Refused("can serve the amount that is asked",
            fmt::format("no node can serve {} of {}", settings_.amount, resource_));
    return;
  }
  const StatusOr<HintList> again = ask();
  const bool same = again.ok() && *again == *hints;
  const std::string steady = "gives the same hints again: asking reserves nothing";
  same ? Holds(steady) : Broken(steady, again.ok() ? Describe(*again) : MessageOf(again.status()));
  hint_ = BestOf(*hints);
}

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "ok";
    case Verdict::kBroken:
      return "BROKEN";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kSkipped:
      break;
  }
  return "skipped";
}

Verdict CheckPlugin(const CheckSettings& settings, const Machine& machine,
                    const std::function<void(const RuleResult&)>& report) {
  return Run(settings, machine, report).All();
}

}  // namespace qrm::manager
