// Random histories of pools with advice, mostly for more than is available. P17: the rules hold
// whatever is advised, and once the advice is over, sizes are as if there had been none.
#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/proto/qrm/v1/advisor.grpc.pb.h"
#include "test/plugins/cpu/pool_history.h"
#include "test/support/temp_dir.h"

namespace qrm::cpu::advised_model_test {
namespace {

class AdvisedHistory final : public History {
 public:
  AdvisedHistory(unsigned seed, const std::string& socket)
      : History(seed, fmt::format("advisor: {{socket: {}, pools: [a, b, c]}}\n", socket)),
        target_("unix:" + socket) {}

  int advised() const { return advised_; }

 private:
  void Advise() override {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // the plugin may have been restarted
    const auto stub = v1::Advisor::NewStub(
        grpc::CreateCustomChannel(target_, grpc::InsecureChannelCredentials(), own));
    v1::AdviseRequest request;
    request.set_advisor("test");
    request.set_generation(Generation(*stub) - (dice().OneIn(8) ? 1 : 0));
    for (const char* pool : {"a", "b", "c", "default", "nowhere"}) {
      if (dice().OneIn(2)) {
        v1::AdviceEntry& entry = *request.add_entries();
        entry.set_pool(pool);
        entry.set_cpus(dice().OneIn(8) ? 2147483647 : dice().Below(60) - 10);
      }
    }
    grpc::ClientContext context;
    SetDeadline(context);
    v1::AdviseResponse response;
    const grpc::Status status = stub->Advise(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ++advised_;
  }

  static void SetDeadline(grpc::ClientContext& context) {
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }
  static uint64_t Generation(v1::Advisor::Stub& stub) {
    grpc::ClientContext context;
    SetDeadline(context);
    const auto watch = stub.Watch(&context, {});
    v1::AdvisedNode node;
    EXPECT_TRUE(watch->Read(&node));
    context.TryCancel();
    return node.generation();
  }

  const std::string target_;
  int advised_ = 0;
};

TEST(AdvisedModelTest, RandomHistoriesKeepTheRulesWhateverIsAdvised) {
  const int histories = std::max(Histories() / 4, 1);
  const test::TempDir dir = test::TempDir::InMemory();
  int advised = 0;
  for (int seed = 1; seed <= histories; ++seed) {
    AdvisedHistory history(static_cast<unsigned>(seed), dir / "advisor.sock");
    for (int step = 0; step < 60; ++step) {
      ASSERT_NO_FATAL_FAILURE(history.Step()) << "seed " << seed << ", step " << step << " of\n"
                                              << history.text();
    }
    ASSERT_NO_FATAL_FAILURE(CheckTuning(history.node())) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(history.Converge()) << "seed " << seed;
    advised += history.advised();
  }
  EXPECT_GT(advised, histories);
}

}  // namespace
}  // namespace qrm::cpu::advised_model_test
