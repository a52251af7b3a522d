// Kubelet's list over real TLS, with a self-signed certificate.
#include "manager/kubelet/kubelet_pods.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/await.h"
#include "test/support/await_spec.h"
#include "test/support/temp_dir.h"
#include "test/support/tls_kubelet.h"

namespace qrm::manager::kubelet_pods_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Await;

std::string ListOf(const std::string& uid) {
  return R"({"kind": "PodList", "items": [{"metadata": {"name": "web", "namespace": "default",
    "uid": ")" +
         uid + R"("}, "spec": {"containers": [{"name": "main"}]}}]})";
}

class KubeletPodsTest : public testing::Test {
 protected:
  KubeletPodsTest() {
    Write("ca.pem", kubelet_.certificate());
    Write("token", "secret\n");
    kubelet_.SetToken("secret");
    kubelet_.SetAnswer(200, ListOf("uid"));
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
  }
  KubeletPodsOptions Options() const {
    return {.url = *ParseHttpsUrl("https://127.0.0.1:" + std::to_string(kubelet_.port()) + "/pods"),
            .token_file = dir_ / "token",
            .ca_file = dir_ / "ca.pem",
            .token_power = TokenPower::kAny,
            .timeout = seconds(10),
            .least_interval = milliseconds(1),
            .most_interval = milliseconds(20)};
  }
  static PodSpecPtr Ask(KubeletPods& pods, const std::string& uid) {
    pods.Prefetch(uid);
    return test::AwaitSpec(pods, uid);
  }

  const test::TempDir dir_;
  test::TlsKubelet kubelet_;
};

TEST_F(KubeletPodsTest, FindsAPodThatItIsAskedFor) {
  KubeletPods pods(Options());
  EXPECT_EQ(pods.Find("uid"), nullptr);
  EXPECT_EQ(kubelet_.answered(), 0) << "no request yet";
  const PodSpecPtr spec = Ask(pods, "uid");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(spec->name, "web");
  EXPECT_NE(pods.Find("uid"), nullptr);
  EXPECT_EQ(kubelet_.answered(), 1);
}

TEST_F(KubeletPodsTest, EndsTheWaitForAPodThatKubeletDoesNotList) {
  KubeletPods pods(Options());
  EXPECT_EQ(Ask(pods, "other"), nullptr);
  EXPECT_EQ(kubelet_.answered(), 1);
}

TEST_F(KubeletPodsTest, ReadsARotatedToken) {
  KubeletPods pods(Options());
  kubelet_.SetToken("rotated");
  EXPECT_EQ(Ask(pods, "uid"), nullptr);
  Write("token", "rotated");
  EXPECT_TRUE(Await([&] { return Ask(pods, "uid") != nullptr; }));
  EXPECT_TRUE(Await([&] { return pods.reachable(); }));
}

TEST_F(KubeletPodsTest, DoesNotTalkToAPeerWithAnUnknownCertificate) {
  KubeletPodsOptions options = Options();
  options.ca_file.clear();
  KubeletPods careful(options);
  EXPECT_EQ(Ask(careful, "uid"), nullptr);
  EXPECT_EQ(kubelet_.answered(), 0) << "the token stays with us";
}

TEST_F(KubeletPodsTest, BelievesTheCertificateThatIsGivenAndNoOther) {
  KubeletPodsOptions options = Options();
  options.ca_file.clear();
  options.pin.given_file = dir_ / "ca.pem";
  KubeletPods pods(options);
  EXPECT_NE(Ask(pods, "uid"), nullptr);
  const int answered = kubelet_.answered();
  Write("ca.pem", test::TlsKubelet().certificate());
  EXPECT_EQ(Ask(pods, "other"), nullptr);
  EXPECT_FALSE(pods.reachable());
  EXPECT_EQ(kubelet_.answered(), answered) << "the token stays with us";
}

TEST_F(KubeletPodsTest, TrustsNoServerWhenTheGivenCertificateIsInvalid) {
  KubeletPodsOptions options = Options();
  options.pin.given_file = dir_ / "token";
  KubeletPods pods(options);
  EXPECT_EQ(Ask(pods, "uid"), nullptr);
  EXPECT_EQ(kubelet_.answered(), 0);
}

TEST_F(KubeletPodsTest, BelievesTheFirstCertificateThatItMeetsAndNoLaterOne) {
  KubeletPodsOptions options = Options();
  options.ca_file.clear();
  options.pin.kept_file = dir_ / "pinned";
  {
    KubeletPods first(options);
    EXPECT_NE(Ask(first, "uid"), nullptr);
  }
  {
    KubeletPods restarted(options);
    EXPECT_NE(Ask(restarted, "uid"), nullptr);
  }
  test::TlsKubelet impostor;
  options.url.port = std::to_string(impostor.port());
  KubeletPods deceived(options);
  EXPECT_EQ(Ask(deceived, "uid"), nullptr);
  EXPECT_EQ(impostor.answered(), 0) << "the token stays with us";
}

