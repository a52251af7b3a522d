// The calls to a compute driver, from one side of the wire to the other.
#include "plugins/sdk/calls/compute_calls.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/sdk/compute_plugin.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "test/support/is_ok.h"

namespace qrm::calls::compute_calls_test {
namespace {

using testing::HasSubstr;

/// Remembers its latest request, and gives what it has or the first CPU.
class RememberingDriver final : public sdk::ComputeDriver {
 public:
  bool NeedsAdd() const override { return false; }
  bool GivesHints() const override { return true; }
  bool Resizes() const override { return true; }
  StatusOr<HintList> Hints(const sdk::ComputeRequest& request) override {
    latest = request;
    return hints;
  }
  StatusOr<sdk::ComputeGrant> Admit(const sdk::ComputeRequest& request) override {
    latest = request;
    return sdk::ComputeGrant{.parts = {{.cpus = {request.available.First()}}}};
  }
  StatusOr<sdk::ComputeGrant> Resize(const sdk::ComputeRequest& request,
                                     const sdk::ComputeGrant& now) override {
    latest = request;
    return now;
  }

  HintList hints;
  sdk::ComputeRequest latest;
};

class ComputeCallsTest : public testing::Test {
 protected:
  ComputeCallsTest() { EXPECT_TRUE(test::IsOk(host_.Start())); }

  template <typename C>
  StatusOr<typename C::Answer> Ask(typename C::Request request) {
    StatusOr<typename C::Answer> answer = Status(StatusCode::kUnknown, "no answer");
    CallTo<C> call(std::move(request), [&](auto result) { answer = std::move(result.value); });
    for (const ServedCall& served : ComputeCalls()) {
      if (std::string(served.method.path) == call.method().path) {
        const StatusOr<std::string> bytes = served.answer(host_, call.Request());
        EXPECT_TRUE(test::IsOk(bytes.status()));
        call.Take({bytes.value_or("")}, NumaMask{0, 1});
      }
    }
    return answer;
  }
  static sdk::ComputeRequest Request(CpuSet current = {}) {
    return {.key = {"a", "main"},
            .available = {2, 3},
            .current = std::move(current),
            .milli_cpus = 1000};
  }

  RememberingDriver driver_;
  sdk::ComputePlugin plugin_{driver_};
  sdk::PluginDriver host_{plugin_, sdk::DriverResource("fast"), sdk::MakeMemoryState()};
};

TEST_F(ComputeCallsTest, OptionsAreKeptAndADriverThatResizesIsSentStarts) {
  const auto options = Ask<ComputeOptions>({});
  ASSERT_TRUE(test::IsOk(options.status()));
  EXPECT_TRUE(options->resizes && options->with_topology_alignment);
  EXPECT_TRUE(options->pre_start_required) << "they say which CPUs a container has";
}

TEST_F(ComputeCallsTest, HintsArriveAsTheyAreGiven) {
  driver_.hints = HintList(std::vector<TopologyHint>{{.nodes = {1}, .preferred = true}});
  EXPECT_EQ(*Ask<ComputeHints>(Request()), driver_.hints);
  EXPECT_EQ(driver_.latest.available, (CpuSet{2, 3}));
  driver_.hints = HintList::NoPreference();
  EXPECT_EQ(*Ask<ComputeHints>(Request()), driver_.hints);
}

TEST_F(ComputeCallsTest, NoPossibleNodeIsARejectionAndAnUnknownOneIsAFault) {
  driver_.hints = HintList::Impossible();
  EXPECT_THAT(MessageOf(Ask<ComputeHints>(Request()).status()),
              HasSubstr("no NUMA node can serve the request"));
  driver_.hints = HintList(std::vector<TopologyHint>{{.nodes = {7}}});
  EXPECT_EQ(Ask<ComputeHints>(Request()).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ComputeCallsTest, AContainersCpusArriveWithARequestToChangeThem) {
  ASSERT_TRUE(test::IsOk(Ask<ComputeAdmit>(Request()).status()));
  EXPECT_TRUE(driver_.latest.current.Empty());
  EXPECT_EQ(Ask<ComputeAdmit>(Request({2}))->Cpus(), CpuSet{2});
  EXPECT_EQ(driver_.latest.current, CpuSet{2});
}

}  // namespace
}  // namespace qrm::calls::compute_calls_test
