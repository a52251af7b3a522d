// Plays the steps of a run on a private node, and checks the invariants after each.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "test/model/books.h"
#include "test/model/model_node.h"
#include "test/model/model_runtime.h"
#include "test/model/step.h"
#include "test/support/killer.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

/// Threads: one, which must live as long.
class Player {
 public:
  Player();

  Status Start();
  /// Errors: the broken invariant, in one sentence.
  Status Play(const Step& step);
  /// Ends all faults, and checks once more.
  Status Finish();

  /// The latest steps and their results.
  std::string Trace() const;
  /// How often each kind came, and its results.
  std::string Summary() const;
  std::string Holdings() const { return node_.Holdings(); }
  std::string LogEnd() const { return node_.LogEnd(); }

 private:
  using Random = std::mt19937;
  /// For what two reconciles begin, such as updates: two seconds, if the machine does not stall.
  static constexpr std::chrono::seconds kTimeToAgree{6};
  /// From 0 to `below` - 1.
  static int DrawBelow(Random& random, std::size_t below) {
    return static_cast<int>(random() % static_cast<uint32_t>(below));
  }

  // The steps of kubelet and the runtime: pod_steps.cc
  Status Admit(Random& random);
  Status AdmitPod(const PodPlan& plan);
  Status RunContainers(ModelPod& pod, Books::Which which);
  Status RunOne(ModelPod& pod, const PlannedContainer& container, Books::Which which);
  bool MustHaveNic(const ModelPod& pod, const PlannedContainer& container,
                   Books::Which which) const;
  Status Remove(Random& random);
  void RemovePod(const std::string& uid);
  void NoteEnd(const ModelPod& pod);
  Status FinishPod(Random& random);
  Status Restart(Random& random);
  Status Recreate(Random& random);
  Status Resize(Random& random);
  Status TellLate(Random& random);
  Status Drain(Random& random);
  void RemoveAll();
  Status AwaitNothingOnRecord();
  Status AwaitAllTold();
  Status FillUp();
  Status JudgeRefusal(const PodPlan& plan, const Status& refusal, const std::string& room);
  void Tell(const PodPlan& plan, int event);
  ModelPod* DrawPod(Random& random);
  std::string FreshName(Random& random) const;

  // The faults: fault_steps.cc
  Status RuntimeRestarted(Random& random);
  Status LeftOut(Random& random);
  Status Observer(Random& random);
  Status EndObserver();
  Status WrittenAgain(Random& random);
  Status Kill(Random& random);
  Status KillSoon(Random& random);
  Status DieAtWrite(Random& random);
  Status ReadOnly(Random& random);
  Status UpdatesFail(Random& random);
  Status PluginLost(Random& random);
  Status PluginEmptied(Random& random);
  Status PluginReplaced(Random& random);
  Status PluginMoved(Random& random);
  Status PluginOff(Random& random);
  Status Import(Random& random);
  Status Cpus(Random& random);
  Status RestartDaemon();
  /// And lets qrmd restore its allocations.
  Status StartPlugin(const std::string& resource,
                     ModelNode::Socket socket = ModelNode::Socket::kSame);
  std::string DrawResource(Random& random, const std::vector<std::string>& among);

  // player.cc
  Status Perform(const Step& step);
  Status AfterStep();
  Status EndFaults();
  Status BringBack();
  Status Settle(std::chrono::seconds limit = kTimeToAgree);
  Status LookOnce();
  Status CheckWaiting(const std::vector<Waiting>& waiting);
  void Note(const std::string& what) { trace_.back() += " " + what; }
  bool CanSettle() const {
    return away_for_ == 0 && observed_for_ == 0 && read_only_for_ == 0 && updates_fail_for_ == 0 &&
           !dying_;
  }
  bool AllPluginsLive() const { return lost_.empty() && off_.empty(); }

  const TempDir dir_ = TempDir::InMemory();
  ScriptedKubelet kubelet_;
  ModelRuntime runtime_;
  ModelNode node_;
  Books books_;

  int steps_ = 0;
  int next_serial_ = 0;
  int away_for_ = 0;                 ///< steps until qrmd, which does not run, is started
  int observed_for_ = 0;             ///< steps until the runtime serves NRI again
  int read_only_for_ = 0;            ///< steps until its disk can be written to again
  int updates_fail_for_ = 0;         ///< steps until the runtime takes updates again
  std::map<std::string, int> lost_;  ///< killed plugins' processes, and for how many steps
  struct Off {
    int steps = 0;
    Home home = Home::kInside;
  };
  std::map<std::string, Off> off_;  ///< plugins that are disabled
  std::unique_ptr<Killer> killer_;
  bool dying_ = false;   ///< qrmd may end at any moment
  bool settled_ = true;  ///< records were compared since the last fault

  std::deque<std::string> trace_;
  std::map<std::string, int> counts_;
};

}  // namespace qrm::test
