// An advisor as a client of the cpu plugin's socket.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/proto/qrm/v1/advisor.grpc.pb.h"
#include "test/plugins/cpu/drawn_node.h"
#include "test/plugins/cpu/elastic_fixture.h"
#include "test/support/temp_dir.h"

namespace qrm::cpu::advisor_test {
namespace {

using std::chrono::seconds;
using test::Drive;
using testing::HasSubstr;

/// The sixth worked example, except the pool that lends.
constexpr char kReclaim[] = R"(
rules: [{select: {role: batch}, pool: reclaim}, {select: {role: web}, pool: share}]
pools:
  share:   {size: {min: 16, max: 60}, priority: 1}
  reclaim: {size: {min: 2, max: 40, per: advice, step: 4}, class: background}
  default: {size: {min: 2}}
static: true
classes: {background: {qos: {cpu-quota: free, cpu-scheduling: idle}}}
)";

/// The same pools without an advisor.
constexpr char kSilent[] = R"(
rules: [{select: {role: batch}, pool: reclaim}, {select: {role: web}, pool: share}]
pools:
  share:   {size: {min: 16, max: 60}, priority: 1}
  reclaim: {size: {min: 2, max: 40, step: 4}}
  default: {size: {min: 2}}
)";

class AdvisorTest : public ElasticPlugins {
 protected:
  void SetUp() override {
    plugin_ = std::make_unique<Drive>(Start(ConfigText()));
    Begin();
  }
  void Begin() {
    plugin_->plugin().Begin("");
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // not that of a plugin before
    stub_ = v1::Advisor::NewStub(
        grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), own));
  }
  void RestartPlugin() {
    plugin_->plugin().Retire();
    plugin_ = std::make_unique<Drive>(Restart(ConfigText(), *plugin_));
    Begin();
  }
  std::string ConfigText() const {
    return std::string(kReclaim) + "advisor: {socket: " + socket_ +
           ", pools: [share, reclaim], on-expiry: hold 5m then request}\n";
  }
  void TearDown() override { plugin_->plugin().Retire(); }

  Drive& drive() { return *plugin_; }

  v1::AdvisedNode Look() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(10));
    const auto watch = stub_->Watch(&context, {});
    v1::AdvisedNode node;
    EXPECT_TRUE(watch->Read(&node));
    context.TryCancel();
    return node;
  }

  grpc::Status Advise(const std::string& pool, int cpus, v1::AppliedAdvice& applied) {
    v1::AdviseRequest request;
    request.set_advisor("test");
    request.set_generation(Look().generation());
    v1::AdviceEntry& entry = *request.add_entries();
    entry.set_pool(pool);
    entry.set_cpus(cpus);
    grpc::ClientContext context;
    v1::AdviseResponse response;
    const grpc::Status status = stub_->Advise(&context, request, &response);
    if (response.entries_size() == 1) {
      applied = response.entries(0);
    }
    return status;
  }

  /// Whatever was advised, pools are within their bounds, and each CPU is in one.
  void CheckPools() {
    CpuSet owned;
    for (const sdk::Pool& pool : drive().plugin().Pools()) {
      ASSERT_FALSE(pool.cpus.Intersects(owned)) << pool.name;
      owned |= pool.cpus;
    }
    ASSERT_GE(Size(drive(), "share"), 16);
    ASSERT_LE(Size(drive(), "share"), 60);
    ASSERT_GE(Size(drive(), "reclaim"), 2);
    ASSERT_LE(Size(drive(), "reclaim"), 40);
    ASSERT_GE(Size(drive(), "default"), 2);
  }

  /// One reconcile later, a second at least.
  int ReclaimAtNextPlan() {
    clock_.Advance(seconds(1));
    drive().Reconcile();
    return Size(drive(), "reclaim");
  }

  test::TempDir dir_;
  const std::string socket_ = dir_.path() + "/advisor.sock";
  std::unique_ptr<Drive> plugin_;
  std::unique_ptr<v1::Advisor::Stub> stub_;
};

TEST_F(AdvisorTest, SizesAPoolStepByStepUpToTheFreeCpus) {
  Admit(drive(), "web", "web", 40);
  EXPECT_EQ(Size(drive(), "reclaim"), 2);
  v1::AppliedAdvice applied;
  ASSERT_TRUE(Advise("reclaim", 30, applied).ok());
  EXPECT_EQ(applied.size(), 6);
  EXPECT_EQ(applied.clipped_by(), v1::Clip::STEP);
  for (const int size : {6, 10, 14, 18, 22, 22}) {
    EXPECT_EQ(ReclaimAtNextPlan(), size);
  }
  ASSERT_TRUE(Advise("reclaim", 30, applied).ok());
  EXPECT_EQ(applied.clipped_by(), v1::Clip::CAPACITY);
  Admit(drive(), "job", "batch", 1);
  EXPECT_EQ(drive().Of("job").class_defaults,
            (StringMap{{"cpu-quota", "free"}, {"cpu-scheduling", "idle"}}));
}

