// qrmctl --cluster why, in front of a qrm-scheduler and of an API server.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/examples/fake_resource.h"
#include "scheduler/extender/extender_server.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"
#include "test/support/tls_identity.h"
#include "test/tools/qrmctl/typed.h"

namespace qrm::manager::cli::qrmctl_why_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kPods[] = "/api/v1/pods";

json PodObject(const std::string& space, const std::string& name, int request) {
  return {{"metadata",
           {{"namespace", space},
            {"name", name},
            {"uid", "0123-" + space + name},
            {"annotations", {{"fake.qrm.io/request", std::to_string(request)}}}}},
          {"spec", {{"containers", json::array({{{"name", "c"}}})}}}};
}

class QrmctlWhyTest : public testing::Test, protected Typed {
 protected:
  QrmctlWhyTest() {
    PutNode("node-1", 10);
    PutNode("node-2", 2);
    cluster_.Put(kPods, PodObject("shop", "db", 5));
  }

  void PutNode(const std::string& name, int capacity) {
    cluster_.Put("/api/v1/nodes", {{"metadata", {{"name", name}}}});
    cluster_.Put("/apis/fake.qrm.io/v1/nodefakeresourcestatuses",
                 {{"metadata", {{"name", name}}},
                  {"spec", {{"nodeName", name}, {"fakeResource", capacity}}}});
  }

  void StartScheduler() {
    Start({});
    url_ = "http://127.0.0.1:" + std::to_string(server_->port());
    // It reports that its lists have not come yet.
    ASSERT_TRUE(test::Await([&] { return Why({"shop/db"}) == kDone; })) << err();
  }

  void Start(scheduler::ServeOptions options) {
    options.address = options.monitor_address = "127.0.0.1:0";
    options.factories = {{scheduler::kFakeResource, scheduler::MakeFakeHandle}};
    options.resources = {"fake"};
    options.lease_name = "";
    auto server = scheduler::ExtenderServer::Start(options, cluster_.access());
    ASSERT_TRUE(test::IsOk(server.status()));
    server_ = *std::move(server);
  }

  /// Serves only clients with the certificate in `credentials_`.
  void StartSchedulerWithTls() {
    const test::TlsIdentity identity = test::MakeTlsIdentity();
    std::filesystem::create_directory(credentials_);
    std::ofstream(credentials_ + "/ca.crt") << identity.certificate;
    std::ofstream(credentials_ + "/tls.crt") << identity.certificate;
    std::ofstream(credentials_ + "/tls.key") << identity.key;
    const test::TlsIdentity other = test::MakeTlsIdentity();
    std::filesystem::create_directory(others_);
    std::ofstream(others_ + "/ca.crt") << identity.certificate;
    std::ofstream(others_ + "/tls.crt") << other.certificate;
    std::ofstream(others_ + "/tls.key") << other.key;
    Start({.certificate_file = credentials_ + "/tls.crt",
           .key_file = credentials_ + "/tls.key",
           .client_ca_file = credentials_ + "/ca.crt"});
    url_ = "https://127.0.0.1:" + std::to_string(server_->port());
  }

  /// A kubeconfig of the API server; the path of its file.
  std::string Kubeconfig() const {
    const cluster::ClusterAccess access = cluster_.access();
    std::ofstream(dir_ / "ca.pem") << access.authorities.text;
    std::ofstream(dir_ / "config")
        << "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:" << access.server.port
        << "\", certificate-authority: " << (dir_ / "ca.pem") << "}}]\n"
        << "users: [{name: u, user: {token: t}}]\n"
        << "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n";
    return dir_ / "config";
  }

  int Why(Args args) {
    if (!url_.empty()) {
      args.insert(args.end(), {"--url", url_});
    }
    args.insert(args.begin(), {"--cluster", "why"});
    return RunAsTyped(args);
  }

  test::FakeApiServer cluster_;
  const test::TempDir dir_;
  const std::string credentials_ = dir_ / "tls";
  const std::string others_ = dir_ / "others";  // not a client that the scheduler knows
  std::unique_ptr<scheduler::ExtenderServer> server_;
  std::string url_;
};

TEST_F(QrmctlWhyTest, EachNodeHasASentence) {
  StartScheduler();
  EXPECT_EQ(Why({"shop/db"}), kDone) << err();
  EXPECT_EQ(out(),
            "Pod shop/db waits; 1 of 2 nodes rejects it.\n"
            "NODE     WHY\n"
            "node-1   fits\n"
            "node-2   not enough fake: 5 requested, 2 available\n"
            "On nodes where it fits, kube-scheduler's own checks decide: kubectl -n shop describe "
            "pod db\n");
}

