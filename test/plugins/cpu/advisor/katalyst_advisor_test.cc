// The cpu plugin beside an advisor that speaks as Katalyst's does.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/base/mutex.h"
#include "api/proto/cpuadvisor/cpu.grpc.pb.h"
#include "test/plugins/cpu/elastic_fixture.h"
#include "test/support/await.h"
#include "test/support/temp_dir.h"

namespace qrm::cpu::katalyst_advisor_test {
namespace {

using std::chrono::seconds;
using test::Await;
using test::Drive;

/// Answers each question as the test has set, or fails.
class ScriptedKatalyst final : public cpuadvisor::CPUAdvisor::Service {
 public:
  explicit ScriptedKatalyst(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  grpc::Status GetAdvice(grpc::ServerContext* /*context*/,
                         const cpuadvisor::GetAdviceRequest* request,
                         cpuadvisor::GetAdviceResponse* response) override {
    MutexLock lock(mutex_);
    last_ = *request;
    *response = answer_;
    ++questions_;
    return status_;
  }

  void AnswerWith(cpuadvisor::GetAdviceResponse answer, grpc::Status status = grpc::Status::OK) {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
    status_ = std::move(status);
    questions_ = 0;
  }
  int questions() const {
    MutexLock lock(mutex_);
    return questions_;
  }
  cpuadvisor::GetAdviceRequest last() const {
    MutexLock lock(mutex_);
    return last_;
  }

 private:
  mutable Mutex mutex_;
  cpuadvisor::GetAdviceResponse answer_ QRM_GUARDED_BY(mutex_);
  grpc::Status status_ QRM_GUARDED_BY(mutex_);
  cpuadvisor::GetAdviceRequest last_ QRM_GUARDED_BY(mutex_);
  int questions_ QRM_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Server> server_;
};

cpuadvisor::GetAdviceResponse Reclaim(uint64_t cpus) {
  cpuadvisor::GetAdviceResponse answer;
  cpuadvisor::CalculationInfo& info =
      (*(*answer.mutable_entries())["reclaim"].mutable_entries())[""];
  (*info.mutable_calculation_results_by_numas())[-1].add_blocks()->set_result(cpus);
  return answer;
}

class KatalystAdvisorTest : public ElasticPlugins {
 protected:
  void SetUp() override {
    plugin_ = std::make_unique<Drive>(Start(
        "rules: [{select: {role: batch}, pool: reclaim}]\n"
        "pools: {reclaim: {size: {min: 2, max: 40, per: advice}}, default: {size: {min: 2}}}\n"
        "advisor: {katalyst: {socket: " +
        socket_ + ", every: 1s}}\n"));
    plugin_->plugin().Begin("");
  }
  void TearDown() override { plugin_->plugin().Retire(); }

  /// Whether the pool has `cpus` CPUs soon; the plugin's clock moves by a second with each look.
  bool ReclaimBecomes(int cpus) {
    return Await([&] {
      clock_.Advance(seconds(1));
      plugin_->Reconcile();
      return Size(*plugin_, "reclaim") == cpus;
    });
  }

  test::TempDir dir_;
  const std::string socket_ = dir_ / "cpu_advisor.sock";
  std::unique_ptr<Drive> plugin_;
};

TEST_F(KatalystAdvisorTest, SizesAPoolOnceItAnswers) {
  Admit(*plugin_, "job", "batch", 1);
  EXPECT_TRUE(ReclaimBecomes(2));
  ScriptedKatalyst katalyst(socket_);
  katalyst.AnswerWith(Reclaim(12));
  EXPECT_TRUE(ReclaimBecomes(12));
}

TEST_F(KatalystAdvisorTest, IsSentTheRunningContainers) {
  Admit(*plugin_, "job", "batch", 1);
  plugin_->Reconcile();
  const ScriptedKatalyst katalyst(socket_);
  EXPECT_TRUE(Await([&] { return katalyst.last().entries().contains("job-uid"); }));
  EXPECT_EQ(katalyst.last()
                .entries()
                .at("job-uid")
                .entries()
                .at("c0")
                .allocation_info()
                .owner_pool_name(),
            "reclaim");
}

TEST_F(KatalystAdvisorTest, IsAskedAgainAfterAnError) {
  ScriptedKatalyst katalyst(socket_);
  katalyst.AnswerWith({}, {grpc::StatusCode::INTERNAL, "no metrics yet"});
  ASSERT_TRUE(Await([&] { return katalyst.questions() > 0; }));
  katalyst.AnswerWith(Reclaim(7));
  Admit(*plugin_, "job", "batch", 1);
  EXPECT_TRUE(ReclaimBecomes(7));
}

TEST_F(KatalystAdvisorTest, ItsHeadroomIsExported) {
  ScriptedKatalyst katalyst(socket_);
  cpuadvisor::GetAdviceResponse answer;
  (*answer.add_extra_entries()
        ->mutable_calculation_result()
        ->mutable_values())["cpu_numa_headroom"] = R"({"1": 3.5})";
  katalyst.AnswerWith(answer);
  EXPECT_TRUE(Await([&] {
    const std::string state = plugin_->plugin().ExportState(plugin_->grants());
    return nlohmann::json::parse(state)["headroom"] == nlohmann::json{{"1", 3.5}};
  }));
}

TEST_F(KatalystAdvisorTest, CannotTakeMoreThanThePoolMayHave) {
  Admit(*plugin_, "job", "batch", 1);
  ScriptedKatalyst katalyst(socket_);
  katalyst.AnswerWith(Reclaim(1000));
  EXPECT_TRUE(ReclaimBecomes(40));
}

}  // namespace
}  // namespace qrm::cpu::katalyst_advisor_test
