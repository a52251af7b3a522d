// qrmctl admit: what it sends, what it prints and how it exits.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/proto/core/v1/pod.pb.h"
#include "test/tools/qrmctl/qrmctl_fixture.h"

namespace qrm::manager::cli::qrmctl_admit_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Result = DryRunReport::Result;

constexpr char kPod[] = R"(apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop}
spec:
  containers:
  - name: main
    resources: {requests: {cpu: 2, memory: 2Gi}}
)";

class QrmctlAdmitTest : public QrmctlTest {
 protected:
  std::string Write(const std::string& text) {
    std::ofstream(file_) << text;
    return file_;
  }
  static DryRunReport Report(Result result, const std::string& message, const std::string& json) {
    return {.result = result,
            .message = message,
            .decisions = {{.trace = {.key = {"dry-run-1", "main"},
                                     .pod_namespace = "shop",
                                     .pod_name = "db",
                                     .admitted = result == Result::kAdmitted,
                                     .json = json},
                           .result = result,
                           .message = message}}};
  }

  const std::string file_ = dir_ / "pod.yaml";
};

TEST_F(QrmctlAdmitTest, PrintsTheDecisionAndTheStepsThatWereNotDone) {
  Serve();
  DryRunReport report = Report(
      Result::kAdmitted, "",
      R"({"result":"admitted","moment":"dry run","requests":{"cpu":{"amount":2,"source":"manifest"}},)"
      R"("policy":"best-effort","hints":{"cpu":[{"nodes":[0],"preferred":true}]},)"
      R"("merged":{"cpu":{"nodes":[0],"preferred":true}},"steps":[{"step":"hints","microseconds":412},)"
      R"({"step":"merge","microseconds":9}],"steps_not_done":["allocate","check","commit"]})");
  report.notes = {"nothing was allocated"};
  node_.dry_run = report;
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod)}), kDone) << err();
  EXPECT_EQ(out(),
            "shop/db would be admitted\n"
            "\n"
            "container main: would be admitted\n"
            "  Asked\n"
            "    cpu:   2 (from manifest)\n"
            "  Hints\n"
            "    cpu:   node 0 preferred\n"
            "  Merged by policy best-effort\n"
            "    cpu:   node 0 preferred\n"
            "  Took\n"
            "    hints 412 us, merge 9 us\n"
            "  Not done\n"
            "    allocate, check, commit\n"
            "\n"
            "note: nothing was allocated\n");
  ::k8s::io::api::core::v1::Pod sent;
  ASSERT_TRUE(sent.ParseFromString(node_.tried_pod));
  EXPECT_EQ(sent.spec().containers(0).resources().requests().at("memory").string(), "2Gi");
}

TEST_F(QrmctlAdmitTest, PrintsWhichClassesThePodWouldGetAndByWhat) {
  Serve();
  node_.dry_run = Report(
      Result::kAdmitted, "",
      R"({"result":"admitted","classes":{"blockio":{"class":"fast","by":"the default of blockio"},)"
      R"("rdt":{"class":"","by":"annotation rdt.resources.beta.kubernetes.io/pod="}}})");
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod)}), kDone) << err();
  EXPECT_EQ(out(),
            "shop/db would be admitted\n"
            "\n"
            "container main: would be admitted\n"
            "  Classes\n"
            "    blockio:   fast, by the default of blockio\n"
            "    rdt:       none, by annotation rdt.resources.beta.kubernetes.io/pod=\n");
}

TEST_F(QrmctlAdmitTest, FailsWithTheReasonForAPodThatWouldBeRejected) {
  Serve();
  node_.dry_run =
      Report(Result::kRejected, "cannot admit container main: no room",
             R"({"result":"rejected","message":"cannot admit container main: no room"})");
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod)}), kFailed);
  EXPECT_EQ(out(),
            "shop/db would be rejected\n"
            "\n"
            "container main: would be rejected\n"
            "  cannot admit container main: no room\n");
  EXPECT_EQ(err(), "qrmctl admit: cannot admit container main: no room\n");
}

