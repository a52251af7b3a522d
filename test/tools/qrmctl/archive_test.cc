// The archive of a bug report, and what is removed from its texts.
#include "tools/qrmctl/archive.h"

#include <string>

#include <gmock/gmock.h>

namespace qrm::manager::cli::archive_test {
namespace {

TEST(TarTest, EachFileIsAHeaderAndWholeBlocks) {
  const std::string archive = TarOf({{"a/one.txt", "first\n"}, {"a/two.txt", ""}}, 0);
  ASSERT_EQ(archive.size(), 5 * 512U);
  EXPECT_EQ(archive.substr(0, 10), std::string("a/one.txt\0", 10));
  EXPECT_EQ(archive.substr(124, 11), "00000000006");
  EXPECT_EQ(archive.substr(257, 5), "ustar");
  EXPECT_EQ(archive.substr(512, 6), "first\n");
  EXPECT_EQ(archive.substr(1024, 9), "a/two.txt");
}

struct SecretCase {
  const char* name;
  std::string text;
  std::string want;
};

class WithoutSecretsTest : public testing::TestWithParam<SecretCase> {};

TEST_P(WithoutSecretsTest, RemovesSecretsOnly) {
  EXPECT_EQ(WithoutSecrets(GetParam().text), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, WithoutSecretsTest,
    testing::Values(
        SecretCase{"Harmless", "log-level: debug\ncpus: 0-3\n", "log-level: debug\ncpus: 0-3\n"},
        SecretCase{"FilesOfSecrets", "kubelet-token-file: /etc/token\n",
                   "kubelet-token-file: /etc/token\n"},
        SecretCase{"Password", "password: hunter2\nnext: 1", "password: <removed>\nnext: 1"},
        SecretCase{"Quoted", R"({"apiToken": "a b", "cpus": 3})",
                   R"({"apiToken": "<removed>", "cpus": 3})"},
        SecretCase{"LogField", "I \"x\" SECRET=abc cpus=3", "I \"x\" SECRET=<removed> cpus=3"},
        SecretCase{"Bearer", "Authorization: Bearer abc.def x",
                   "Authorization: Bearer <removed> x"},
        SecretCase{"Address", "url: https://me:pw@host/x and https://host/a@b",
                   "url: https://<removed>@host/x and https://host/a@b"},
        SecretCase{"Key",
                   "a: |\n  -----BEGIN RSA PRIVATE KEY-----\n  MII\n  -----END RSA PRIVATE "
                   "KEY-----\nb: 1\n",
                   "a: |\n  <removed>\nb: 1\n"},
        SecretCase{"Certificate", "-----BEGIN CERTIFICATE-----\nMII\n",
                   "-----BEGIN CERTIFICATE-----\nMII\n"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace qrm::manager::cli::archive_test
