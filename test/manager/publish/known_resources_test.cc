#include "manager/publish/known_resources.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::known_resources_test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Pair;

constexpr char kName[] = "example.com/dongle";
const KnownResources::Time kBegin{std::chrono::hours(1)};

auto HasAmount(double amount) {
  return ElementsAre(Pair(kName, Field(&AllocatableResource::allocatable, amount)));
}

TEST(KnownResourcesTest, ResourcesThatAreNotReportedAnyMoreStayForTheGracePeriod) {
  KnownResources known(seconds(10));
  known.Join({{kName, {.allocatable = 4}}}, kBegin);
  EXPECT_THAT(known.Join({}, kBegin + seconds(10)), HasAmount(4));
  EXPECT_THAT(known.Join({}, kBegin + seconds(11)), IsEmpty());
}

TEST(KnownResourcesTest, ThePeriodBeginsWithTheLatestReport) {
  KnownResources known(seconds(10));
  known.Join({{kName, {.allocatable = 4}}}, kBegin);
  known.Join({{kName, {.allocatable = 5}}}, kBegin + seconds(9));
  EXPECT_THAT(known.Join({}, kBegin + seconds(19)), HasAmount(5));
}

TEST(KnownResourcesTest, WhatANodeSaysFromBeforeCountsUntilAPluginReports) {
  KnownResources known(seconds(10));
  known.Recall({{kName, "2k"}}, kBegin);
  EXPECT_THAT(known.Join({}, kBegin), HasAmount(2000));
  EXPECT_THAT(known.Join({{kName, {.allocatable = 3}}}, kBegin), HasAmount(3));
}

}  // namespace
}  // namespace qrm::manager::known_resources_test
