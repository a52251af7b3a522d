// Dry runs beside the daemon's work: one at a time, few in the queue, none after the end.
#include "manager/admission/dry_runs.h"

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"
#include "manager/admission/admitter.h"
#include "manager/admission/dry_run_report.h"
#include "manager/admission/releaser.h"
#include "test/support/answering_plugins.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_decisions.h"

namespace qrm::manager::dry_runs_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Answer = StatusOr<DryRunReport>;

std::string PodBytes() {
  ::k8s::io::api::core::v1::Pod pod;
  pod.mutable_metadata()->set_name("web");
  auto& main = *pod.mutable_spec()->add_containers();
  main.set_name("main");
  (*main.mutable_resources()->mutable_requests())["cpu"].set_string("2");
  (*main.mutable_resources()->mutable_requests())["example.com/nic"].set_string("1");
  return pod.SerializeAsString();
}

class DryRunsTest : public testing::Test {
 protected:
  DryRunsTest() { plugins_.Set("cpu", {}); }

  void Make(SpecsFrom specs) {
    runs_ = std::make_unique<DryRuns>(
        DryRuns::Parts{.plugins = plugins_,
                       .machine = machine_,
                       .clock = clock_,
                       .not_ready = [this] { return not_ready_; },
                       .specs_from = [specs] { return specs; }},
        placement::AdmissionOptions{.deadline = std::chrono::seconds(10)}, placement::PodKeys());
  }
  std::future<Answer> Ask(const std::string& pod = PodBytes()) {
    const auto answer = std::make_shared<std::promise<Answer>>();
    runs_->Ask(pod, [answer](const Answer& report) { answer->set_value(report); });
    return answer->get_future();
  }
  /// Delays the plugin's first answer until Release.
  void Hold() {
    plugins_.on_call = [this, first = true](const std::string&) mutable {
      if (std::exchange(first, false)) {
        asked_.set_value();
        held_.get_future().wait();
      }
    };
  }
  /// Asks, and returns when the plugin was called.
  std::future<Answer> AskAndWaitForThePlugin() {
    auto answer = Ask();
    asked_.get_future().wait();
    return answer;
  }
  void Release() { held_.set_value(); }

  test::AnsweringPlugins plugins_;
  const Machine machine_ = test::SampleMachine();
  const SystemClock clock_;
  std::vector<std::string> not_ready_;
  std::promise<void> asked_;
  std::promise<void> held_;
  std::unique_ptr<DryRuns> runs_;
};

TEST_F(DryRunsTest, TriesThePodUnderAnUnusedUid) {
  Make(SpecsFrom::kKubelet);
  const Answer first = Ask().get();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->result, DryRunReport::Result::kAdmitted);
  const std::string uid = plugins_.hinted("cpu").key.pod_uid;
  EXPECT_THAT(uid, StartsWith("dry-run-"));
  ASSERT_TRUE(Ask().get().ok());
  EXPECT_NE(plugins_.hinted("cpu").key.pod_uid, uid);
  EXPECT_THAT(first->notes, ElementsAre(StartsWith("plugins that are processes only gave hints"),
                                        StartsWith("nothing is reserved")));
}

TEST_F(DryRunsTest, SaysWhatQrmdWillNotKnowOfAPodWithoutItsSpec) {
  Make(SpecsFrom::kCgroups);
  const Answer report = Ask().get();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->notes.back(),
              HasSubstr("its requests of example.com/nic are not known then"));
}

TEST_F(DryRunsTest, IsAnErrorWhileQrmdIsNotReady) {
  Make(SpecsFrom::kKubelet);
  not_ready_ = {"kubelet pins CPUs; set cpuManagerPolicy: none", "the disk is full"};
  const Status refused = Ask().get().status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(refused),
            "cannot say what would become of the pod while qrmd is not ready: kubelet pins CPUs; "
            "set cpuManagerPolicy: none; the disk is full");
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(DryRunsTest, RejectsWhatIsNotAPod) {
  Make(SpecsFrom::kKubelet);
  EXPECT_EQ(Ask("\xff").get().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(DryRunsTest, HoldsUpNoAdmissionWhileAPluginKeepsItWaiting) {
  Make(SpecsFrom::kKubelet);
  Hold();
  auto report = AskAndWaitForThePlugin();

  test::Journal journal;
  StateLoop state(test::OpenMemoryStore(journal));
  Releaser releaser(state, plugins_, {});
  test::TempDecisions decisions;
  Admitter admitter({.state = state,
                     .decisions = decisions.log,
                     .plugins = plugins_,
                     .releaser = releaser,
                     .machine = machine_,
                     .clock = clock_,
                     .listener = {}},
                    {});
  const placement::ContainerDemand demand{
      .pod = test::SamplePod("db"), .container = "main", .requests = {{"cpu", 2}}};
  const auto admitted = test::RunOn(state, [&] {
    return admitter.Admit(demand, Admitter::Moment::kAtCreation,
                          DeadlineAfter(std::chrono::seconds(10)));
  });
  EXPECT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(report.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  Release();
  EXPECT_TRUE(report.get().ok());
  test::Settle(state);  // the decision is recorded after the answer
}

TEST_F(DryRunsTest, AnswersForTheLargestPodInAMessageThatIsTaken) {
  constexpr std::size_t kMostBytes = 16 << 20;  // of one message on the control socket
  ::k8s::io::api::core::v1::Pod pod;
  pod.mutable_metadata()->set_name(std::string(253, 'p'));
  for (int i = 0; i < 250; ++i) {
    pod.mutable_spec()->add_containers()->set_name(std::string(60, 'c') + std::to_string(100 + i));
  }
  Make(SpecsFrom::kKubelet);
  const Answer report = Ask(pod.SerializeAsString()).get();
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->decisions.size(), 250u);
  std::size_t bytes = 0;
  for (const DryRunReport::Decision& decision : report->decisions) {
    bytes += decision.trace.json.size();
  }
  EXPECT_LT(bytes, kMostBytes / 2);
}

TEST_F(DryRunsTest, LetsFewWaitAndAnswersAllAtItsEnd) {
  Make(SpecsFrom::kKubelet);
  Hold();
  auto running = AskAndWaitForThePlugin();
  std::vector<std::future<Answer>> waiting;
  waiting.reserve(4);
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(Ask());
  }
  const Answer refused = Ask().get();
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("4 other dry runs are waiting"));

  std::thread stopper([this] { runs_->Stop(); });
  while (Ask().get().status().code() != StatusCode::kUnavailable) {
    std::this_thread::yield();  // until it knows of its end
  }
  Release();
  stopper.join();
  EXPECT_TRUE(running.get().ok()) << "it had its turn";
  for (std::future<Answer>& answer : waiting) {
    EXPECT_EQ(answer.get().status().code(), StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace qrm::manager::dry_runs_test
