#include "cluster/lease_election.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/cluster/client_fixture.h"
#include "test/support/await.h"

namespace qrm::cluster::lease_election_test {
namespace {

using std::chrono::milliseconds;
using test::Await;

constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/leases";
constexpr char kLease[] = "qrm/scheduler";

class LeaseElectionTest : public ClientFixture {
 protected:
  void TearDown() override {
    loop_.Run([&] {
      first_.reset();
      second_.reset();
    });
  }
  std::unique_ptr<LeaseElection> Run(const std::string& identity,
                                     milliseconds renew_deadline = milliseconds(700)) {
    std::unique_ptr<LeaseElection> election;
    loop_.Run([&] {
      election = std::make_unique<LeaseElection>(
          loop_.io(), *client_,
          LeaseElection::Options{.lease_namespace = "qrm",
                                 .name = "scheduler",
                                 .identity = identity,
                                 .duration = renew_deadline + milliseconds(300),
                                 .renew_deadline = renew_deadline,
                                 .retry = milliseconds(20)},
          [this] {
            ++begun_;
            told_before_ = told_before_ || latest_->Leads();
          });
      latest_ = election.get();
      election->Start();
    });
    return election;
  }
  void PutLeaseOf(const std::string& holder) {
    server_.Put(kLeases, {{"metadata", {{"namespace", "qrm"}, {"name", "scheduler"}}},
                          {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", 3600}}}});
  }
  std::ptrdiff_t Reads() const {
    const std::vector<std::string> requests = server_.requests();
    return std::count_if(requests.begin(), requests.end(),
                         [](const std::string& request) { return request.starts_with("GET "); });
  }
  nlohmann::json Spec() const { return server_.Find(kLeases, kLease)["spec"]; }

  std::atomic<int> begun_ = 0;
  LeaseElection* latest_ = nullptr;  // on the loop
  std::atomic<bool> told_before_ = false;
  std::unique_ptr<LeaseElection> first_;
  std::unique_ptr<LeaseElection> second_;
};

TEST_F(LeaseElectionTest, TheFirstOneMakesTheLeaseAndLeads) {
  first_ = Run("first");
  ASSERT_TRUE(Await([&] { return first_->Leads(); }));
  EXPECT_EQ(Spec()["holderIdentity"], "first");
  EXPECT_EQ(Spec()["leaseDurationSeconds"], 1);
  EXPECT_EQ(Spec()["leaseTransitions"], 0);
  EXPECT_EQ(begun_, 1);
  EXPECT_FALSE(told_before_) << "preparations come first";
}

TEST_F(LeaseElectionTest, AnotherWaitsWhileItIsRenewed) {
  first_ = Run("first");
  ASSERT_TRUE(Await([&] { return first_->Leads(); }));
  second_ = Run("second");
  const std::string renewed = Spec()["renewTime"];
  ASSERT_TRUE(Await([&] { return Spec()["renewTime"] != renewed; }));
  EXPECT_TRUE(first_->Leads());
  EXPECT_FALSE(second_->Leads());
}

TEST_F(LeaseElectionTest, ALeaseThatIsNotRenewedRunsOut) {
  first_ = Run("first");
  ASSERT_TRUE(Await([&] { return first_->Leads(); }));
  loop_.Run([&] { first_.reset(); });
  second_ = Run("second");
  EXPECT_TRUE(Await([&] { return second_->Leads(); }));
  EXPECT_EQ(Spec()["leaseTransitions"], 1);
}

TEST_F(LeaseElectionTest, AReleasedLeaseIsTakenAtOnce) {
  first_ = Run("first");
  ASSERT_TRUE(Await([&] { return first_->Leads(); }));
  std::atomic<bool> released = false;
  loop_.Run([&] { first_->Release([&] { released = true; }); });
  ASSERT_TRUE(Await([&] { return released.load(); }));
  EXPECT_FALSE(first_->Leads());
  EXPECT_EQ(Spec()["holderIdentity"], "");
  second_ = Run("second");
  EXPECT_TRUE(Await([&] { return second_->Leads(); }));
}

TEST_F(LeaseElectionTest, StopsLeadingAtOnceWhenAnotherHasTheLease) {
  first_ = Run("first", std::chrono::hours(1));
  ASSERT_TRUE(Await([&] { return first_->Leads(); }));
  PutLeaseOf("another");
  EXPECT_TRUE(Await([&] { return !first_->Leads(); }));
}

TEST_F(LeaseElectionTest, TheLeaderRecreatesAMissingLease) {
  first_ = Run("first", std::chrono::hours(1));
  ASSERT_TRUE(Await([&] { return first_->Leads(); }));
  server_.Delete(kLeases, kLease);
  EXPECT_TRUE(Await([&] { return server_.Find(kLeases, kLease).is_object(); }));
  EXPECT_EQ(Spec()["holderIdentity"], "first");
  EXPECT_TRUE(first_->Leads());
}

TEST_F(LeaseElectionTest, AMissingLeaseOfAnotherIsNotTakenBeforeItWouldHaveRunOut) {
  PutLeaseOf("another");
  first_ = Run("first");
  ASSERT_TRUE(Await([&] { return Reads() > 1; }));  // it has seen the first answer
  server_.Delete(kLeases, kLease);
  const auto reads = Reads();
  ASSERT_TRUE(Await([&] { return Reads() > reads + 2; }));
  EXPECT_TRUE(server_.Find(kLeases, kLease).is_null());
  EXPECT_FALSE(first_->Leads());
}

TEST_F(LeaseElectionTest, StopsLeadingWhenItCannotRenew) {
  first_ = Run("first");
  ASSERT_TRUE(Await([&] { return first_->Leads(); }));
  server_.Refuse(1'000'000, 503);
  EXPECT_TRUE(Await([&] { return !first_->Leads(); }));
}

}  // namespace
}  // namespace qrm::cluster::lease_election_test