TEST_F(AdvisorTest, AdviceYieldsToRequestsForCpus) {
  Admit(drive(), "job", "batch", 2);
  v1::AppliedAdvice applied;
  ASSERT_TRUE(Advise("reclaim", 30, applied).ok());
  for (int plan = 0; plan < 8; ++plan) {
    ReclaimAtNextPlan();
  }
  ASSERT_EQ(Size(drive(), "reclaim"), 30);
  ASSERT_EQ(Size(drive(), "share"), 16);

  // 16 CPUs are idle.
  ContainerRequest owner = test::Request("owner", "", "cpu", 24);
  owner.native_qos_class = "Guaranteed";
  const auto own = drive().Admit(owner);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(Size(drive(), "reclaim"), 22);
  ASSERT_NO_FATAL_FAILURE(CheckPools());
  Admit(drive(), "web", "web", 36);
  EXPECT_EQ(Size(drive(), "share"), 36);
  EXPECT_EQ(Size(drive(), "reclaim"), 2);
  ASSERT_NO_FATAL_FAILURE(CheckPools());
  EXPECT_EQ(ReclaimAtNextPlan(), 2);

  owner.key.pod_uid = "another";
  EXPECT_FALSE(drive().Admit(owner).ok()) << "what is requested stays";
  EXPECT_EQ(Size(drive(), "share"), 36);
}

TEST_F(AdvisorTest, LeavesAPoolTheRequestsOfItsContainers) {
  Admit(drive(), "web", "web", 40);
  drive().Reconcile();
  v1::AppliedAdvice applied;
  ASSERT_TRUE(Advise("share", 20, applied).ok());
  EXPECT_EQ(applied.clipped_by(), v1::Clip::REQUESTS);
  EXPECT_EQ(applied.size(), 40);
  drive().Reconcile();
  clock_.Advance(seconds(60));
  drive().Reconcile();
  EXPECT_EQ(Size(drive(), "share"), 40);
}

TEST_F(AdvisorTest, MakesAtMostOnePlanASecond) {
  v1::AppliedAdvice applied;
  drive().Reconcile();
  ASSERT_TRUE(Advise("reclaim", 30, applied).ok());
  EXPECT_EQ(ReclaimAtNextPlan(), 6);
  drive().Reconcile();
  EXPECT_EQ(Size(drive(), "reclaim"), 6);
}

TEST_F(AdvisorTest, ThatIsSilentIsHeldAndThenForgotten) {
  v1::AppliedAdvice applied;
  ASSERT_TRUE(Advise("reclaim", 6, applied).ok());
  EXPECT_EQ(ReclaimAtNextPlan(), 6);
  clock_.Advance(seconds(300));
  EXPECT_EQ(ReclaimAtNextPlan(), 6);
  clock_.Advance(seconds(30));
  ReclaimAtNextPlan();
  clock_.Advance(seconds(30));
  EXPECT_EQ(ReclaimAtNextPlan(), 2);
}

TEST_F(AdvisorTest, SeesPoolsContainersAndCpus) {
  Admit(drive(), "web", "web", 20.5);
  clock_.Advance(seconds(1));
  drive().Reconcile();
  const v1::AdvisedNode node = Look();
  EXPECT_EQ(node.nodes_size(), 2);
  EXPECT_EQ(node.capacity(), 64);
  ASSERT_EQ(node.containers_size(), 1);
  EXPECT_EQ(node.containers(0).pool(), "share");
  EXPECT_EQ(node.containers(0).request_milli_cpus(), 20500);
  ASSERT_EQ(node.pools_size(), 3);
  EXPECT_EQ(node.pools(2).pool(), "share");
  EXPECT_EQ(node.pools(2).size(), 21);
  EXPECT_TRUE(node.pools(2).may_be_advised());
  EXPECT_FALSE(node.pools(0).may_be_advised());
}

