// Whole pods through admission: whatever their labels, annotations and requests are, they are
// placed or rejected with a short sentence, and leave the plugins' books as they were.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/check.h"
#include "api/base/clock.h"
#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "api/base/section.h"
#include "api/proto/core/v1/pod.pb.h"
#include "checkpoint/store.h"
#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/demand/new_pod.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/nic/nic_plugin.h"
#include "test/support/answer_if.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_decisions.h"

namespace {

using namespace qrm;  // NOLINT(google-build-using-namespace): a program of one file
using placement::ContainerDemand;

constexpr char kUid[] = "uid";
constexpr std::size_t kLongestSentence = 4096;

/// Keeps the state in memory, and no history.
class Memory final : public checkpoint::Store {
 public:
  Status Commit(const checkpoint::Change& change) override {
    state_ = state_.With(change);
    return OkStatus();
  }
  Status Remember(const checkpoint::Change& change) override { return Commit(change); }
  Status Recall() override { return OkStatus(); }
  const checkpoint::NodeState& state() const override { return state_; }

 private:
  checkpoint::NodeState state_;
};

config::Section SectionOf(const std::string& text) {
  return config::Section::Parse(text, "fuzz").value();
}

/// The three plugins of qrmd, called in the caller's thread.
class PolicyPlugins final : public manager::Plugins {
 public:
  explicit PolicyPlugins(const Machine& machine) {
    plugins_["cpu"] =
        cpu::MakeCpuPlugin(
            cpu::ParseCpuConfig(SectionOf("reserved-cpus: \"0\"\n"
                                          "pools: {batch: {cpus: \"1\", roles: [etl]}}\n"
                                          "roles: {own: {}}"))
                .value(),
            machine)
            .value();
    plugins_["memory"] =
        memory::MakeMemoryPlugin(memory::ParseMemoryConfig(SectionOf("roles: {own: {}}")).value(),
                                 machine)
            .value();
    plugins_["NIC"] =
        nic::MakeNicPlugin(
            nic::ParseNicConfig(
                SectionOf(
                    "nics: [{interface: eth0, numa-node: 0, ipv4: 10.0.0.1, netns: /run/netns/a}]"))
                .value(),
            machine, {})
            .value();
  }

  std::vector<manager::PluginInfo> List() const override {
    std::vector<manager::PluginInfo> infos;
    infos.reserve(plugins_.size());
    for (const auto& [resource, plugin] : plugins_) {
      infos.push_back(Info(resource));
    }
    return infos;
  }
  std::optional<manager::PluginInfo> Find(const std::string& resource) const override {
    return plugins_.contains(resource) ? std::optional(Info(resource)) : std::nullopt;
  }
  void MarkSuspect(const std::string&, const std::string&) override { QRM_CHECK(false); }
  void Forget(const std::string&) override {}

  /// What each plugin would report of its books.
  std::string Books() const {
    std::string books;
    for (const auto& [resource, plugin] : plugins_) {
      books += plugin->ExportState({}) + plugin->SaveState();
    }
    return books;
  }

 private:
  static manager::PluginInfo Info(const std::string& resource) {
    return {.resource = resource,
            .endpoint = "built-in",
            .registered_by = manager::RegisteredBy::kBuiltIn,
            .options = {.with_topology_alignment = true},
            .live = true};
  }
  void Start(const std::string& resource, std::shared_ptr<calls::Call> call, Deadline) override {
    sdk::ResourcePlugin& plugin = *plugins_.at(resource);
    const auto allocate = [&](const ContainerRequest& request) -> StatusOr<AllocationByResource> {
      held_.insert(request.key);
      QRM_ASSIGN_OR_RETURN(ResourceAllocation given,
                           plugin.Allocate(request, request.hint.value_or(TopologyHint())));
      return AllocationByResource{{resource, std::move(given)}};
    };
    const auto remove = [&](const std::vector<ContainerKey>& keys) -> StatusOr<calls::Nothing> {
      plugin.Remove(keys);
      return calls::Nothing{};
    };
    const bool answered =
        test::AnswerIf<calls::GetTopologyHints>(
            call, [&](const ContainerRequest& request) { return plugin.Hints(request); }) ||
        test::AnswerIf<calls::Allocate>(call, allocate) ||
        test::AnswerIf<calls::ReleaseContainer>(
            call, [&](const ContainerKey& key) { return remove({key}); }) ||
        test::AnswerIf<calls::RemovePod>(
            call, [&](const std::string&) { return remove({held_.begin(), held_.end()}); });
    QRM_CHECK(answered);
  }

