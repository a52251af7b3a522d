// The model: the allocations of each container by the answers that the runtime got, and their
// invariants.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/resource.h"
#include "test/model/model_runtime.h"
#include "test/model/pod_plan.h"

namespace qrm::test {

/// A pod that kubelet has not removed yet.
struct ModelPod {
  PodPlan plan;
  std::string sandbox;
  StringMap boxes;        ///< container -> the id of its latest incarnation
  bool finished = false;  ///< its containers have ended for good
  /// Its records came from a peer's file, which has neither names nor requests.
  bool imported = false;
  /// A former sandbox was removed without an event from the restarted runtime: qrmd may still have
  /// it until it lists.
  bool lost_sandbox = false;
};

/// A container that runs with less than it asks for.
struct Waiting {
  std::string name;
  std::string why;  ///< by qrmd's word
  PodPlan growth;   ///< what it lacks, as a pod of its own
};

/// Keeps its account only from the answers to the runtime, and compares.
///
/// Threads: one.
class Books {
 public:
  using Time = std::chrono::steady_clock::time_point;

  std::map<std::string, ModelPod>& pods() { return pods_; }  // by UID
  const std::map<std::string, ModelPod>& pods() const { return pods_; }
  /// Containers may lose exclusive CPUs with it, and then share others: the owners of the CPUs that
  /// they run on are not known until the next look.
  void SetOnline(const CpuSet& cpus, const std::vector<Box>& boxes);

  /// The pod has ended: soon it is not on record any more.
  enum class Heard { kYes, kNo };
  void NoteEnd(const std::string& uid, Time now, Heard heard) {
    ended_.emplace(uid, End{.at = now, .heard = heard});
  }
  /// qrmd was started, or connected again: it may have to find again which containers have ended.
  void NoteRestart(Time now);
  /// The container asks for other CPUs: the owners of its CPUs are not known until the next look.
  void NoteResize(const ContainerKey& key);
  /// qrmd answered the creation of the container. Errors: the allocation is wrong.
  enum class Which { kFirst, kLater };
  Status NoteAnswer(const ModelPod& pod, const PlannedContainer& container, const Box& box,
                    Which which);

  /// What holds at every moment: no CPU has two owners, no node and no NIC is over its size.
  Status CheckBoxes(const std::vector<Box>& boxes) const;

  /// What holds while qrmd runs undisturbed: no shared container runs on exclusive CPUs.
  Status CheckApart(const std::vector<Box>& boxes) const;
  /// What holds once qrmd and the runtime had time: the runtime has the recorded values.
  static Status CheckTold(const v1::ListPodsResponse& records, const std::vector<Box>& boxes);

  /// What holds once qrmd had time: records and runtime agree, resources of removed pods are free,
  /// and shared containers have all CPUs that are not exclusive. Learns which containers have
  /// exclusive CPUs.
  struct Look {
    const v1::ListPodsResponse& records;
    const std::vector<Box>& boxes;
    Time now;
    bool all_plugins_live = true;
  };
  Status CheckRecords(const Look& look);
  /// What holds then of requests: each container that runs has what it asks for now, and no less
  /// than it began with, or waits for it. Adds those that wait to `waiting`.
  Status CheckRequests(const Look& look, std::vector<Waiting>& waiting);

  /// Whether a container runs that may lack a part of its request. It is tried again and again, and
  /// may take the allocation of an ended pod at any moment.
  bool SomebodyWaits(const std::vector<Box>& boxes) const;
  /// Whether the pod must be admitted: there is room, and no other pod waits for it or keeps it
  /// with an end that qrmd has not noticed. A sentence that says what is free; empty: it may be
  /// rejected.
  std::string RoomFor(const PodPlan& plan, const std::vector<Box>& boxes) const;
  /// Whether the pod, whose containers are among `boxes`, has all that it asks for, so that it must
  /// be admitted again, also where it asks for more since. It has not where a container was never
  /// placed, or was made without its NIC, or is an init container, which has ended.
  bool HoldsAll(const PodPlan& plan, const std::vector<Box>& boxes) const;

 private:
  const PlannedContainer* FindPlan(const ContainerKey& key) const;
  /// It may be placed with what it asks for now.
  void WidenBaseline(const ContainerKey& key);
  /// Whether it is the latest incarnation of a container whose pod has not ended.
  bool IsCurrent(const Box& box) const;
  bool IsInit(const ContainerKey& key) const;
  /// Whether it is an init container that has ended, and those after it are there: these have what
  /// it had.
  bool IsPastInit(const Box& box) const;
  /// Whether it is an init container that runs beside one which starts after it.
  bool RunsInTurn(const Box& box, const std::vector<Box>& boxes) const;
  std::string NameOf(const ContainerKey& key) const;
  Status CheckOwners(const std::vector<Box>& boxes) const;
  Status CheckAmounts(const std::vector<Box>& boxes) const;
  Status CheckKnown(const Look& look);
  Status CheckValues(const Look& look) const;
  /// What a container is to run on by its record; empty: not known.
  CpuSet DueCpus(const v1::Allocation& cpus, const Look& look) const;
  Status CheckRecordedOwners(const Look& look);
  Status CheckRecordedAmounts(const Look& look) const;
  Status CheckSharers(const Look& look) const;
  Status CheckPool(const Look& look) const;
  Status CheckInits(const Look& look) const;
  Status CheckRequestsOf(const Box& box, const v1::Container& record,
                         std::vector<Waiting>& waiting) const;
  Status CheckOwnCount(const Box& box, const v1::Container& record,
                       std::vector<Waiting>& waiting) const;

  std::map<std::string, ModelPod> pods_;
  struct End {
    Time at;
    Heard heard = Heard::kYes;
    bool forgotten = false;  ///< nothing is on record for it
  };
  std::map<std::string, End> ended_;  // by UID, while on record; some are still in pods_
  std::set<ContainerKey> owners_;     // of CPUs
  std::set<ContainerKey> placed_;     // answered, or on record at the latest look
  CpuSet owned_on_record_;
  CpuSet pool_on_record_;  // of the pool that follows limits
  CpuSet online_;
  bool may_lose_ = false;
};

}  // namespace qrm::test