TEST_F(QrmctlAdmitTest, ReportsWhyAPodWouldBeSkipped) {
  Serve();
  node_.dry_run =
      Report(Result::kSkipped, "no plugin", R"({"result":"skipped","message":"no plugin"})");
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod)}), kDone);
  EXPECT_EQ(out(), "shop/db would be skipped\n\ncontainer main: would be skipped\n  no plugin\n");
}

TEST_F(QrmctlAdmitTest, HasTheSameAsADocument) {
  Serve();
  node_.dry_run = Report(Result::kAdmitted, "", R"({"result":"admitted"})");
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod), "-o", "json"}), kDone) << err();
  const auto document = nlohmann::json::parse(out());
  EXPECT_EQ(document["pod"], "shop/db");
  EXPECT_EQ(document["result"], "admitted");
  EXPECT_EQ(document["decisions"][0]["container"], "main");
  EXPECT_EQ(document["decisions"][0]["decision"]["result"], "admitted");
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod), "-o", "yaml"}), kDone);
  EXPECT_THAT(out(), StartsWith("pod: shop/db\nresult: admitted\n"));
}

TEST_F(QrmctlAdmitTest, DoesNotAdmitAndSaysWhatDoes) {
  EXPECT_EQ(Run({"admit", "-f", Write(kPod)}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("only the runtime admits pods; --dry-run shows what would happen; "
                               "try: qrmctl admit --dry-run -f pod.yaml"));
  EXPECT_EQ(Run({"admit", "--dry-run"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("no pod given; name its file with -f"));
}

TEST_F(QrmctlAdmitTest, CallsAFileThatIsNotAPodAMisuse) {
  Serve();
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", dir_ / "none.yaml"}), kMisuse);
  EXPECT_EQ(err(), "qrmctl admit: cannot read " + (dir_ / "none.yaml") +
                       ": no such file, or no right to; check the path\n");
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write("kind: Node\n")}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("pod.yaml:1: kind is 'Node', which has no pod"));
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", dir_.path()}), kMisuse);
  node_.dry_run = Errorf(StatusCode::kInvalidArgument, "its name is there twice");
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod)}), kMisuse);
  EXPECT_EQ(err(), "qrmctl admit: its name is there twice\n");
}

TEST_F(QrmctlAdmitTest, FailsWhenQrmdDoesNotRun) {
  EXPECT_EQ(Run({"admit", "--dry-run", "-f", Write(kPod)}), kFailed);
  EXPECT_THAT(err(), StartsWith("qrmctl admit: cannot reach qrmd: nothing listens on "));
}

TEST_F(QrmctlAdmitTest, PlayReportsWhatItNeedsBeforeItMakesAnything) {
  Serve();
  EXPECT_EQ(Run({"play"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("no pod given; name its file with -f"));
  EXPECT_EQ(Run({"play", "-f", Write(kPod)}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("container main has no image; add it, or name one with --image"));
  EXPECT_EQ(Run({"play", "-f",
                 Write("{kind: Pod, metadata: {name: db}, spec: {initContainers: [{name: first}], "
                       "containers: [{name: main, image: i}]}}")}),
            kMisuse);
  EXPECT_THAT(err(), HasSubstr("init containers, which are not played; leave them out"));
  EXPECT_EQ(node_.announced_pod, "");
}

TEST_F(QrmctlAdmitTest, PlayAnnouncesThePodUnderANewUidAndSaysThatThereIsNoRuntime) {
  Serve();
  EXPECT_EQ(Run({"play", "-f", Write(kPod), "--image", "some", "--runtime-endpoint",
                 "unix:///nowhere/cri.sock"}),
            kFailed);
  EXPECT_THAT(err(), HasSubstr("listens on /nowhere/cri.sock; name its socket with"));
  ::k8s::io::api::core::v1::Pod announced;
  ASSERT_TRUE(announced.ParseFromString(node_.announced_pod));
  EXPECT_EQ(announced.metadata().name(), "db");
  EXPECT_EQ(announced.metadata().uid().size(), 36U);
}

}  // namespace
}  // namespace qrm::manager::cli::qrmctl_admit_test
