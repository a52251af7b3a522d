// What kubelet and the runtime do to pods.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/proto/pods/v1alpha1/api.pb.h"
#include "test/model/model_machine.h"
#include "test/model/player.h"
#include "test/support/await.h"

namespace qrm::test {
namespace {

constexpr std::size_t kMostPods = 24;
constexpr int kNames = 40;

/// "main 2-3/0" for the container's present values.
std::string Describe(const Box& box) {
  return fmt::format("{} {}/{}{}", box.key.container, box.cpus, box.mems,
                     box.nic_address.empty() ? "" : "/" + box.nic_address);
}

}  // namespace

void Player::Tell(const PodPlan& plan, int event) {
  if (plan.told == PodPlan::Told::kNo) {
    return;
  }
  const std::string message = plan.Message();
  if (event == ::v1alpha1::EVENT_TYPE_DELETED) {
    kubelet_.Forget(plan.uid);
  } else {
    kubelet_.Put(plan.uid, message);
  }
  kubelet_.Send(event, message);
}

// A name comes back under another UID, as in a StatefulSet.
std::string Player::FreshName(Random& random) const {
  for (;;) {
    const std::string name = fmt::format("pod{}", DrawBelow(random, kNames));
    const bool taken = std::any_of(books_.pods().begin(), books_.pods().end(), [&](const auto& it) {
      return it.second.plan.name == name && !it.second.finished;
    });
    if (!taken) {
      return name;
    }
  }
}

ModelPod* Player::DrawPod(Random& random) {
  std::vector<ModelPod*> alive;
  for (auto& [uid, pod] : books_.pods()) {
    if (!pod.finished) {
      alive.push_back(&pod);
    }
  }
  return alive.empty() ? nullptr : alive[static_cast<std::size_t>(DrawBelow(random, alive.size()))];
}

Status Player::Admit(Random& random) {
  if (books_.pods().size() >= kMostPods) {
    return Remove(random);
  }
  const auto kind = static_cast<PodKind>(DrawBelow(random, kPodKinds));
  return AdmitPod(MakePlan(kind, FreshName(random), ++next_serial_, random));
}

Status Player::AdmitPod(const PodPlan& plan) {
  const std::string room = books_.RoomFor(plan, runtime_.Boxes());
  Note(fmt::format("{} ({} CPUs, {} MiB, {} Mbit/s{})", plan.name, plan.own_cpus(),
                   plan.bound_bytes() >> 20, plan.nic_mbps(),
                   plan.told == PodPlan::Told::kNo ? "" : ", spec known"));
  Tell(plan, ::v1alpha1::EVENT_TYPE_ADDED);
  ModelPod& pod = books_.pods()[plan.uid];
  pod.plan = plan;
  pod.sandbox = runtime_.RunSandbox(plan.SpecFor(plan.containers.front()));
  Status run = RunContainers(pod, Books::Which::kFirst);
  if (run.ok() || run.code() == StatusCode::kInternal) {
    return run;
  }
  Note(fmt::format("rejected: {}", MessageOf(run)));
  ++counts_["(refused)"];
  const Status judged = JudgeRefusal(plan, run, room);
  RemovePod(plan.uid);
  return judged;
}

// Init containers run to their end one after another; the others stay.
Status Player::RunContainers(ModelPod& pod, Books::Which which) {
  for (const PlannedContainer& container : pod.plan.containers) {
    QRM_RETURN_IF_ERROR(RunOne(pod, container, which));
    if (container.kind == PlannedContainer::Kind::kInit) {
      QRM_RETURN_IF_ERROR(books_.CheckBoxes(runtime_.Boxes()));
      runtime_.StopContainer(pod.boxes.at(container.spec.name));
    }
  }
  return OkStatus();
}

// One that got it once keeps it.
bool Player::MustHaveNic(const ModelPod& pod, const PlannedContainer& container,
                         Books::Which which) const {
  if (container.nic_mbps == 0 || off_.contains("NIC") || lost_.contains("NIC") || !settled_) {
    return false;
  }
  if (which == Books::Which::kFirst) {
    return pod.plan.told == PodPlan::Told::kFirst;
  }
  const auto former = pod.boxes.find(container.spec.name);
  return former != pod.boxes.end() && container.kind == PlannedContainer::Kind::kApp &&
         !runtime_.FindBox(former->second).value_or(Box()).nic_address.empty();
}

Status Player::RunOne(ModelPod& pod, const PlannedContainer& container, Books::Which which) {
  const bool must_have_nic = MustHaveNic(pod, container, which);
  QRM_ASSIGN_OR_RETURN(
      const std::string id,
      runtime_.RunContainer(pod.sandbox, pod.plan.SpecFor(container), container.attempt));
  pod.boxes[container.spec.name] = id;
  QRM_ASSIGN_OR_RETURN(const Box box, runtime_.FindBox(id));
  if (!box.adjusted) {
    Note("unseen");
    settled_ = false;
    if (dying_) {  // its sockets are closed first
      Await([this] { return !node_.Runs(); }, std::chrono::seconds(1));
    } else if (away_for_ == 0 && observed_for_ == 0) {
      ++counts_["(unseen by a qrmd that runs)"];
    }
    return OkStatus();
  }
  Note(Describe(box));
  if (lost_.contains("cpu")) {
    return OkStatus();  // it is placed when its plugin comes
  }
  if (must_have_nic && box.nic_address.empty()) {
    return Errorf(StatusCode::kInternal, "{}/{} was admitted without the NIC that it asks for",
                  pod.plan.name, container.spec.name);
  }
  return books_.NoteAnswer(pod, container, box, which);
}

// Errors: the rejection, where nothing explains it.
Status Player::JudgeRefusal(const PodPlan& plan, const Status& refusal, const std::string& room) {
  const bool is_hurt = dying_ || read_only_for_ > 0 || lost_.contains("cpu") ||
                       lost_.contains("memory") || (plan.nic_mbps() > 0 && !AllPluginsLive());
  if (is_hurt) {
    return OkStatus();
  }
  if (refusal.code() == StatusCode::kDeadlineExceeded) {
    return Errorf(StatusCode::kInternal, "the runtime got no answer in time about {}", plan.name);
  }
  if (plan.asks_nothing_special()) {
    return Errorf(StatusCode::kInternal, "{} asks nothing special and was rejected: {}", plan.name,
                  MessageOf(refusal));
  }
  return !room.empty() && settled_ && AllPluginsLive()
             ? Errorf(StatusCode::kInternal, "{} was rejected although there is room ({}): {}",
                      plan.name, room, MessageOf(refusal))
             : OkStatus();
}

Status Player::Remove(Random& random) {
  if (books_.pods().empty()) {
    return OkStatus();
  }
  const auto pod = std::next(books_.pods().begin(), DrawBelow(random, books_.pods().size()));
  Note(pod->second.plan.name);
  RemovePod(pod->first);
  return OkStatus();
}

void Player::NoteEnd(const ModelPod& pod) {
  const bool heard = away_for_ == 0 && observed_for_ == 0 && !dying_ && !pod.lost_sandbox &&
                     runtime_.TellsOf(pod.sandbox);
  books_.NoteEnd(pod.plan.uid, std::chrono::steady_clock::now(),
                 heard ? Books::Heard::kYes : Books::Heard::kNo);
}

void Player::RemovePod(const std::string& uid) {
  const ModelPod& pod = books_.pods().at(uid);
  NoteEnd(pod);
  for (const Sandbox& sandbox : runtime_.Sandboxes()) {
    if (sandbox.message.uid() == uid) {
      runtime_.RemoveSandbox(sandbox.id);
    }
  }
  Tell(pod.plan, ::v1alpha1::EVENT_TYPE_DELETED);
  books_.pods().erase(uid);
}

// As for a job: kubelet knows the pod, and keeps its stopped sandbox.
Status Player::FinishPod(Random& random) {
  ModelPod* const pod = DrawPod(random);
  if (pod == nullptr) {
    return OkStatus();
  }
  Note(pod->plan.name);
  pod->finished = true;
  NoteEnd(*pod);
  runtime_.StopSandbox(pod->sandbox);
  return OkStatus();
}

// The new one is created before the old one is removed, or even before it has ended.
Status Player::Restart(Random& random) {
  ModelPod* const pod = DrawPod(random);
  if (pod == nullptr) {
    return OkStatus();
  }
  PlannedContainer& container = pod->plan.containers.back();
  const auto old = pod->boxes.find(container.spec.name);
  if (old == pod->boxes.end()) {
    return OkStatus();
  }
  const std::string old_id = old->second;
  const std::vector<Box> before = runtime_.Boxes();
  Note(fmt::format("{}/{}", pod->plan.name, container.spec.name));
  if (random() % 2 == 0) {
    runtime_.StopContainer(old_id);
  }
  ++container.attempt;
  Status run = RunOne(*pod, container, Books::Which::kLater);
  runtime_.RemoveContainer(old_id);
  if (run.ok() || run.code() == StatusCode::kInternal) {
    return run;
  }
  pod->boxes.erase(container.spec.name);
  Note(fmt::format("rejected: {}", MessageOf(run)));
  const bool holds_all = books_.HoldsAll(pod->plan, before);
  const Status judged = JudgeRefusal(pod->plan, run, holds_all ? "it holds what it asks for" : "");
  RemovePod(pod->plan.uid);
  return judged;
}

Status Player::Recreate(Random& random) {
  ModelPod* const pod = DrawPod(random);
  if (pod == nullptr) {
    return OkStatus();
  }
  Note(pod->plan.name);
  const std::string old = pod->sandbox;
  const bool first_stop = random() % 2 == 0;
  const std::vector<Box> before = runtime_.Boxes();
  const bool may_lose_place = first_stop && books_.SomebodyWaits(before);
  if (first_stop) {
    runtime_.StopSandbox(old);
  }
  pod->sandbox = runtime_.RunSandbox(pod->plan.SpecFor(pod->plan.containers.front()));
  for (PlannedContainer& container : pod->plan.containers) {
    ++container.attempt;
  }
  Status run = RunContainers(*pod, Books::Which::kLater);
  pod->lost_sandbox = pod->lost_sandbox || !runtime_.TellsOf(old);
  runtime_.RemoveSandbox(old);
  if (run.ok() || run.code() == StatusCode::kInternal) {
    return run;
  }
  Note(fmt::format("rejected: {}", MessageOf(run)));
  const bool holds_all = !may_lose_place && books_.HoldsAll(pod->plan, before);
  const Status judged = JudgeRefusal(pod->plan, run, holds_all ? "it holds what it asks for" : "");
  RemovePod(pod->plan.uid);
  return judged;
}

// Up, down, or the limit alone. Kubelet reports it before or after the runtime carries it out.
Status Player::Resize(Random& random) {
  ModelPod* const pod = DrawPod(random);
  if (pod == nullptr) {
    return OkStatus();
  }
  PlannedContainer& container = pod->plan.containers.back();
  const auto box = pod->boxes.find(container.spec.name);
  if (box == pod->boxes.end() || container.spec.milli_cpus == 0 || updates_fail_for_ > 0) {
    return OkStatus();
  }
  const int cpus = 1 + DrawBelow(random, 5);
  const bool only_limit = !container.spec.cpu_limit && random() % 2 == 0;
  Note(fmt::format("{} to {}{} CPUs", pod->plan.name, only_limit ? "a limit of " : "", cpus));
  if (only_limit) {
    ResizeLimit(container, cpus);
  } else {
    ResizeCpus(container, cpus);
  }
  settled_ = false;
  const bool tells_first = random() % 2 == 0;
  if (tells_first) {
    Tell(pod->plan, ::v1alpha1::EVENT_TYPE_MODIFIED);
  }
  QRM_RETURN_IF_ERROR(runtime_.Resize(box->second, container.spec));
  if (!tells_first) {
    Tell(pod->plan, ::v1alpha1::EVENT_TYPE_MODIFIED);
  }
  // The other CPUs follow by an update; until then it runs on CPUs that it no longer owns.
  books_.NoteResize({pod->plan.uid, container.spec.name});
  return away_for_ > 0 || dying_ ? OkStatus() : node_.daemon().Reconcile();
}

// Kubelet reports the spec of a pod that runs.
Status Player::TellLate(Random& random) {
  ModelPod* const pod = DrawPod(random);
  if (pod == nullptr || pod->plan.told != PodPlan::Told::kNo) {
    return OkStatus();
  }
  Note(pod->plan.name);
  pod->plan.told = PodPlan::Told::kLate;
  settled_ = false;
  Tell(pod->plan, ::v1alpha1::EVENT_TYPE_ADDED);
  return OkStatus();
}

void Player::RemoveAll() {
  while (!books_.pods().empty()) {
    RemovePod(books_.pods().begin()->first);
  }
}

// Pods that the runtime did not report are found by the next lists.
Status Player::AwaitNothingOnRecord() {
  Status held;
  const auto look = [&] {
    const auto records = node_.daemon().ListPods();
    held = records.ok() && records->pods_size() == 0
               ? OkStatus()
               : Errorf(StatusCode::kInternal, "all pods are gone, and still on record is {}",
                        records.ok() ? records->ShortDebugString() : MessageOf(records.status()));
    return held.ok();
  };
  Await(look, std::chrono::seconds(20));
  return held;
}

// It gets each pending update when it does nothing else, or late.
Status Player::AwaitAllTold() {
  Status held;
  const auto look = [&] {
    const auto records = node_.daemon().ListPods();
    held = records.ok() ? Books::CheckTold(*records, runtime_.Boxes()) : records.status();
    return held.ok();
  };
  Await(look, std::chrono::seconds(20));
  return held;
}

// Up to the last CPU, byte and Mbit/s.
Status Player::FillUp() {
  for (int node = 0; node < kModelNodes; ++node) {
    const int cpus = (CpusOfNode(node) - node_.offline() - ReservedCpus()).Count();
    for (const int part : {cpus / 2, cpus - cpus / 2}) {
      const int serial = ++next_serial_;
      QRM_RETURN_IF_ERROR(
          AdmitPod(MakeDatabase(fmt::format("fill{}", serial), serial, part, kBytesPerNode / 2)));
    }
    const int serial = ++next_serial_;
    QRM_RETURN_IF_ERROR(AdmitPod(MakeNicUser(fmt::format("fill{}", serial), serial, kNicMbps)));
  }
  return OkStatus();
}

// When all pods are gone, everything is free again.
Status Player::Drain(Random& /*random*/) {
  QRM_RETURN_IF_ERROR(BringBack());
  if (AllPluginsLive()) {
    QRM_RETURN_IF_ERROR(AwaitAllTold());
  }
  RemoveAll();
  if (!AllPluginsLive()) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(AwaitNothingOnRecord());
  QRM_RETURN_IF_ERROR(Settle());
  QRM_RETURN_IF_ERROR(node_.daemon().Reconcile());  // what pools gave up is idle then
  QRM_RETURN_IF_ERROR(FillUp());
  RemoveAll();
  return OkStatus();
}

}  // namespace qrm::test
