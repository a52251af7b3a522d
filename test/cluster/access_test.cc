#include "cluster/access.h"

#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::cluster::access_test {
namespace {

using testing::HasSubstr;

class AccessTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }
  /// A kubeconfig with one entry of each kind.
  StatusOr<ClusterAccess> Read(const std::string& cluster, const std::string& user) const {
    return ReadKubeconfig(
        Write("config", "clusters: [{name: c, cluster: {" + cluster + "}}]\n" +
                            "users: [{name: u, user: {" + user + "}}]\n" +
                            "contexts: [{name: x, context: {cluster: c, user: u}}]\n" +
                            "current-context: x\n"),
        "");
  }

  const test::TempDir dir_;
};

TEST_F(AccessTest, APodFindsTheServiceAndItsFiles) {
  Write("token", "secret");
  Write("namespace", "qrm-system");
  const std::map<std::string, std::string> variables = {{"KUBERNETES_SERVICE_HOST", "fd00::1"},
                                                        {"KUBERNETES_SERVICE_PORT", "6443"}};
  const auto access =
      InClusterAccess([&](const std::string& name) { return variables.at(name); }, dir_.path());
  ASSERT_TRUE(test::IsOk(access.status()));
  EXPECT_EQ(access->server.host, "fd00::1");
  EXPECT_EQ(access->server.port, "6443");
  EXPECT_EQ(access->token_file, dir_ / "token");
  EXPECT_EQ(access->authorities.file, dir_ / "ca.crt");
  EXPECT_EQ(access->default_namespace, "qrm-system");
}

TEST_F(AccessTest, OutsideOfAClusterAKubeconfigIsAskedFor) {
  const auto access = InClusterAccess([](const std::string&) { return ""; }, dir_.path());
  EXPECT_EQ(access.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(access.status()), HasSubstr("set kubeconfig"));
}

TEST_F(AccessTest, AKubeconfigHasTextsAndFilesBesideIt) {
  const auto access = Read(
      "server: 'https://10.0.0.1:6443', certificate-authority-data: UEVN, tls-server-name: api",
      "tokenFile: secret, client-certificate: /tls.crt, client-key-data: S0VZIQ==");
  ASSERT_TRUE(test::IsOk(access.status()));
  EXPECT_EQ(access->server.host, "10.0.0.1");
  EXPECT_EQ(access->server_name, "api");
  EXPECT_EQ(access->authorities.text, "PEM");
  EXPECT_EQ(access->token_file, dir_ / "secret");
  EXPECT_EQ(access->certificate.file, "/tls.crt");
  EXPECT_EQ(access->key.text, "KEY!");
  EXPECT_EQ(access->default_namespace, "default");
}

TEST_F(AccessTest, UnsupportedKeysAreNamedWithTheirLine) {
  const std::string server = "server: 'https://10.0.0.1:6443'";
  EXPECT_THAT(MessageOf(Read(server, "exec: {command: aws}").status()),
              HasSubstr(":2: users[0].user.exec is not supported"));
  EXPECT_THAT(MessageOf(Read(server + ", insecure-skip-tls-verify: true", "token: t").status()),
              HasSubstr("set certificate-authority-data"));
  EXPECT_THAT(MessageOf(Read(server + ", proxy-url: 'http://p'", "token: t").status()),
              HasSubstr("without a proxy"));
  EXPECT_THAT(MessageOf(Read("server: 'http://10.0.0.1'", "token: t").status()),
              HasSubstr("not an https address"));
}

TEST_F(AccessTest, AContextMustBeThere) {
  Write("config", "current-context: gone\n");
  EXPECT_THAT(MessageOf(ReadKubeconfig(dir_ / "config", "").status()),
              HasSubstr("no entry named 'gone'"));
}

}  // namespace
}  // namespace qrm::cluster::access_test
