// Checks the rules in the order of a container's life.
#include "tools/plugin_check/conformance.h"

#include <memory>
#include <optional>
#include <utility>

#include "api/rpc/calls_in_flight.h"
#include "api/wire.h"
#include "manager/registry/calls/fan_out.h"
#include "manager/registry/calls/grpc_plugin_client.h"
#include "manager/registry/registration_check.h"
#include "manager/state/allocation_check.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "tools/plugin_check/answer_text.h"

namespace qrm::manager {
namespace {

constexpr char kPodUid[] = "00000000-qrm-plugin-check";

/// One run: the plugin, and what it has answered so far.
class Run {
 public:
  Run(const CheckSettings& settings, const Machine& machine,
      const std::function<void(const RuleResult&)>& report)
      : settings_(settings),
        machine_(machine),
        report_(report),
        resource_(settings.resource),
        in_flight_(std::make_shared<rpc::CallsInFlight>()),
        plugin_(
            std::make_unique<GrpcPluginClient>(settings.socket, machine.node_mask(), in_flight_)) {}
  ~Run() { in_flight_->StopAndWait(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool All() {
    if (Options() && Identity() && Hints()) {
      Lifetime();
    }
    return !broken_;
  }

 private:
  bool Options();
  bool Identity();
  bool Hints();
  void Lifetime();
  bool Allocates(const ContainerRequest& request, AllocationByResource& given);
  void Prepares(const ContainerKey& key);
  void GivesTheSameAgain(const ContainerRequest& request, const AllocationByResource& given);
  void KeepsCpusApart(const AllocationByResource& first, const AllocationByResource& second);
  void Reconciles(const AllocationByResource& first, const AllocationByResource& second);
  /// What the plugin lists as allocated; nothing when that has settled `rule` already.
  std::optional<AllocationByContainer> Listed(const std::string& rule);
  void Offers();
  void SurvivesNonsense();
  void Removes();
  void ForgetsThePod();

  ContainerRequest RequestFor(const std::string& container, uint64_t index) const;
  Status CheckAgainstMachine(const ContainerKey& key, const AllocationByResource& given) const;

  /// Makes the call that `C` describes and waits for its answer.
  template <typename C>
  StatusOr<typename C::Answer> Ask(const typename C::Request& request) const {
    using Answer = typename C::Answer;
    const auto start = [&](std::size_t, const AnswerCallback<Answer>& answer) {
      plugin_->Ask<C>(request, deadline(), [answer](calls::CallResult<Answer> result) {
        answer(std::move(result.value));
      });
    };
    return std::move(FanOut<Answer>(1, deadline(), start).front());
  }
  StatusOr<AllocationByContainer> Reconcile() const;

  Deadline deadline() const { return DeadlineAfter(settings_.timeout); }

  bool Holds(const std::string& rule, const std::string& detail = "") {
    report_({rule, Verdict::kHolds, detail});
    return true;
  }
  bool Broken(const std::string& rule, const std::string& detail) {
    broken_ = true;
    report_({rule, Verdict::kBroken, detail});
    return false;
  }
  bool Skipped(const std::string& rule, const std::string& why) {
    report_({rule, Verdict::kSkipped, why});
    return true;
  }
  bool HoldsIf(const Status& status, const std::string& rule, const std::string& detail = "") {
    return status.ok() ? Holds(rule, detail) : Broken(rule, MessageOf(status));
  }

  const CheckSettings& settings_;
  const Machine& machine_;
  const std::function<void(const RuleResult&)>& report_;
  std::string resource_;
  PluginOptions options_;
  std::optional<TopologyHint> hint_;
  bool broken_ = false;
  const std::shared_ptr<rpc::CallsInFlight> in_flight_;
  const std::unique_ptr<GrpcPluginClient> plugin_;
};

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

CpuSet ExclusiveCpusOf(const AllocationByResource& given) {
  CpuSet cpus;
  for (const auto& [resource, allocation] : given) {
    if (allocation.exclusive && allocation.oci_property == kCpusetCpus) {
      const auto parsed = CpuSet::Parse(allocation.value);
      cpus |= parsed.ok() ? *parsed : CpuSet{};
    }
  }
  return cpus;
}

// --- calls

StatusOr<AllocationByContainer> Run::Reconcile() const {
  QRM_ASSIGN_OR_RETURN(const calls::HeldAllocations held, Ask<calls::GetResourcesAllocation>({}));
  return *held.Read();
}

ContainerRequest Run::RequestFor(const std::string& container, uint64_t index) const {
  ContainerRequest request;
  request.key = {kPodUid, container};
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
    if (const Status fits = CheckAllocation(key, ContainerType::kMain, allocation, machine_, {});
        !fits.ok()) {
      return Annotate(fits, "resource " + resource);
    }
  }
  return OkStatus();
}

// --- rules

bool Run::Options() {
  const std::string rule = "answers GetResourcePluginOptions";
  const auto options = Ask<calls::GetOptions>({});
  if (absl::IsUnimplemented(options.status())) {
    return Skipped(rule, "the plugin leaves it out: all options count as false");
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
    return Broken(rule, MessageOf(identity.status()));
  } else if (identity->type != wire::kResourcePluginType) {
    return Broken(rule, fmt::format("its type is \"{}\"; answer \"{}\"", identity->type,
                                    wire::kResourcePluginType));
  } else {
    if (!HoldsIf(CheckVersions(identity->supported_versions), rule,
                 "as the plugin of " + identity->name)) {
      return false;
    }
    resource_ = resource_.empty() ? identity->name : resource_;
  }
  if (resource_.empty()) {
    return Broken("serves a resource with a valid name", "it names none; give --resource");
  }
  return HoldsIf(CheckResourceName(resource_), "serves a resource with a valid name", resource_);
}

bool Run::Hints() {
  const std::string rule = "gives hints that this machine can satisfy";
  if (!options_.with_topology_alignment) {
    return Skipped(rule, "the plugin does not align with topology");
  }
  const auto ask = [&] { return Ask<calls::GetTopologyHints>(RequestFor("main", 0)); };
  const StatusOr<HintList> hints = ask();
  if (!hints.ok()) {
    return Broken(rule, MessageOf(hints.status()));
  }
  Holds(rule, Describe(*hints));
  if (hints->IsImpossible()) {
    return Broken("can serve the amount that is asked",
                  fmt::format("no node can serve {} of {}; choose another --amount or role",
                              settings_.amount, resource_));
  }
  const StatusOr<HintList> again = ask();
  const bool same = again.ok() && *again == *hints;
  const std::string steady = "gives the same hints again: asking reserves nothing";
  same ? Holds(steady) : Broken(steady, again.ok() ? Describe(*again) : MessageOf(again.status()));
  hint_ = BestOf(*hints);
  return true;
}

void Run::Lifetime() {
  ContainerRequest first_request = RequestFor("main", 0);
  ContainerRequest second_request = RequestFor("sidecar", 1);
  first_request.hint = hint_;
  second_request.hint = hint_.has_value() ? std::optional(TopologyHint{}) : std::nullopt;
  AllocationByResource first;
  AllocationByResource second;
  if (Allocates(first_request, first)) {
    GivesTheSameAgain(first_request, first);
    Prepares(first_request.key);
    if (Allocates(second_request, second)) {
      KeepsCpusApart(first, second);
      Reconciles(first, second);
    }
  }
  Offers();
  SurvivesNonsense();
  Removes();
}

bool Run::Allocates(const ContainerRequest& request, AllocationByResource& given) {
  const std::string rule = "allocates for container " + request.key.container;
  StatusOr<AllocationByResource> answer = Ask<calls::Allocate>(request);
  if (!answer.ok()) {
    return Broken(rule, MessageOf(answer.status()));
  }
  given = *std::move(answer);
  return HoldsIf(CheckAgainstMachine(request.key, given), rule, Describe(given));
}

void Run::GivesTheSameAgain(const ContainerRequest& request, const AllocationByResource& given) {
  const std::string rule = "gives the same allocation when it is asked again";
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
    const ContainerKey key{kPodUid, container};
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
  const std::string rule = "refuses a request without a pod and lives on";
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
  if (!HoldsIf(Ask<calls::RemovePod>(kPodUid).status(), "removes a pod")) {
    return;
  }
  HoldsIf(Ask<calls::RemovePod>(kPodUid).status(), "removes a pod that is gone already");
  ForgetsThePod();
}

void Run::ForgetsThePod() {
  const std::string rule = "forgets what a removed pod had";
  const std::optional<AllocationByContainer> listed = Listed(rule);
  if (!listed.has_value()) {
    return;
  }
  for (const auto& [key, given] : *listed) {
    if (key.pod_uid == kPodUid) {
      Broken(rule, fmt::format("container {} still has {}", key.container, Describe(given)));
      return;
    }
  }
  Holds(rule);
}

}  // namespace

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "ok";
    case Verdict::kBroken:
      return "BROKEN";
    case Verdict::kSkipped:
      break;
  }
  return "skipped";
}

bool CheckPlugin(const CheckSettings& settings, const Machine& machine,
                 const std::function<void(const RuleResult&)>& report) {
  return Run(settings, machine, report).All();
}

}  // namespace qrm::manager
