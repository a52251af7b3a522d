// Puts the parts of an admission together, on a machine of sixteen CPUs.
#include "test/manager/permissions/permission_node.h"

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "api/base/check.h"
#include "api/base/clock.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/classes/class_book.h"
#include "manager/daemon/config_table.h"
#include "manager/demand/new_pod.h"
#include "plugins/sdk/compute_plugin.h"
#include "test/manager/admission/driver_model.h"
#include "test/support/fake_class_provider.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_decisions.h"

namespace qrm::test {
namespace {

constexpr char kUid[] = "uid";

/// Gives the first CPUs of the offer.
class FirstCpus final : public sdk::ComputeDriver {
 public:
  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override {
    CpuSet cpus;
    for (const int cpu : request.available) {
      if (cpus.Count() * int64_t{1000} < request.milli_cpus) {
        cpus.Add(cpu);
      }
    }
    return sdk::ComputeGrant{.parts = {{.cpus = cpus}}};
  }
};

std::unique_ptr<manager::ClassBook> MakeBook(const manager::ClassesOptions& options) {
  manager::ClassBook::Providers providers;
  for (const auto& [type, rules] : options.types) {
    sdk::ClassType made{.name = type};
    made.level = manager::IsPluginType(type) ? sdk::ClassLevel::kPod : sdk::ClassLevel::kContainer;
    for (const auto& [name, rule] : rules.classes) {
      made.classes.push_back({.name = name});
    }
    providers.push_back(std::make_unique<FakeClassProvider>(std::move(made)));
  }
  return std::make_unique<manager::ClassBook>(options, std::move(providers));
}

}  // namespace

struct PermissionNode::Parts {
  /// The plugins of one configuration, and the drivers.
  struct Served {
    std::vector<manager::BuiltinPlugin> builtin;
    FirstCpus driver;
    sdk::ComputePlugin fast{driver};
    sdk::ComputePlugin near{driver};
    ServedPlugins plugins;
  };

  Journal journal;
  const Machine machine = SampleMachine(2, 8);
  SystemClock clock;
  TempDecisions decisions;
  manager::StateLoop state{OpenMemoryStore(journal)};
  std::map<std::string, Served> served;  // by the text of the plugins' part
  Served* now = nullptr;
  placement::PodKeys keys;
  std::unique_ptr<manager::ClassBook> book;
  std::unique_ptr<manager::Releaser> releaser;
  std::unique_ptr<manager::Admitter> admitter;
};

PermissionNode::PermissionNode() : parts_(std::make_unique<Parts>()) {
  log::SetLevel(log::Level::kError);
}

PermissionNode::~PermissionNode() = default;

Status PermissionNode::Configure(const nlohmann::json& config) {
  QRM_ASSIGN_OR_RETURN(const manager::Config read,
                       manager::ReadConfigText(config.dump(), "drawn", {}));
  const auto [place, is_new] = parts_->served.try_emplace(config.at("plugins").dump());
  Parts::Served& served = place->second;
  if (is_new) {
    QRM_ASSIGN_OR_RETURN(served.builtin,
                         manager::MakeBuiltinPlugins(read.builtin, parts_->machine));
    for (const manager::BuiltinPlugin& plugin : served.builtin) {
      served.plugins.Add(plugin.resource, *plugin.plugin);
    }
    served.plugins.Add("cci.qrm.io/fast", served.fast);
    served.plugins.Add("cci.qrm.io/near", served.near);
  }
  parts_->now = &served;
  parts_->keys = read.pod_keys;
  parts_->admitter.reset();
  parts_->book = MakeBook(read.classes);
  parts_->releaser =
      std::make_unique<manager::Releaser>(parts_->state, served.plugins, read.admission);
  parts_->admitter = std::make_unique<manager::Admitter>(
      manager::Admitter::Parts{.state = parts_->state,
                               .decisions = parts_->decisions.log,
                               .plugins = served.plugins,
                               .releaser = *parts_->releaser,
                               .machine = parts_->machine,
                               .clock = parts_->clock,
                               .listener = {},
                               .classes = parts_->book.get()},
      read.admission);
  return OkStatus();
}

Status PermissionNode::Admit(const AskingPod& pod) {
  QRM_ASSIGN_OR_RETURN(
      const manager::NewPod read,
      manager::ReadNewPod(MessageOfPod(pod), kUid, parts_->keys, manager::SpecsFrom::kKubelet));
  std::vector<placement::ContainerDemand> demands = read.admissions;
  demands.insert(demands.end(), demands.front().others.begin(), demands.front().others.end());
  return RunOn(parts_->state, [&]() -> Status {
    for (const placement::ContainerDemand& demand : demands) {
      QRM_RETURN_IF_ERROR(parts_->admitter
                              ->Admit(demand, manager::Admitter::Moment::kAtCreation,
                                      DeadlineAfter(std::chrono::seconds(60)))
                              .status());
    }
    return OkStatus();
  });
}

std::optional<checkpoint::PodRecord> PermissionNode::Has() const {
  const auto state = parts_->state.Load();
  const checkpoint::PodRecord* pod = state->FindPod(kUid);
  return pod == nullptr ? std::nullopt : std::optional(*pod);
}

void PermissionNode::Remove() {
  RunOn(parts_->state, [&] { QRM_CHECK(parts_->releaser->RemovePods({kUid}).ok()); });
  Settle(parts_->state);
}

}  // namespace qrm::test