TEST_F(AdvisorTest, ReceivesEveryChangeWithoutAsking) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(10));
  const auto watch = stub_->Watch(&context, {});
  v1::AdvisedNode node;
  ASSERT_TRUE(watch->Read(&node));
  EXPECT_EQ(node.containers_size(), 0);
  drive().Reconcile();  // which changes nothing, and so reports nothing
  Admit(drive(), "web", "web", 3);
  drive().Reconcile();
  ASSERT_TRUE(watch->Read(&node));
  EXPECT_EQ(node.containers_size(), 1);
  context.TryCancel();
}

TEST_F(AdvisorTest, AdviceFromBeforeARestartCountsUntilItsLeaseIsOver) {
  v1::AppliedAdvice applied;
  ASSERT_TRUE(Advise("reclaim", 10, applied).ok());
  for (int plan = 0; plan < 3; ++plan) {
    ReclaimAtNextPlan();
  }
  ASSERT_EQ(Size(drive(), "reclaim"), 10);
  RestartPlugin();
  EXPECT_EQ(Size(drive(), "reclaim"), 10);
  clock_.Advance(seconds(328));  // a lease, and what advice is held for
  drive().Reconcile();
  EXPECT_EQ(Size(drive(), "reclaim"), 10);
  clock_.Advance(seconds(3));
  drive().Reconcile();
  clock_.Advance(seconds(31));
  EXPECT_LT(ReclaimAtNextPlan(), 10);
}

TEST_F(AdvisorTest, AnAdvisorIsFollowedAtOnceAfterARestart) {
  v1::AppliedAdvice applied;
  ASSERT_TRUE(Advise("reclaim", 10, applied).ok());
  ReclaimAtNextPlan();
  RestartPlugin();
  ASSERT_TRUE(Advise("reclaim", 4, applied).ok());
  EXPECT_EQ(applied.size(), 4);
}

TEST_F(AdvisorTest, CannotEmptyAPoolOrAdviseOneThatIsNotListed) {
  Admit(drive(), "web", "web", 20);
  v1::AppliedAdvice applied;
  ASSERT_TRUE(Advise("reclaim", 0, applied).ok());
  EXPECT_EQ(applied.clipped_by(), v1::Clip::MIN);
  ASSERT_TRUE(Advise("default", 40, applied).ok());
  EXPECT_EQ(applied.clipped_by(), v1::Clip::UNKNOWN);
  clock_.Advance(seconds(60));
  drive().Reconcile();
  EXPECT_EQ(Size(drive(), "default"), 2);
}

TEST_F(AdvisorTest, ThatHasGoneLeavesThePoolsAsTheyWouldBeWithoutAdvice) {
  Drive twin = Start(kSilent);
  Dice dice(1);
  for (int step = 0; step < 400; ++step) {
    if (dice.OneIn(2)) {
      v1::AppliedAdvice applied;
      ASSERT_TRUE(Advise(dice.OneIn(2) ? "reclaim" : "share", dice.Below(90) - 10, applied).ok());
    } else if (dice.OneIn(3)) {
      const std::string pod = fmt::format("pod{}", dice.Below(40));
      drive().RemovePod(pod);
      twin.RemovePod(pod);
    } else {
      const auto request = test::Request(fmt::format("pod{}", dice.Below(40)),
                                         dice.OneIn(2) ? "batch" : "web", "cpu", dice.Below(9));
      ASSERT_EQ(drive().Admit(request).ok(), twin.Admit(request).ok()) << "step " << step;
    }
    clock_.Advance(seconds(dice.Below(20)));
    drive().Reconcile();
    twin.Reconcile();
    ASSERT_NO_FATAL_FAILURE(CheckPools()) << "step " << step;
  }
  clock_.Advance(seconds(330));
  for (int plan = 0; plan < 64; ++plan) {
    clock_.Advance(seconds(31));
    drive().Reconcile();
    twin.Reconcile();
  }
  for (const char* const pool : {"share", "reclaim", "default"}) {
    EXPECT_EQ(Size(drive(), pool), Size(twin, pool)) << pool;
  }
}

TEST_F(AdvisorTest, IsRejectedASeventeenthWatch) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::AdvisedNode>>> watches;
  v1::AdvisedNode node;
  for (int i = 0; i < 16; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    watches.push_back(stub_->Watch(contexts.back().get(), {}));
    ASSERT_TRUE(watches.back()->Read(&node));
  }
  grpc::ClientContext context;
  const auto watch = stub_->Watch(&context, {});
  EXPECT_FALSE(watch->Read(&node));
  const grpc::Status refused = watch->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("there are 16 watches"));
  for (const auto& one : contexts) {
    one->TryCancel();
  }
}

}  // namespace
}  // namespace qrm::cpu::advisor_test
