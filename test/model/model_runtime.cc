// Plays the life of pods and containers, and keeps the values that qrmd gives them.
#include "test/model/model_runtime.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "plugins/kernel/kernel_files.h"
#include "test/model/model_cri.h"
#include "test/model/model_machine.h"
#include "test/support/await.h"

namespace qrm::test {

namespace fs = std::filesystem;

using kernel::ReadLine;

namespace {

constexpr char kRestartCount[] = "io.kubernetes.container.restartCount";

/// qrmd is not running, or ended during the call: it did not answer.
bool IsAway(const Status& status) {
  return status.code() == StatusCode::kUnavailable &&
         (MessageOf(status).starts_with("no answer to") ||
          MessageOf(status).starts_with("no plugin is connected"));
}

void Write(const std::string& file, const std::string& text) {
  std::ofstream(file) << text;
}

std::string NicAddressIn(const nri::ContainerAdjustment& adjustment) {
  for (const nri::KeyValue& env : adjustment.env()) {
    if (env.key() == kNicEnv) {
      return env.value();
    }
  }
  return "";
}

nri::ContainerState NriStateOf(const Box& box) {
  switch (box.state) {
    case Box::State::kCreated:
      return nri::CONTAINER_CREATED;
    case Box::State::kRunning:
      return nri::CONTAINER_RUNNING;
    case Box::State::kExited:
      break;
  }
  return nri::CONTAINER_STOPPED;
}

}  // namespace

ModelRuntime::ModelRuntime(const std::string& directory)
    : nri_socket_(directory + "/nri.sock"),
      cri_socket_(directory + "/cri.sock"),
      cgroup_root_(directory + "/cgroup") {
  fs::create_directories(cgroup_root_ + "/qrm-test");
  Write(cgroup_root_ + "/cgroup.controllers", "cpuset");
  cri_ = std::make_unique<ModelCri>(cri_socket_, *this);
  OpenNri();
}

ModelRuntime::~ModelRuntime() = default;

void ModelRuntime::Merge(const nri::LinuxCPU& from, Box& box) const {
  if (!from.cpus().empty()) {
    box.told = from.cpus();
    Write(CgroupOf(box) + "/cpuset.cpus", box.told);
  }
  if (!from.mems().empty()) {
    box.mems = from.mems();
    Write(CgroupOf(box) + "/cpuset.mems", box.mems);
  }
}

// qrmd may be writing the file: it is empty for an instant.
Box ModelRuntime::Seen(const Box& box) const {
  Box seen = box;
  if (box.state == Box::State::kExited) {
    seen.cpus = box.told;  // what it had
    return seen;
  }
  Await([&] {
    seen.cpus = ReadLine(CgroupOf(box) + "/cpuset.cpus");
    return !seen.cpus.empty() || !fs::exists(CgroupOf(box));
  });
  if (box.told.empty() && seen.cpus == ToString(AllCpus())) {
    seen.cpus.clear();  // as it was made
  }
  return seen;
}

void ModelRuntime::WriteAgain(const std::string& id) {
  const MutexLock lock(mutex_);
  const Box& box = boxes_.at(id);
  if (box.state != Box::State::kExited && !box.told.empty()) {
    Write(CgroupOf(box) + "/cpuset.cpus", box.told);
  }
}

void ModelRuntime::OpenNri() {
  const std::lock_guard hook(hook_);
  if (nri_ == nullptr) {
    nri_ = std::make_unique<ScriptedRuntime>(nri_socket_);
    nri_->SetInventory([this] { return TakeInventory(); });
  }
}

void ModelRuntime::CloseNri() {
  closed_synchronizations_ = synchronizations();
  const std::lock_guard hook(hook_);
  nri_.reset();
}

void ModelRuntime::LeaveOut(std::set<std::string> ids, int times) {
  const MutexLock lock(mutex_);
  unheard_ = ids;
  std::erase_if(unheard_,
                [this](const auto& id) QRM_REQUIRES(mutex_) { return by_cri_.contains(id); });
  left_out_ = std::move(ids);
  leaves_out_ = times;
}

bool ModelRuntime::AnyUnheard() const {
  const MutexLock lock(mutex_);
  return !unheard_.empty();
}

StatusOr<Box> ModelRuntime::ShowOverCri(const std::string& id) {
  const MutexLock lock(mutex_);
  unheard_.erase(id);
  if (left_out_.contains(id)) {
    by_cri_.insert(id);
  }
  const auto found = boxes_.find(id);
  if (found == boxes_.end()) {
    return Errorf(StatusCode::kNotFound, "no container {}", id);
  }
  return Seen(found->second);
}

ScriptedRuntime::Inventory ModelRuntime::TakeInventory() {
  const MutexLock lock(mutex_);
  if (leaves_out_ == 0) {
    left_out_.clear();
    unheard_.clear();
  }
  leaves_out_ = std::max(leaves_out_ - 1, 0);
  ScriptedRuntime::Inventory inventory;
  for (const auto& [id, sandbox] : sandboxes_) {
    inventory.pods.push_back(sandbox.message.SerializeAsString());
  }
  for (const auto& [id, box] : boxes_) {
    if (left_out_.contains(id)) {
      continue;
    }
    by_cri_.erase(id);
    nri::Container container = box.message;
    container.set_state(NriStateOf(box));
    nri::LinuxCPU& cpu = *container.mutable_linux()->mutable_resources()->mutable_cpu();
    cpu.set_cpus(box.told);
    cpu.set_mems(box.mems);
    inventory.containers.push_back(container.SerializeAsString());
  }
  return inventory;
}

int ModelRuntime::synchronizations() const {
  return closed_synchronizations_ + (nri_ == nullptr ? 0 : nri_->synchronizations());
}

bool ModelRuntime::WaitForConnection(int before) {
  return nri_ != nullptr && nri_->WaitForSynchronizations(before + 1 - closed_synchronizations_);
}

StatusOr<std::string> ModelRuntime::Call(const std::string& method, const std::string& request) {
  return nri_ == nullptr ? Errorf(StatusCode::kUnavailable, "no plugin is connected: NRI is closed")
                         : nri_->Call(method, request);
}

nri::PodSandbox ModelRuntime::MessageOfSandbox(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nri::PodSandbox() : found->second.message;
}

Status ModelRuntime::Tell(nri::Event event, const std::string& sandbox_id, const Box& box) {
  nri::Container container = box.message;
  container.set_state(NriStateOf(box));
  return TellOf(event, MessageOfSandbox(sandbox_id), container);
}

Status ModelRuntime::TellOf(nri::Event event, const nri::PodSandbox& pod,
                            const nri::Container& container) {
  nri::StateChangeEvent change;
  change.set_event(event);
  *change.mutable_pod() = pod;
  *change.mutable_container() = container;
  const std::lock_guard hook(hook_);
  return Call("StateChange", change.SerializeAsString()).status();
}

std::string ModelRuntime::RunSandbox(const PodSpec& spec) {
  Sandbox sandbox{.message = MakePod(spec)};
  {
    const MutexLock lock(mutex_);
    sandbox.id = fmt::format("sandbox-{}", ++serial_);
    sandbox.era = era_;
    sandbox.message.set_id(sandbox.id);
    sandboxes_[sandbox.id] = sandbox;
  }
  (void)Tell(nri::RUN_POD_SANDBOX, sandbox.id);
  return sandbox.id;
}

StatusOr<nri::CreateContainerResponse> ModelRuntime::Create(
    const nri::CreateContainerRequest& request) {
  const std::lock_guard hook(hook_);
  QRM_ASSIGN_OR_RETURN(const std::string answer,
                       Call("CreateContainer", request.SerializeAsString()));
  nri::CreateContainerResponse response;
  return response.ParseFromString(answer)
             ? StatusOr<nri::CreateContainerResponse>(std::move(response))
             : Errorf(StatusCode::kInternal, "qrmd's answer is not a CreateContainerResponse");
}

StatusOr<std::string> ModelRuntime::RunContainer(const std::string& sandbox_id, const PodSpec& spec,
                                                 uint32_t attempt) {
  Box box{.sandbox_id = sandbox_id,
          .key = {spec.uid, spec.container.name},
          .attempt = attempt,
          .message = MakeContainer(spec)};
  {
    const MutexLock lock(mutex_);
    box.id = fmt::format("container-{}", ++serial_);
  }
  box.message.set_id(box.id);
  box.message.set_pod_sandbox_id(sandbox_id);
  box.message.mutable_linux()->set_cgroups_path("/qrm-test/" + box.id);
  (*box.message.mutable_annotations())[kRestartCount] = std::to_string(attempt);
  nri::CreateContainerRequest request;
  *request.mutable_pod() = MessageOfSandbox(sandbox_id);
  *request.mutable_container() = box.message;
  StatusOr<nri::CreateContainerResponse> answer = Create(request);
  if (!answer.ok() && !IsAway(answer.status())) {
    for (const nri::Event event : {nri::STOP_CONTAINER, nri::REMOVE_CONTAINER}) {
      (void)Tell(event, sandbox_id, box);
    }
    return answer.status();
  }
  fs::create_directories(CgroupOf(box));
  Write(CgroupOf(box) + "/cpuset.cpus", ToString(AllCpus()));
  Write(CgroupOf(box) + "/cpuset.mems", fmt::format("0-{}", kModelNodes - 1));
  if (answer.ok()) {
    box.adjusted = true;
    Merge(answer->adjust().linux().resources().cpu(), box);
    box.nic_address = NicAddressIn(answer->adjust());
    Adjust(answer->adjust(), box.message);
  }
  {
    const MutexLock lock(mutex_);
    boxes_[box.id] = box;
  }
  Status prepared = Tell(nri::START_CONTAINER, sandbox_id, box);
  if (!prepared.ok() && !IsAway(prepared)) {
    RemoveContainer(box.id);
    return prepared;
  }
  box.state = Box::State::kRunning;  // before qrmd learns it, as in containerd
  {
    const MutexLock lock(mutex_);
    boxes_.at(box.id).state = box.state;
  }
  (void)Tell(nri::POST_START_CONTAINER, sandbox_id, box);
  return box.id;
}

void ModelRuntime::StopContainer(const std::string& id) {
  Box stopped;
  {
    const MutexLock lock(mutex_);
    Box& box = boxes_.at(id);
    if (box.state == Box::State::kExited) {
      return;
    }
    box.state = Box::State::kExited;
    unheard_.erase(id);
    stopped = box;
    fs::remove_all(CgroupOf(box));
  }
  (void)Tell(nri::STOP_CONTAINER, stopped.sandbox_id, stopped);
}

void ModelRuntime::RemoveContainer(const std::string& id) {
  StopContainer(id);
  Box removed;
  {
    const MutexLock lock(mutex_);
    removed = boxes_.at(id);
    boxes_.erase(id);
  }
  (void)Tell(nri::REMOVE_CONTAINER, removed.sandbox_id, removed);
}

void ModelRuntime::StopSandbox(const std::string& id) {
  for (const Box& box : Boxes()) {
    if (box.sandbox_id == id) {
      StopContainer(box.id);
    }
  }
  bool told = false;
  {
    const MutexLock lock(mutex_);
    Sandbox& sandbox = sandboxes_.at(id);
    told = sandbox.ready && sandbox.era == era_;
    sandbox.ready = false;
  }
  if (told) {
    (void)Tell(nri::STOP_POD_SANDBOX, id);
  }
}

void ModelRuntime::RemoveSandbox(const std::string& id) {
  StopSandbox(id);
  for (const Box& box : Boxes()) {
    if (box.sandbox_id == id) {
      RemoveContainer(box.id);
    }
  }
  Sandbox removed;
  bool told = false;
  {
    const MutexLock lock(mutex_);
    removed = sandboxes_.at(id);
    sandboxes_.erase(id);
    told = removed.era == era_;
  }
  if (told) {
    (void)TellOf(nri::REMOVE_POD_SANDBOX, removed.message, {});
  }
}

bool ModelRuntime::TellsOf(const std::string& sandbox_id) const {
  const MutexLock lock(mutex_);
  return sandboxes_.at(sandbox_id).era == era_;
}

void ModelRuntime::Restart() {
  {
    const MutexLock lock(mutex_);
    ++era_;
  }
  if (nri_ != nullptr) {
    nri_->Disconnect();
  }
}

Status ModelRuntime::Resize(const std::string& id, const ContainerSpec& spec) {
  const CgroupValues values = ValuesFor(spec);
  cri::LinuxContainerResources resources;
  resources.set_cpu_shares(values.cpu_shares);
  resources.set_cpu_quota(values.cpu_quota_us);
  resources.set_cpu_period(100000);
  resources.set_memory_limit_in_bytes(values.memory_limit_bytes);
  return Update(id, resources);
}

Status ModelRuntime::UpdateOverCri(const std::string& id,
                                   const cri::LinuxContainerResources& values) {
  const Updates updates = updates_;
  const Status applied = updates == Updates::kFail ? OkStatus() : Update(id, values);
  return updates == Updates::kWork
             ? applied
             : Errorf(StatusCode::kUnavailable, "the script lets this update fail");
}

Status ModelRuntime::Update(const std::string& id, const cri::LinuxContainerResources& values) {
  QRM_ASSIGN_OR_RETURN(const Box box, FindBox(id));
  nri::UpdateContainerRequest request;
  *request.mutable_pod() = MessageOfSandbox(box.sandbox_id);
  *request.mutable_container() = box.message;
  nri::LinuxResources& resources = *request.mutable_linux_resources();
  resources.mutable_cpu()->set_cpus(values.cpuset_cpus());
  resources.mutable_cpu()->set_mems(values.cpuset_mems());
  if (values.cpu_shares() != 0) {
    resources.mutable_cpu()->mutable_shares()->set_value(
        static_cast<uint64_t>(values.cpu_shares()));
    resources.mutable_cpu()->mutable_quota()->set_value(values.cpu_quota());
    resources.mutable_cpu()->mutable_period()->set_value(
        static_cast<uint64_t>(values.cpu_period()));
  }
  if (values.memory_limit_in_bytes() != 0) {
    resources.mutable_memory()->mutable_limit()->set_value(values.memory_limit_in_bytes());
  }
  const std::lock_guard hook(hook_);  // until it is applied: updates do not overtake each other
  const StatusOr<std::string> answer = Call("UpdateContainer", request.SerializeAsString());
  nri::UpdateContainerResponse response;
  if (answer.ok() && !response.ParseFromString(*answer)) {
    return Errorf(StatusCode::kInternal, "qrmd's answer is not an UpdateContainerResponse");
  }
  if (!answer.ok() && !IsAway(answer.status())) {
    return answer.status();
  }
  {
    const MutexLock lock(mutex_);
    const auto found = boxes_.find(id);
    if (found != boxes_.end()) {
      Merge(resources.cpu(), found->second);
      if (values.cpu_shares() != 0) {
        found->second.message.mutable_linux()->mutable_resources()->MergeFrom(resources);
      }
    }
  }
  Apply(response);
  return OkStatus();
}

void ModelRuntime::Apply(const nri::UpdateContainerResponse& response) {
  const MutexLock lock(mutex_);
  for (const nri::ContainerUpdate& update : response.update()) {
    const auto found = boxes_.find(update.container_id());
    if (found != boxes_.end()) {
      Merge(update.linux().resources().cpu(), found->second);
    }
  }
}

std::vector<Box> ModelRuntime::Boxes() const {
  const MutexLock lock(mutex_);
  std::vector<Box> all;
  all.reserve(boxes_.size());
  for (const auto& [id, box] : boxes_) {
    all.push_back(Seen(box));
  }
  return all;
}

std::vector<Sandbox> ModelRuntime::Sandboxes() const {
  const MutexLock lock(mutex_);
  std::vector<Sandbox> all;
  all.reserve(sandboxes_.size());
  for (const auto& [id, sandbox] : sandboxes_) {
    all.push_back(sandbox);
  }
  return all;
}

StatusOr<Box> ModelRuntime::FindBox(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto found = boxes_.find(id);
  if (found == boxes_.end()) {
    return Errorf(StatusCode::kNotFound, "no container {}", id);
  }
  return Seen(found->second);
}

}  // namespace qrm::test