TEST_F(QrmctlWhyTest, OverTlsAClientNeedsACertificateOnLoopbackToo) {
  StartSchedulerWithTls();
  EXPECT_TRUE(test::Await([&] { return Why({"shop/db", "--credentials", credentials_}) == kDone; }))
      << err();
  EXPECT_THAT(out(), HasSubstr("node-2   not enough fake: 5 requested, 2 available\n"));
  EXPECT_EQ(Why({"shop/db", "--credentials", others_}), kFailed);
  EXPECT_EQ(Why({"shop/db", "--credentials", dir_ / "none"}), kFailed);
  EXPECT_THAT(err(), HasSubstr("cannot read the server's authorities from"));
  url_.replace(0, 5, "http");
  EXPECT_EQ(Why({"shop/db"}), kFailed);
}

TEST_F(QrmctlWhyTest, AKubeconfigNeedsNoScheduler) {
  json pod = PodObject("shop", "db", 0);
  pod["metadata"]["annotations"]["blockio.resources.qrm.io/container.main"] = "slow";
  cluster_.Put(kPods, pod);
  EXPECT_EQ(Why({"0123-shopdb", "--kubeconfig", Kubeconfig(), "--resources", "classes"}), kDone)
      << err();
  EXPECT_THAT(out(), HasSubstr("node-2   the node has not reported its classes\n"));
}

TEST_F(QrmctlWhyTest, RejectionsOfTheApiServerAreReportedAtOnce) {
  cluster_.Refuse(1'000, 403);
  EXPECT_EQ(Why({"db", "--kubeconfig", Kubeconfig()}), kFailed);
  EXPECT_THAT(err(), HasSubstr("cannot list "));
}

TEST_F(QrmctlWhyTest, ABoundPodHasItsNode) {
  json pod = PodObject("shop", "web", 1);
  pod["spec"]["nodeName"] = "node-1";
  cluster_.Put(kPods, pod);
  StartScheduler();
  EXPECT_EQ(Why({"web"}), kDone) << err();
  EXPECT_EQ(out(), "Pod shop/web is bound to node node-1.\n");
}

TEST_F(QrmctlWhyTest, JsonHasTheSentencesByNode) {
  StartScheduler();
  EXPECT_EQ(Why({"db", "-o", "json"}), kDone) << err();
  const json why = json::parse(out());
  EXPECT_EQ(why["nodes"],
            (json{{"node-1", ""}, {"node-2", "not enough fake: 5 requested, 2 available"}}));
  EXPECT_EQ(why["state"], "waits");
}

TEST_F(QrmctlWhyTest, ANameInTwoNamespacesNeedsItsNamespace) {
  cluster_.Put(kPods, PodObject("bank", "db", 1));
  StartScheduler();
  EXPECT_TRUE(test::Await([&] { return Why({"bank/db"}) == kDone; })) << err();
  EXPECT_EQ(Why({"db"}), kFailed);
  EXPECT_EQ(err(),
            "qrmctl --cluster why: 2 pods are named db; write bank/db or another namespace\n");
}

TEST_F(QrmctlWhyTest, APodThatIsNotThereIsSaidNotToBe) {
  StartScheduler();
  EXPECT_EQ(Why({"nobody"}), kFailed);
  EXPECT_THAT(err(), HasSubstr("there is no pod nobody"));
}

TEST_F(QrmctlWhyTest, AnUnreachableServerIsReportedWithTheRemedy) {
  url_ = "http://127.0.0.1:1";
  EXPECT_EQ(Why({"db"}), kFailed);
  EXPECT_THAT(err(), HasSubstr("Connection refused; run this in its pod, forward its port"));
}

TEST_F(QrmctlWhyTest, WrongWordsAreRejectedWithWhatToType) {
  EXPECT_EQ(RunAsTyped({"--cluster"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("try: qrmctl --cluster why POD"));
  EXPECT_EQ(RunAsTyped({"--cluster", "wyh"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("did you mean --cluster why?"));
  EXPECT_EQ(Why({"a b"}), kMisuse);
  EXPECT_EQ(Why({"db", "--url", "https://x/y"}), kMisuse);
  EXPECT_EQ(Why({"db", "--url", "http://x", "--kubeconfig", "f"}), kMisuse);
  EXPECT_EQ(Why({"db", "--resources", "nuna"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("\"nuna\" is not a resource"));
}

TEST_F(QrmctlWhyTest, TheHelpListsIt) {
  EXPECT_EQ(RunAsTyped({"--help"}), kDone);
  EXPECT_THAT(out(), HasSubstr("\n  --cluster why "));
  EXPECT_EQ(Why({"--help"}), kDone);
}

}  // namespace
}  // namespace qrm::manager::cli::qrmctl_why_test