  std::map<std::string, std::unique_ptr<sdk::ResourcePlugin>> plugins_;
  std::set<ContainerKey> held_;  // of the one pod that there is
};

/// Takes the input apart: each text is a byte that is its length, and its bytes.
class Input {
 public:
  Input(const uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::size_t Number() {
    const std::size_t number = empty() ? 0 : static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(empty() ? 0 : 1);
    return number;
  }
  /// Each byte is a character, and the result is UTF-8, since messages have no other text.
  std::string Text() {
    std::string text;
    for (std::size_t left = Number(); left > 0 && !empty(); --left) {
      const std::size_t character = Number();
      if (character < 0x80) {
        text += static_cast<char>(character);
      } else {
        text += static_cast<char>(0xc0 | character >> 6);
        text += static_cast<char>(0x80 | (character & 0x3f));
      }
    }
    return text;
  }

 private:
  std::string_view rest_;
};

/// The keys that are read, so that the fuzzer need not find them.
constexpr std::string_view kKeys[] = {
    "katalyst.kubewharf.io/qos_level",          "katalyst.kubewharf.io/cpu_enhancement",
    "katalyst.kubewharf.io/memory_enhancement", "katalyst.kubewharf.io/skip_qrm_admit",
    "katalyst.kubewharf.io/pod_role",           "kubernetes.io/pod-role",
    "katalyst.kubewharf.io/pod_type",           "kubernetes.io/main-container-name"};
constexpr std::string_view kResources[] = {"cpu", "memory", "hugepages-2Mi", "NIC"};
constexpr std::string_view kNamespaces[] = {"default", "kube-system", "listed"};

::k8s::io::api::core::v1::Pod PodOf(Input input) {
  ::k8s::io::api::core::v1::Pod pod;
  auto& meta = *pod.mutable_metadata();
  meta.set_namespace_(std::string(kNamespaces[input.Number() % std::size(kNamespaces)]));
  meta.set_name("pod");
  auto* container = pod.mutable_spec()->add_containers();
  container->set_name("main");
  while (!input.empty()) {
    const std::size_t what = input.Number();
    const std::string key =
        what % 16 < std::size(kKeys) ? std::string(kKeys[what % 16]) : input.Text();
    const std::string resource(kResources[what % std::size(kResources)]);
    switch (what / 16 % 5) {
      case 0:
        (*meta.mutable_labels())[key] = input.Text();
        break;
      case 1:
        (*meta.mutable_annotations())[key] = input.Text();
        break;
      case 2:
        (*container->mutable_resources()->mutable_requests())[resource].set_string(input.Text());
        break;
      case 3:
        (*container->mutable_resources()->mutable_limits())[resource].set_string(input.Text());
        break;
      default:
        container = what % 2 == 0 ? pod.mutable_spec()->add_containers()
                                  : pod.mutable_spec()->add_init_containers();
        container->set_name("c" + std::to_string(what) + input.Text());
    }
  }
  return pod;
}

placement::AdmissionOptions Options() {
  placement::AdmissionOptions options;
  const config::Section section = SectionOf(
      "permissions: [{namespaces: [listed], allow: [reserved-cpus, opt-out], roles: [\"o*\"]}]");
  const Status read = placement::PermissionsKey("permissions", options.permissions, "")
                          .read(section, "permissions");
  QRM_CHECK(read.ok());
  return options;
}

struct Node {
  Machine machine = test::SampleMachine();
  PolicyPlugins plugins{machine};
  SystemClock clock;
  manager::StateLoop state{{.store = std::make_unique<Memory>()}, {}};
  manager::Releaser releaser{state, plugins, Options()};
  test::TempDecisions decisions;
  manager::Admitter admitter{{.state = state,
                              .decisions = decisions.log,
                              .plugins = plugins,
                              .releaser = releaser,
                              .machine = machine,
                              .clock = clock,
                              .listener = {}},
                             Options()};
  const std::string books = plugins.Books();
};

/// Checks that the text is short, and does not move a terminal's cursor.
void CheckSentence(const std::string& sentence) {
  QRM_CHECK(!sentence.empty() && sentence.size() <= kLongestSentence);
  QRM_CHECK(Escaped(sentence) == sentence);
}

void AdmitAll(Node& node, const std::vector<placement::ContainerDemand>& demands) {
  for (const placement::ContainerDemand& demand : demands) {
    const StatusOr<manager::RunOptions> admitted = node.admitter.Admit(
        demand, manager::Admitter::Moment::kAtCreation, DeadlineAfter(std::chrono::seconds(60)));
    if (!admitted.ok()) {
      CheckSentence(MessageOf(admitted.status()));
    }
  }
}

/// Checks that the recorded decisions fit, and are documents.
void CheckDecisions(const std::vector<checkpoint::DecisionTrace>& decisions) {
  for (const checkpoint::DecisionTrace& decision : decisions) {
    const std::string& json = decision.json;
    QRM_CHECK(json.size() <= (32 << 10) && nlohmann::json::accept(json));
  }
}

void RemovePod(Node& node) {
  QRM_CHECK(node.releaser.RemovePods({kUid}).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  log::SetLevel(log::Level::kError);
  const auto pod = manager::ReadNewPod(PodOf(Input(data, size)).SerializeAsString(), kUid, {},
                                       manager::SpecsFrom::kKubelet);
  if (!pod.ok()) {
    return 0;
  }
  Node node;  // for each pod: reading one decision costs as much as reading all
  test::RunOn(node.state, [&] { AdmitAll(node, pod->admissions); });
  test::Settle(node.state);  // traces of rejections are kept after the answer
  CheckDecisions(node.decisions.log.Read());
  test::RunOn(node.state, [&] { RemovePod(node); });
  QRM_CHECK(node.plugins.Books() == node.books);
  return 0;
}
