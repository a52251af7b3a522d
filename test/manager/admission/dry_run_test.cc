// What would become of a pod if it came now, without a trace on the node.
#include "manager/admission/dry_run.h"

#include <memory>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "plugins/cpu/cpu_plugin.h"
#include "test/manager/admission/admitter_fixture.h"
#include "test/manager/admission/driver_model.h"

namespace qrm::manager::dry_run_test {
namespace {

using test::AdmitterTest;
using test::Demand;
using test::PluginScript;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using Result = DryRunReport::Result;

PluginScript Hints(StatusOr<HintList> hints) {
  PluginScript script;
  script.hints = std::move(hints);
  return script;
}

HintList OnNode(int node) {
  return HintList({{.nodes = NumaMask{node}, .preferred = true}});
}

Status Full() {
  return Errorf(StatusCode::kResourceExhausted, "none left; wait");
}

/// Container main, then container logger.
placement::ContainerDemand TwoContainers() {
  placement::ContainerDemand demand = Demand();
  demand.others = {Demand("web", "logger")};
  demand.others[0].type = ContainerType::kSidecar;
  return demand;
}

placement::AdmissionOptions PodScope() {
  placement::AdmissionOptions options;
  options.scope = TopologyScope::kPod;
  return options;
}

class DryRunTest : public AdmitterTest {
 protected:
  DryRunReport Run(const std::vector<placement::ContainerDemand>& admissions,
                   placement::AdmissionOptions options = {}) {
    return DryRun({.plugins = plugins_, .machine = machine_, .clock = clock_}, std::move(options))
        .Run(admissions, DeadlineAfter(std::chrono::seconds(10)));
  }
  static nlohmann::json TraceOf(const DryRunReport& report) {
    return nlohmann::json::parse(report.decisions.at(0).trace.json);
  }
};

TEST_F(DryRunTest, AsksForHintsOnlyAndLeavesNoTrace) {
  const DryRunReport report = Run({Demand()});
  EXPECT_EQ(report.result, Result::kAdmitted);
  EXPECT_EQ(report.message, "");
  EXPECT_THAT(plugins_.calls(), ElementsAre("hints cpu", "hints memory"));
  EXPECT_EQ(journal_.commits(), 0u);
  EXPECT_EQ(state_.Load()->pod_count(), 0u);
  EXPECT_THAT(decisions_.log.Read(), IsEmpty());
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(DryRunTest, ReportsWhatTheAdmissionThatFollowsReportsUpToItsMerge) {
  plugins_.Set("memory", Hints(OnNode(1)));
  const nlohmann::json dry = TraceOf(Run({Demand()}));
  ASSERT_TRUE(Admit(Demand()).ok());
  const nlohmann::json real = LastTrace();
  for (const char* part : {"container", "requests", "policy", "hints", "merged", "result"}) {
    EXPECT_EQ(dry[part], real[part]) << part;
  }
  EXPECT_EQ(dry["merged"]["memory"]["nodes"], nlohmann::json::array({1}));
  EXPECT_EQ(dry["moment"], "dry run");
  EXPECT_EQ(dry["steps_not_done"],
            nlohmann::json::array({"allocate cpu", "allocate memory", "commit"}));
  EXPECT_FALSE(dry.contains("allocations"));
  EXPECT_FALSE(real.contains("steps_not_done"));
}

TEST_F(DryRunTest, RejectsWithTheSentenceOfTheAdmissionThatFollows) {
  plugins_.Set("cpu", Hints(Full()));
  const DryRunReport report = Run({TwoContainers()});
  EXPECT_EQ(report.result, Result::kRejected);
  EXPECT_EQ(report.message, Rejection(TwoContainers()));
  EXPECT_THAT(report.message, HasSubstr("container main of pod default/web: resource cpu: none"));
  EXPECT_THAT(report.decisions, SizeIs(1));
  EXPECT_FALSE(TraceOf(report).contains("steps_not_done"));
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(DryRunTest, SaysWhatTheMergeExcluded) {
  plugins_.Set("cpu", Hints(OnNode(0)));
  plugins_.Set("memory", Hints(OnNode(1)));
  placement::AdmissionOptions strict;
  strict.merge.policy = TopologyPolicy::kRestricted;
  const DryRunReport report = Run({Demand()}, strict);
  EXPECT_EQ(report.result, Result::kRejected);
  EXPECT_THAT(report.message, HasSubstr("no NUMA placement fits under topology-policy restricted"));
  EXPECT_FALSE(TraceOf(report)["merge_reasons"].empty());
}

TEST_F(DryRunTest, AsksProcessesAboutEachContainerSeparatelyAndSaysSo) {
  const DryRunReport report = Run({TwoContainers()});
  EXPECT_EQ(report.result, Result::kAdmitted);
  ASSERT_THAT(report.decisions, SizeIs(2));
  EXPECT_EQ(report.decisions[0].trace.key.container, "main");
  EXPECT_EQ(report.decisions[1].trace.key.container, "logger");
  EXPECT_THAT(report.notes, ElementsAre(AllOf(HasSubstr("only gave hints (cpu, memory)"),
                                              HasSubstr("without the pod's other containers")),
                                        HasSubstr("nothing is reserved")));
}

TEST_F(DryRunTest, AsksWithScopePodAboutAllTogetherAndThenAboutEach) {
  const DryRunReport report = Run({TwoContainers()}, PodScope());
  EXPECT_THAT(plugins_.calls(), SizeIs(6));
  EXPECT_EQ(plugins_.hinted("cpu").requests.at("cpu"), 2);
  EXPECT_FALSE(plugins_.hinted("cpu").for_whole_pod);
  EXPECT_EQ(TraceOf(report)["scope"], "pod");
}

TEST_F(DryRunTest, RejectsThePodWhenItsContainersDoNotFitTogether) {
  plugins_.Set("memory", Hints(Full()));
  const DryRunReport report = Run({TwoContainers()}, PodScope());
  EXPECT_EQ(report.result, Result::kRejected);
  EXPECT_EQ(report.message, Rejection(TwoContainers(), PodScope()));
  EXPECT_THAT(report.message, HasSubstr("its containers together: resource memory"));
  EXPECT_THAT(report.decisions, SizeIs(1));
  EXPECT_EQ(plugins_.hinted("cpu").requests.at("cpu"), 4);
  EXPECT_TRUE(plugins_.hinted("cpu").for_whole_pod);
}

placement::AdmissionOptions WithPolicy(TopologyPolicy policy) {
  placement::AdmissionOptions options;
  options.merge.policy = policy;
  return options;
}

TEST_F(DryRunTest, RejectsUnderEveryPolicyWhatAPluginHintsToBeImpossible) {
  plugins_.Set("memory", Hints(HintList::Impossible()));
  for (const TopologyPolicy policy :
       {TopologyPolicy::kNone, TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted}) {
    const DryRunReport report = Run({Demand()}, WithPolicy(policy));
    EXPECT_EQ(report.result, Result::kRejected) << ToString(policy);
  }
  EXPECT_THAT(Run({Demand()}, WithPolicy(TopologyPolicy::kNone)).message,
              AllOf(HasSubstr("resource memory: its plugin hints that no NUMA node can serve"),
                    HasSubstr("free some of memory")));
}

TEST_F(DryRunTest, RejectsUnderPolicyNoneWhatAPluginHintsWithAnError) {
  plugins_.Set("memory", Hints(Full()));
  const DryRunReport report = Run({Demand()}, WithPolicy(TopologyPolicy::kNone));
  EXPECT_EQ(report.result, Result::kRejected);
  EXPECT_THAT(report.message, HasSubstr("resource memory: none left; wait"));
}

TEST_F(DryRunTest, LeavesAFailedHintCallToTheAllocationAsTheAdmissionDoes) {
  plugins_.Set("memory", Hints(Errorf(StatusCode::kUnknown, "the NIC's file is locked; wait")));
  for (const TopologyPolicy policy : {TopologyPolicy::kNone, TopologyPolicy::kBestEffort}) {
    const DryRunReport report = Run({Demand()}, WithPolicy(policy));
    EXPECT_EQ(report.result, Result::kAdmitted) << ToString(policy) << ": " << report.message;
  }
  EXPECT_EQ(Run({Demand()}, WithPolicy(TopologyPolicy::kRestricted)).result, Result::kRejected);
}

TEST_F(DryRunTest, NamesPluginsThatGiveNoHints) {
  PluginScript unaligned;
  unaligned.options.with_topology_alignment = false;
  plugins_.Set("memory", unaligned);
  const DryRunReport report = Run({Demand()});
  EXPECT_EQ(report.result, Result::kAdmitted);
  EXPECT_THAT(report.notes,
              ElementsAre(HasSubstr("the plugin of memory gives no hints"),
                          HasSubstr("only gave hints (cpu)"), HasSubstr("nothing is reserved")));
}

TEST_F(DryRunTest, SkipsWhatAnAdmissionWouldSkip) {
  placement::AdmissionOptions options;
  options.skipped_namespaces = {"default"};
  const DryRunReport skipped = Run({TwoContainers()}, options);
  EXPECT_EQ(skipped.result, Result::kSkipped);
  EXPECT_EQ(skipped.message, "namespace default is in skip-namespaces");
  EXPECT_THAT(skipped.decisions, SizeIs(2));

  plugins_.Drop("cpu");
  plugins_.Drop("memory");
  const DryRunReport unserved = Run({Demand()});
  EXPECT_EQ(unserved.result, Result::kSkipped);
  EXPECT_EQ(unserved.message, "no plugin serves what it requests");
  EXPECT_THAT(unserved.notes, IsEmpty());
}

TEST_F(DryRunTest, RejectsWhatAPluginThatIsNotRunningWouldServe) {
  PluginScript away;
  away.live = false;
  away.problem = "it was killed";
  plugins_.Set("cpu", away);
  const DryRunReport report = Run({Demand()});
  EXPECT_EQ(report.result, Result::kRejected);
  EXPECT_THAT(report.message,
              AllOf(StartsWith("cannot admit container main of pod default/web: resource cpu:"),
                    HasSubstr("it was killed")));
}

TEST_F(DryRunTest, GoesOnWithContainersThatArePlacedWithoutTheRest) {
  plugins_.Set("cpu", Hints(Full()));
  plugins_.on_call = [&, asked = 0](const std::string& call) mutable {
    if (call == "hints cpu" && ++asked == 2) {
      plugins_.Set("cpu", Hints(OnNode(0)));
    }
  };
  const DryRunReport report = Run({Demand(), Demand("web", "logger")});
  EXPECT_EQ(report.result, Result::kRejected);
  ASSERT_THAT(report.decisions, SizeIs(2));
  EXPECT_EQ(report.decisions[0].result, Result::kRejected);
  EXPECT_EQ(report.decisions[1].result, Result::kAdmitted);
}

/// 16 CPUs of 8 cores on two nodes, and kubelet's static policy that gives whole cores only.
class WholeCoresNode {
 public:
  explicit WholeCoresNode(const placement::AdmissionOptions& options)
      : admitter_({.state = state_,
                   .decisions = decisions_.log,
                   .plugins = plugins_,
                   .releaser = releaser_,
                   .machine = machine_,
                   .clock = clock_},
                  options),
        dry_run_({.plugins = plugins_, .machine = machine_, .clock = clock_}, options) {
    cpu::CpuPluginConfig config{.reserved = {0, 1}, .static_mode = cpu::StaticConfig{}};
    config.static_mode->options.full_physical_cpus_only = true;
    auto plugin = cpu::MakeCpuPlugin(config, machine_);
    EXPECT_TRUE(plugin.ok()) << plugin.status();
    cpu_ = *std::move(plugin);
    plugins_.Add("cpu", *cpu_);
  }

  /// Empty: the container would be admitted.
  std::string Foretell(const placement::ContainerDemand& demand) {
    return dry_run_.Run({demand}, DeadlineAfter(std::chrono::seconds(10))).message;
  }
  std::string Admit(const placement::ContainerDemand& demand) {
    return MessageOf(test::RunOn(state_, [&] {
      return admitter_
          .Admit(demand, Admitter::Moment::kAtCreation, DeadlineAfter(std::chrono::seconds(10)))
          .status();
    }));
  }

 private:
  static Machine TwoThreadsACore() {
    MachineParts parts = test::SampleMachine(2, 8).parts();
    for (Cpu& cpu : parts.cpus) {
      cpu.core = cpu.id / 2;
    }
    return Machine(std::move(parts));
  }

  const Machine machine_ = TwoThreadsACore();
  test::Journal journal_;
  std::unique_ptr<sdk::ResourcePlugin> cpu_;
  test::ServedPlugins plugins_;
  test::ManualClock clock_;
  test::TempDecisions decisions_;
  StateLoop state_{test::OpenMemoryStore(journal_)};
  Releaser releaser_{state_, plugins_, {}};
  Admitter admitter_;
  DryRun dry_run_;
};

TEST(DryRunAgreementTest, ForetellsWhatAnAdmissionDecidesUnderWholeCoresOnly) {
  int refused = 0;
  std::mt19937 random(20261128);
  for (const TopologyPolicy policy :
       {TopologyPolicy::kNone, TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted,
        TopologyPolicy::kSingleNumaNode}) {
    for (const TopologyScope scope : {TopologyScope::kContainer, TopologyScope::kPod}) {
      placement::AdmissionOptions options{.merge = {.policy = policy}, .scope = scope};
      options.native_resources = {"cpu"};
      WholeCoresNode node(options);
      for (int pod = 0; pod < 20; ++pod) {
        placement::ContainerDemand demand = Demand("pod" + std::to_string(pod));
        demand.requests = {{"cpu", test::Pick(random, 1, 7) / (pod % 5 == 0 ? 2.0 : 1.0)}};
        const bool with_half = pod % 3 == 0;  // beside it: no more exclusive CPUs
        if (with_half) {
          demand.others = {Demand("pod" + std::to_string(pod), "beside")};
          demand.others[0].requests = {{"cpu", 0.5}};
          demand.others[0].type = ContainerType::kSidecar;
        }
        const std::string foretold = node.Foretell(demand);
        const std::string decided = node.Admit(demand);
        EXPECT_EQ(foretold.empty(), decided.empty())
            << ToString(policy) << ", " << demand.requests.at("cpu")
            << (with_half ? " and 0.5" : "") << " CPUs: \"" << foretold << "\", then \"" << decided
            << '"';
        refused += decided.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(refused, 60);
}

TEST_F(DryRunTest, StopsAtItsDeadline) {
  const DryRunReport report =
      DryRun({.plugins = plugins_, .machine = machine_, .clock = clock_}, {})
          .Run({Demand()}, clock_.Steady());
  EXPECT_EQ(report.result, Result::kRejected);
  EXPECT_THAT(report.message, HasSubstr("the admission deadline passed before the step \"hints\""));
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::dry_run_test
