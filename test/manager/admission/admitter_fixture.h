// A node with two working plugins, for tests of admissions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "test/support/answering_plugins.h"
#include "test/support/manual_clock.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_decisions.h"

namespace qrm::test {

using manager::AdmissionEvent;
using manager::Admitter;
using manager::Releaser;
using manager::RunOptions;
using manager::StateLoop;
using placement::AdmissionOptions;
using placement::ContainerDemand;

inline ResourceAllocation Pin(std::string_view property, const std::string& value) {
  return {.oci_property = std::string(property),
          .value = value,
          .is_scalar_resource = true,
          .quantity = 2};
}

inline PluginScript Gives(const std::string& resource, ResourceAllocation allocation) {
  PluginScript script;
  script.gives = AllocationByResource{{resource, std::move(allocation)}};
  return script;
}

inline placement::ContainerDemand Demand(const std::string& pod = "web",
                                         const std::string& container = "main") {
  return {.pod = SamplePod(pod),
          .container = container,
          .requests = {{"cpu", 2}, {"memory", 1 << 20}},
          .source = "test"};
}

// Eight CPUs on two nodes, and working cpu and memory plugins.
class AdmitterTest : public testing::Test {
 protected:
  AdmitterTest() {
    plugins_.Set("cpu", Gives("cpu", Pin(kCpusetCpus, "0-1")));
    plugins_.Set("memory", Gives("memory", Pin(kCpusetMems, "0")));
  }

  Admitter MakeAdmitter(placement::AdmissionOptions options = {}) {
    return Admitter({.state = state_,
                     .decisions = decisions_.log,
                     .plugins = plugins_,
                     .releaser = releaser_,
                     .machine = machine_,
                     .clock = clock_,
                     .listener = [this](const AdmissionEvent& event) { events_.push_back(event); }},
                    std::move(options));
  }
  StatusOr<RunOptions> Admit(const placement::ContainerDemand& demand,
                             placement::AdmissionOptions options = {},
                             Admitter::Moment moment = Admitter::Moment::kAtCreation) {
    Admitter admitter = MakeAdmitter(std::move(options));
    auto admitted = RunOn(state_, [&] {
      return admitter.Admit(demand, moment, DeadlineAfter(std::chrono::seconds(10)));
    });
    Settle(state_);
    return admitted;
  }
  std::string Rejection(const placement::ContainerDemand& demand,
                        placement::AdmissionOptions options = {}) {
    return MessageOf(Admit(demand, std::move(options)).status());
  }
  const checkpoint::ContainerRecord* Record(const placement::ContainerDemand& demand) {
    snapshot_ = state_.Load();
    return snapshot_->Find(demand.key());
  }
  nlohmann::json LastTrace() { return nlohmann::json::parse(decisions_.log.Read().back().json); }

  Journal journal_;
  AnsweringPlugins plugins_;
  const Machine machine_ = SampleMachine();
  ManualClock clock_;
  TempDecisions decisions_;
  StateLoop state_{OpenMemoryStore(journal_)};
  Releaser releaser_{state_, plugins_, {}};
  std::vector<AdmissionEvent> events_;
  std::shared_ptr<const checkpoint::NodeState> snapshot_;
};

}  // namespace qrm::test
