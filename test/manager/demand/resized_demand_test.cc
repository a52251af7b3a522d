#include <cstdint>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "manager/demand/demand_source.h"

namespace qrm::manager::resized_demand_test {
namespace {

using Requests = std::map<std::string, double>;

Requests After(const Requests& requests, const LinuxResources& told,
               const std::string& qos_class = "Burstable") {
  placement::ContainerDemand demand;
  demand.pod.qos_class = qos_class;
  demand.requests = requests;
  return ResizedDemand(demand, told).requests;
}

LinuxResources Shares(uint64_t shares) {
  return {.cpu_shares = shares, .cpu_quota_us = 50000, .cpu_period_us = 100000};
}

TEST(ResizedDemandTest, AnOlderSpecYieldsToTheCpusOfTheShares) {
  EXPECT_EQ(After({{"cpu", 0.5}, {"nic", 2}}, Shares(1024)), (Requests{{"cpu", 1}, {"nic", 2}}));
  EXPECT_EQ(After({}, Shares(102)), (Requests{{"cpu", 0.1}}));
  EXPECT_EQ(After({{"cpu", 0.5}}, Shares(2)), Requests());
}

TEST(ResizedDemandTest, TheSpecSaysCpusThatSharesCannotShow) {
  EXPECT_EQ(After({{"cpu", 0.002}}, Shares(2)), (Requests{{"cpu", 0.002}}));
  EXPECT_EQ(After({{"cpu", 300}}, Shares(262144)), (Requests{{"cpu", 300}}));
}

TEST(ResizedDemandTest, MemoryOfAGuaranteedPodIsTheLimit) {
  LinuxResources told = Shares(1024);
  told.memory_limit_bytes = 200;
  EXPECT_EQ(After({{"memory", 100}}, told, "Guaranteed").at("memory"), 200);
  EXPECT_EQ(After({{"memory", 100}}, told).at("memory"), 100);
}

TEST(ResizedDemandTest, LimitIsTheQuotaThatItNowHas) {
  placement::ContainerDemand demand;
  demand.limits = {{"cpu", 4}, {"nic", 1}};
  EXPECT_EQ(ResizedDemand(demand, Shares(1024)).limits, (Requests{{"cpu", 0.5}, {"nic", 1}}));
  EXPECT_EQ(ResizedDemand(demand, {.cpu_quota_us = -1, .cpu_period_us = 100000}).limits,
            (Requests{{"nic", 1}}));
  EXPECT_EQ(ResizedDemand(demand, {.cpu_period_us = 100000}).limits, demand.limits);
}

TEST(ResizedDemandTest, ALimitForWhichKubeletWritesTheQuotaStays) {
  placement::ContainerDemand demand;
  demand.limits = {{"cpu", 0.005}};
  EXPECT_EQ(ResizedDemand(demand, {.cpu_quota_us = 1000, .cpu_period_us = 100000}).limits,
            (Requests{{"cpu", 0.005}}))
      << "the least that a kernel takes";
  EXPECT_EQ(ResizedDemand(demand, {.cpu_quota_us = 2000, .cpu_period_us = 100000}).limits,
            (Requests{{"cpu", 0.02}}));
}

TEST(ResizedDemandTest, ValuesThatAnotherProcessSetAreNoRequest) {
  EXPECT_EQ(After({{"cpu", 0.5}}, {.cpu_shares = 1024}), (Requests{{"cpu", 0.5}}));
}

}  // namespace
}  // namespace qrm::manager::resized_demand_test
