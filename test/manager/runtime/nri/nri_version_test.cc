// Which events are safe to ask of which runtime.
#include "manager/runtime/nri/nri_version.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager {
namespace {

constexpr int32_t kCreateContainer = 0x8;
constexpr int32_t kKnownToAll = 0x7ff;
constexpr int32_t kUpdatePodSandbox = 0x800;

struct MaskCase {
  std::string name;
  RuntimeInfo runtime;
  std::string nri_version;
  bool has_pod_updates;
};

class EventMaskTest : public testing::TestWithParam<MaskCase> {};

TEST_P(EventMaskTest, AsksOnlyForWhatTheRuntimeKnows) {
  const int32_t mask = EventMaskFor(GetParam().runtime, GetParam().nri_version);
  EXPECT_TRUE(mask & kCreateContainer);
  const int32_t newer = mask & ~kKnownToAll;
  EXPECT_EQ(newer, GetParam().has_pod_updates ? kUpdatePodSandbox : 0);
}

const MaskCase kCases[] = {
    {"Containerd17", {"containerd", "v1.7.24~ds1"}, "", false},
    {"Containerd21", {"containerd", "v2.1.9"}, "", false},
    {"Containerd22", {"containerd", "v2.2.0"}, "", true},
    {"Containerd3", {"containerd", "3.0.0"}, "", true},
    {"CrioOld", {"cri-o", "1.33.2"}, "", false},
    {"CrioNew", {"cri-o", "1.34.0"}, "", true},
    {"UnknownRuntime", {"other", "9.9.9"}, "", false},
    {"UnreadableVersion", {"containerd", "HEAD"}, "", false},
    {"SaysNriVersion", {"other", "1"}, "v0.12.0", true},
    {"SaysOldNriVersion", {"containerd", "v2.2.0"}, "0.9.0", false},
};
INSTANTIATE_TEST_SUITE_P(Runtimes, EventMaskTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(KnownProblemTest, WarnsOfContainerdThatDeadlocks) {
  EXPECT_NE(KnownProblemOf({"containerd", "v1.7.15"}), "");
  EXPECT_EQ(KnownProblemOf({"containerd", "v1.7.16"}), "");
  EXPECT_EQ(KnownProblemOf({"cri-o", "1.26.0"}), "");
}

}  // namespace
}  // namespace qrm::manager
