#include "manager/demand/pod_spec.h"

#include <cmath>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/quantity.h"

namespace qrm::manager::pod_spec_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

struct QuantityCase {
  std::string name;
  std::string text;
  double want = 0;
};

class QuantityTest : public testing::TestWithParam<QuantityCase> {};

TEST_P(QuantityTest, IsTheNearestDouble) {
  const StatusOr<double> value = ParseQuantity(GetParam().text);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, GetParam().want);
}

const QuantityCase kQuantities[] = {
    {"Zero", "0", 0},
    {"NegativeZero", "-0", 0},
    {"Whole", "2", 2},
    {"Plus", "+2", 2},
    {"Milli", "100m", 0.1},
    {"OneMilli", "1m", 0.001},
    {"Fraction", "1.5", 1.5},
    {"PointFirst", ".5", 0.5},
    {"PointLast", "5.", 5},
    {"Exponent", "1e3", 1000},
    {"CapitalExponent", "1E3", 1000},
    {"SignedExponent", "12e-1", 1.2},
    {"PlusExponent", "1e+3", 1000},
    {"Exa", "1E", 1e18},
    {"Kilo", "1k", 1000},
    {"Kibi", "1Ki", 1024},
    {"FractionOfGibi", "1.5Gi", 1610612736},
    {"Exbi", "1Ei", 0x1p60},
    {"Nano", "1n", 1e-9},
    {"Micro", "1500u", 0.0015},
    {"BelowANano", "0.1n", 1e-9},
    {"MostOfAll", "9223372036854775807", 9223372036854775807.0},
    {"TooMuch", "100Ei", 9223372036854775807.0},
    {"FarTooMuch", "1e999", 9223372036854775807.0},
    {"FarTooLittle", "1e-999", 1e-9},
    {"NothingTimesMuch", "0e999", 0},
};
INSTANTIATE_TEST_SUITE_P(Texts, QuantityTest, testing::ValuesIn(kQuantities),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(QuantityErrorTest, RejectsWhatIsNotAQuantity) {
  for (const char* text : {"", ".", "-", "m", "1 ", " 1", "1mm", "1K", "1ki", "1e", "e3", "1e3m",
                           "1.2.3", "0x10", "nan", "inf", "1,5", "1e1.5"}) {
    EXPECT_EQ(ParseQuantity(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ParseQuantity(std::string(65, '1')).ok());
  EXPECT_THAT(MessageOf(ParseQuantity("-1").status()), HasSubstr("below zero"));
}

TEST(QuantityErrorTest, GivesBackEveryMilliCpuTo256Cpus) {
  for (int milli = 1; milli <= 256'000; ++milli) {
    ASSERT_EQ(std::lround(*ParseQuantity(std::to_string(milli) + "m") * 1000), milli);
  }
}

PodManifest Manifest() {
  PodManifest manifest{.uid = "uid", .pod_namespace = "default", .name = "web"};
  manifest.containers = {{.name = "main"}, {.name = "logger"}};
  return manifest;
}

PodManifest::Resources Same(const std::string& cpu, const std::string& memory) {
  const StringMap amounts = {{"cpu", cpu}, {"memory", memory}};
  return {.requests = amounts, .limits = amounts};
}

TEST(PodSpecTest, TakesALimitForAMissingRequestAndDropsZeros) {
  PodManifest manifest = Manifest();
  manifest.containers[0].resources = {
      .requests = {{"cpu", "500m"}, {"example.com/nic", "0"}},
      .limits = {
          {"cpu", "2"}, {"memory", "1Gi"}, {"example.com/nic", "3"}, {"example.com/gpu", "1"}}};
  EXPECT_THAT(ReadManifest(manifest)->containers[0].requests,
              ElementsAre(Pair("cpu", 0.5), Pair("example.com/gpu", 1), Pair("memory", 1 << 30)));
}

TEST(PodSpecTest, OrdersContainersAsTheyStart) {
  PodManifest manifest = Manifest();
  manifest.init_containers = {{.name = "setup"}, {.name = "proxy", .restart_policy = "Always"}};
  manifest.ephemeral_containers = {{.name = "debug"}};
  const StatusOr<PodSpec> spec = ReadManifest(manifest);
  ASSERT_TRUE(spec.ok()) << spec.status();
  std::vector<std::string> names;
  for (const PodContainer& container : spec->containers) {
    names.push_back(container.name);
  }
  EXPECT_THAT(names, ElementsAre("setup", "proxy", "main", "logger", "debug"));
  EXPECT_EQ(spec->containers[1].kind, PodContainer::Kind::kSidecar);
}

TEST(PodSpecTest, KnowsTheMirrorOfAStaticPodByBothAnnotations) {
  PodManifest manifest = Manifest();
  manifest.annotations = {{"kubernetes.io/config.hash", "hash"}};
  EXPECT_EQ(ReadManifest(manifest)->static_uid, "");
  manifest.annotations["kubernetes.io/config.mirror"] = "another";
  EXPECT_EQ(ReadManifest(manifest)->static_uid, "");
  manifest.annotations["kubernetes.io/config.mirror"] = "hash";
  EXPECT_EQ(ReadManifest(manifest)->static_uid, "hash");
  manifest.uid = "hash";
  EXPECT_EQ(ReadManifest(manifest)->static_uid, "");
}

TEST(PodSpecTest, RejectsASpecThatCannotBe) {
  PodManifest nameless = Manifest();
  nameless.name.clear();
  PodManifest twins = Manifest();
  twins.containers[1].name = "main";
  PodManifest unreadable = Manifest();
  unreadable.containers[0].resources.requests = {{"cpu", "many"}};
  PodManifest empty = Manifest();
  empty.containers.clear();
  for (const PodManifest& bad : {nameless, twins, unreadable, empty}) {
    EXPECT_EQ(ReadManifest(bad).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(MessageOf(ReadManifest(unreadable).status()),
              HasSubstr("default/web (uid): container main: cannot read quantity 'many'"));
}

TEST(PodSpecTest, EscapesTheTextOfAPodInErrors) {
  PodManifest bad = Manifest();
  bad.name = "a\nb";
  bad.containers[0].name = "c\x1b";
  bad.containers[0].resources.requests = {{"cpu", "5\t"}};
  EXPECT_THAT(MessageOf(ReadManifest(bad).status()),
              HasSubstr(R"(default/a\nb (uid): container c\x1b: cannot read quantity '5\t')"));
  bad.containers[0].resources.requests = {{"c\npu", "5"}};
  EXPECT_THAT(MessageOf(ReadManifest(bad).status()),
              HasSubstr(R"(cannot use resource name "c\npu")"));
}

struct QosCase {
  std::string name;
  PodManifest::Resources main;
  PodManifest::Resources logger;
  PodManifest::Resources pod;
  std::string want;
};

class SpecQosTest : public testing::TestWithParam<QosCase> {};

TEST_P(SpecQosTest, IsKubelets) {
  PodManifest manifest = Manifest();
  manifest.containers[0].resources = GetParam().main;
  manifest.containers[1].resources = GetParam().logger;
  manifest.resources = GetParam().pod;
  EXPECT_EQ(ReadManifest(manifest)->qos_class, GetParam().want);
}

const QosCase kQosCases[] = {
    {"AllLimited", Same("1", "1Gi"), Same("100m", "1Mi"), {}, "Guaranteed"},
    {"LimitsOnly", {.limits = {{"cpu", "1"}, {"memory", "1"}}}, Same("1", "1"), {}, "Guaranteed"},
    {"OneWithout", Same("1", "1Gi"), {}, {}, "Burstable"},
    {"RequestBelowLimit",
     {.requests = {{"cpu", "1"}, {"memory", "1"}}, .limits = {{"cpu", "2"}, {"memory", "1"}}},
     Same("1", "1"),
     {},
     "Burstable"},
    {"Nothing", {}, {}, {}, "BestEffort"},
    {"OthersOnly", {.requests = {{"example.com/nic", "1"}}}, {}, {}, "BestEffort"},
    {"PodLevel", {}, {}, Same("4", "4Gi"), "Guaranteed"},
    {"PodLevelRequestOnly",
     Same("1", "1"),
     Same("1", "1"),
     {.requests = {{"cpu", "4"}}},
     "Burstable"},
};
INSTANTIATE_TEST_SUITE_P(Classes, SpecQosTest, testing::ValuesIn(kQosCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(RefineTest, PutsTheSpecIntoTheDemandAndAddsTheOtherContainers) {
  PodManifest manifest = Manifest();
  manifest.init_containers = {{.name = "setup"}, {.name = "proxy", .restart_policy = "Always"}};
  manifest.ephemeral_containers = {{.name = "debug"}};
  manifest.containers[0].resources = Same("2", "1Gi");
  manifest.runtime_class = "kata";
  manifest.controller_kind = "DaemonSet";
  manifest.priority_class = "system-node-critical";
  manifest.priority = 2000001000;
  placement::ContainerDemand estimate{.pod = {.uid = "uid", .qos_class = "Burstable"},
                                      .container = "main"};
  estimate.requests = {{"cpu", 1}};
  const placement::ContainerDemand demand =
      Refine(estimate, *ReadManifest(manifest), "", "pods-api")
          .value_or(placement::ContainerDemand());
  EXPECT_THAT(*demand.requests, ElementsAre(Pair("cpu", 2), Pair("memory", 1 << 30)));
  EXPECT_EQ(demand.source, "pods-api");
  EXPECT_EQ(demand.runtime_class, "kata");
  EXPECT_EQ(demand.controller_kind, "DaemonSet");
  EXPECT_EQ(demand.priority_class, "system-node-critical");
  EXPECT_EQ(demand.pod.annotations.at("qrm.io/pod-priority"), "2000001000");
  EXPECT_EQ(demand.type, ContainerType::kMain);
  EXPECT_EQ(demand.place, 2u);
  ASSERT_EQ(demand.others.size(), 3u);
  EXPECT_EQ(demand.others[0].container, "setup");
  EXPECT_EQ(demand.others[0].type, ContainerType::kInit);
  EXPECT_EQ(demand.others[1].type, ContainerType::kSidecar);
  EXPECT_EQ(demand.others[2].type, ContainerType::kSidecar) << "the first one is the main one";
  EXPECT_TRUE(demand.others[1].restartable_init);
  EXPECT_FALSE(demand.others[2].restartable_init);
}

std::optional<ContainerType> TypeIn(const std::optional<placement::ContainerDemand>& demand) {
  return demand.has_value() ? std::optional(demand->type) : std::nullopt;
}

TEST(RefineTest, FollowsTheNamedMainContainerWhereThereIsOne) {
  const PodSpec spec = *ReadManifest(Manifest());
  const placement::ContainerDemand estimate{.container = "logger"};
  EXPECT_EQ(TypeIn(Refine(estimate, spec, "logger", "x")), ContainerType::kMain);
  EXPECT_EQ(TypeIn(Refine(estimate, spec, "main", "x")), ContainerType::kSidecar);
  EXPECT_EQ(TypeIn(Refine(estimate, spec, "unknown", "x")), ContainerType::kSidecar);
}

TEST(RefineTest, LeavesContainersOutsideTheSpecToTheEstimate) {
  const placement::ContainerDemand estimate{.container = "injected"};
  EXPECT_FALSE(Refine(estimate, *ReadManifest(Manifest()), "", "x").has_value());
}

TEST(RefineTest, TakesTheLimitsOfTheSpec) {
  PodManifest manifest = Manifest();
  manifest.containers = {
      {.name = "main", .resources = {.requests = {{"cpu", "500m"}}, .limits = {{"cpu", "2"}}}}};
  const placement::ContainerDemand estimate{.container = "main", .limits = {{"cpu", 7}}};
  const placement::ContainerDemand demand =
      Refine(estimate, *ReadManifest(manifest), "", "x").value_or(placement::ContainerDemand());
  EXPECT_THAT(*demand.limits, ElementsAre(Pair("cpu", 2)));
}

TEST(RefineTest, PlacesAnEphemeralContainerSeparately) {
  PodManifest manifest = Manifest();
  manifest.ephemeral_containers = {{.name = "debug"}};
  const placement::ContainerDemand estimate{.container = "debug"};
  const placement::ContainerDemand demand =
      Refine(estimate, *ReadManifest(manifest), "", "x").value_or(placement::ContainerDemand());
  EXPECT_EQ(demand.type, ContainerType::kEphemeral);
  EXPECT_THAT(demand.others, IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::pod_spec_test
