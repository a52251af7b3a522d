// `qrmctl play` beside a real containerd; scripts/containerd.sh starts it and this test.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/await.h"
#include "test/support/environment.h"
#include "test/support/is_ok.h"

namespace qrm::test::play_container_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class PlayContainerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/play-qrmd.yaml") << "plugins: {cpu: {static: true}}\n";
    ASSERT_TRUE(IsOk(node_.Start(1)));
  }
  void TearDown() override { EXPECT_TRUE(IsOk(node_.Stop())); }

  StatusOr<std::string> Play(const std::string& image) {
    const std::string file = work_dir_ + "/played.yaml";
    std::ofstream(file) << "{apiVersion: v1, kind: Pod, metadata: {name: played}, spec: "
                           "{containers: [{name: main, image: \""
                        << image << "\", resources: {limits: {cpu: 1, memory: 16Mi}}}]}}";
    return node_.Qrmctl({"play", "-f", file, "--runtime-endpoint",
                         FromEnvironment("QRM_CRI_SOCKET"), "--cgroup-parent",
                         FromEnvironment("QRM_CGROUP_PARENT")});
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  Kubelet kubelet_{{.socket = FromEnvironment("QRM_CRI_SOCKET"),
                    .image = FromEnvironment("QRM_IMAGE"),
                    .cgroup_parent = FromEnvironment("QRM_CGROUP_PARENT"),
                    .log_directory = work_dir_}};
  Node node_{QrmdBesideContainerd("play", {.builtin_plugins = "cpu"})};
};

TEST_F(PlayContainerTest, ShowsThePinnedContainerAndLeavesNothing) {
  const auto shown = Play(FromEnvironment("QRM_IMAGE"));
  ASSERT_TRUE(IsOk(shown.status()));
  EXPECT_THAT(*shown, HasSubstr("1 (from announced)"));
  EXPECT_THAT(*shown, HasSubstr("(exclusive)"));
  EXPECT_THAT(*kubelet_.ListContainers(), IsEmpty());
  EXPECT_TRUE(Await([this] { return node_.ListPods()->pods().empty(); }));
}

TEST_F(PlayContainerTest, SaysHowToGetAnImageThatIsNotThere) {
  EXPECT_THAT(MessageOf(Play("localhost/no-such-image:1").status()),
              HasSubstr("crictl pull localhost/no-such-image:1"));
  EXPECT_THAT(*kubelet_.ListContainers(), IsEmpty());
}

}  // namespace
}  // namespace qrm::test::play_container_test
