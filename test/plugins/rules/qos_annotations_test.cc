// Which keys of QoS annotations have no effect.
#include "plugins/rules/qos_annotations.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::rules::qos_annotations_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StringMap Pod(const std::string& level, const std::string& cpu, const std::string& memory) {
  StringMap annotations = {{kQosCpuKey, cpu}, {kQosMemoryKey, memory}};
  if (!level.empty()) {
    annotations[kQosLevelKey] = level;
  }
  return annotations;
}

std::vector<std::string> Texts(const StringMap& annotations,
                               NodeBinding binding = NodeBinding::kNone) {
  std::vector<std::string> texts;
  for (const IgnoredQosKey& key : IgnoredQosKeys(annotations, binding)) {
    texts.push_back(std::string(key.label) + ": " + key.text);
  }
  return texts;
}

TEST(QosAnnotationsTest, KeysWithoutEffectAtTheLevelAreNamed) {
  EXPECT_THAT(Texts(Pod("shared_cores", R"({"cpuset_pool": "batch", "cpu_burst_policy": "static"})",
                        R"({"numa_binding": "true"})")),
              ElementsAre("cpu_burst_policy: cpu_burst_policy",
                          "numa_binding: numa_binding at shared_cores"));
  EXPECT_THAT(Texts(Pod("", "{}", R"({"numa_exclusive": true})")),
              ElementsAre("numa_exclusive: numa_exclusive without qos_level"));
  EXPECT_THAT(Texts(Pod("dedicated_cores", R"({"full_pcpus_pairing": "true"})",
                        R"({"numa_binding": "true", "numa_exclusive": "false"})")),
              IsEmpty());
}

TEST(QosAnnotationsTest, KeysOfNoMeaningAreOneCounter) {
  EXPECT_THAT(Texts(Pod("dedicated_cores", R"({"full_pcpu_pairing": "true"})",
                        R"({"numa_binding": "yes"})")),
              ElementsAre("other: full_pcpu_pairing", "numa_binding: numa_binding=yes"));
}

TEST(QosAnnotationsTest, NumaNodesByNumberAreNamed) {
  EXPECT_THAT(Texts({{kQosLevelKey, "dedicated_cores"}, {"katalyst.kubewharf.io/numa_ids", "1"}}),
              ElementsAre("numa_ids: numa_ids"));
  EXPECT_THAT(Texts({{"katalyst.kubewharf.io/pod_role", "web"}}), IsEmpty());
}

TEST(QosAnnotationsTest, KeysOfASharedPodThatIsBoundToANodeHaveAnEffect) {
  StringMap pod = Pod("shared_cores", R"({"align_by_socket": "true"})",
                      R"({"numa_binding": "true", "numa_exclusive": "true"})");
  pod["katalyst.kubewharf.io/numa_ids"] = "1";
  pod["katalyst.kubewharf.io/numa_number"] = "2";
  EXPECT_THAT(
      Texts(pod, NodeBinding::kBound),
      ElementsAre("numa_exclusive: numa_exclusive at shared_cores", "numa_number: numa_number"));
  pod["katalyst.kubewharf.io/numa_ids"] = "x";
  pod["katalyst.kubewharf.io/numa_number"] = "1";
  EXPECT_THAT(Texts(pod, NodeBinding::kBound),
              ElementsAre("numa_exclusive: numa_exclusive at shared_cores", "numa_ids: numa_ids"));
}

}  // namespace
}  // namespace qrm::rules::qos_annotations_test