TEST_F(KubeletPodsTest, AsksWithATokenThatMayReadPodsOnly) {
  KubeletPodsOptions options = Options();
  options.token_power = TokenPower::kNodesPods;
  KubeletPods pods(options);
  EXPECT_NE(Ask(pods, "uid"), nullptr);
  Ask(pods, "other");
  EXPECT_EQ(kubelet_.answered(), 3) << "one of them checks the token's permissions";
}

TEST_F(KubeletPodsTest, DoesNotAskWithATokenThatMayAnything) {
  KubeletPodsOptions options = Options();
  options.token_power = TokenPower::kNodesPods;
  kubelet_.AllowAll();
  KubeletPods pods(options);
  EXPECT_EQ(Ask(pods, "uid"), nullptr);
  EXPECT_FALSE(pods.reachable());
}

TEST_F(KubeletPodsTest, AsksAKubeletThatRunsNoCommandsForUsers) {
  KubeletPodsOptions options = Options();
  options.token_power = TokenPower::kNodesPods;
  kubelet_.DisableDebugging();
  KubeletPods pods(options);
  EXPECT_NE(Ask(pods, "uid"), nullptr);
}

TEST_F(KubeletPodsTest, DoesNotTalkToAPeerUnderAnotherName) {
  KubeletPodsOptions options = Options();
  options.url.host = "localhost";
  KubeletPods pods(options);
  EXPECT_EQ(Ask(pods, "uid"), nullptr);
  EXPECT_EQ(kubelet_.answered(), 0);
}

TEST_F(KubeletPodsTest, AsksNotMoreOftenThanItIsAllowedTo) {
  KubeletPodsOptions options = Options();
  options.least_interval = hours(1);
  KubeletPods pods(options);
  ASSERT_NE(Ask(pods, "uid"), nullptr);
  pods.Prefetch("other");
  EXPECT_EQ(test::AwaitSpec(pods, "other", milliseconds(1)), nullptr);
  EXPECT_EQ(kubelet_.answered(), 1);
}

TEST_F(KubeletPodsTest, LetsNoRequestWaitForAKubeletThatFailed) {
  KubeletPodsOptions options = Options();
  options.least_interval = hours(1);
  options.most_interval = hours(1);
  kubelet_.SetAnswer(500, "");
  KubeletPods pods(options);
  EXPECT_TRUE(pods.reachable()) << "nothing speaks against it";
  EXPECT_EQ(Ask(pods, "uid"), nullptr);
  EXPECT_FALSE(pods.reachable());
  pods.Prefetch("other");
  EXPECT_EQ(test::AwaitSpec(pods, "other", hours(1)), nullptr);
  EXPECT_EQ(kubelet_.answered(), 1);
}

TEST_F(KubeletPodsTest, NoticesWithoutANewPodThatKubeletIsBack) {
  kubelet_.SetAnswer(500, "");
  KubeletPods pods(Options());
  EXPECT_EQ(Ask(pods, "uid"), nullptr);
  EXPECT_NE(pods.problem(), "");
  kubelet_.SetAnswer(200, ListOf("uid"));
  EXPECT_TRUE(Await([&] { return pods.reachable(); }));
  EXPECT_EQ(pods.problem(), "");
}

TEST_F(KubeletPodsTest, RecoversFromAnswersThatAreLies) {
  KubeletPods pods(Options());
  for (const char* lie : {"", "[]", "{\"kind\": \"PodList\", \"items\": [[]]}", "<html>"}) {
    kubelet_.SetAnswer(200, lie);
    EXPECT_EQ(Ask(pods, "uid"), nullptr) << lie;
  }
  kubelet_.SetAnswer(200, ListOf("uid"));
  EXPECT_TRUE(Await([&] { return Ask(pods, "uid") != nullptr; }));
}

TEST_F(KubeletPodsTest, GivesUpWaitingForASlowKubeletAndKnowsMoreLater) {
  kubelet_.Hold();
  KubeletPods pods(Options());
  pods.Prefetch("uid");
  EXPECT_EQ(test::AwaitSpec(pods, "uid", milliseconds(1)), nullptr);
  kubelet_.Release();
  EXPECT_TRUE(Await([&] { return pods.Find("uid") != nullptr; }));
}

TEST_F(KubeletPodsTest, SendsNothingWithoutItsToken) {
  KubeletPodsOptions options = Options();
  options.token_file = dir_ / "missing";
  KubeletPods pods(options);
  EXPECT_EQ(Ask(pods, "uid"), nullptr);
  EXPECT_EQ(kubelet_.answered(), 0);
}

}  // namespace
}  // namespace qrm::manager::kubelet_pods_test
