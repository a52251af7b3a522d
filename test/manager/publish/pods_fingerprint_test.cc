#include "manager/publish/pods_fingerprint.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace qrm::manager::pods_fingerprint_test {
namespace {

struct FingerprintCase {
  std::string name;
  std::vector<PodName> pods;
  std::string want;
};

class PodsFingerprintTest : public testing::TestWithParam<FingerprintCase> {};

TEST_P(PodsFingerprintTest, IsWhatReadersCompute) {
  EXPECT_EQ(PodsFingerprint(GetParam().pods), GetParam().want);
}

// Of the published implementation, and of libxxhash.
const FingerprintCase kCases[] = {
    {"NoPod", {}, "pfp0v001ef46db3751d8e999"},
    {"OnePod", {{"default", "web"}}, "pfp0v001e2494ad8715b4de9"},
    {"TwoPods",
     {{"kube-system", "kube-proxy-x7k2p"}, {"default", "web"}},
     "pfp0v00175798c036945318b"},
    {"TwoPodsInAnotherOrder",
     {{"default", "web"}, {"kube-system", "kube-proxy-x7k2p"}},
     "pfp0v00175798c036945318b"},
    {"FivePodsInThreeNamespaces",
     {{"ns1", "n1"}, {"ns1", "n2"}, {"ns2", "n1"}, {"ns3", "n1"}, {"ns3", "n2"}},
     "pfp0v001b92008c14168b3a6"},
};
INSTANTIATE_TEST_SUITE_P(Vectors, PodsFingerprintTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::manager::pods_fingerprint_test
