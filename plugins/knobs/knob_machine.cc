// Finds the knobs' files, and checks values against this process's permissions.
#include "plugins/knobs/knob_machine.h"

#include <filesystem>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "api/base/cgroup.h"
#include "api/base/config_key.h"
#include "api/base/errorf.h"
#include "plugins/knobs/thread_attributes.h"

namespace qrm::knobs {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

/// With CONFIG_RT_GROUP_SCHED, real-time threads need a budget of their cgroup.
Status CheckPolicy(const std::string& value, const KnobMachine& machine) {
  const bool realtime = value.starts_with("fifo") || value.starts_with("rr");
  if (realtime && machine.HasFile("cpu.rt_runtime_us")) {
    return Errorf(
        StatusCode::kFailedPrecondition,
        "policy {} needs a real-time budget, which containers lack on a kernel with "
        "CONFIG_RT_GROUP_SCHED (cpu.rt_runtime_us); use other, batch or idle, or another kernel",
        value);
  }
  return OkStatus();
}

Status NotHere(const KnobType& type, const Knob& knob, const KnobMachine& machine) {
  std::vector<std::string> others;
  for (const Knob& one : type.knobs) {
    if (IsOf(one, machine) && (one.place == KnobPlace::kThreads || machine.HasFile(one.name))) {
      others.push_back(one.name);
    }
  }
  const std::string why = !IsOf(knob, machine)
                              ? fmt::format("it exists in cgroup v{} only", machine.is_v1 ? 2 : 1)
                              : fmt::format("no cgroup in {} has it", machine.files_root);
  return Errorf(
      StatusCode::kFailedPrecondition, "this machine has no {}: {}; remove it from the class{}",
      knob.name, why,
      others.empty() ? "" : "; this machine has " + config::EnumerateWords(others, "and"));
}

}  // namespace

bool KnobMachine::HasFile(const std::string& name) const {
  if (files_root.empty()) {
    return false;
  }
  if (Exists(files_root + "/" + name)) {
    return true;
  }
  std::error_code error;
  for (fs::directory_iterator at(files_root, error), end; !error && at != end;
       at.increment(error)) {
    if (Exists(at->path() / name)) {
      return true;
    }
  }
  return false;
}

KnobMachine FindKnobs(const KnobType& type, const std::string& cgroup_root) {
  KnobMachine machine;
  const auto files = FindCgroupHierarchy(cgroup_root, type.controller, type.controller);
  if (files.ok()) {
    machine.files_root = files->root;
    machine.is_v1 = files->is_v1;
  }
  // In cgroup v1, the hierarchy where a container can be frozen.
  const auto threads = FindCgroupHierarchy(cgroup_root, "freezer", "memory");
  machine.threads_root = threads.ok() ? threads->root : machine.files_root;
  return machine;
}

bool IsOf(const Knob& knob, const KnobMachine& machine) {
  return knob.place != (machine.is_v1 ? KnobPlace::kFileV2 : KnobPlace::kFileV1);
}

Status CheckValues(const KnobType& type, const KnobValues& values, const KnobMachine& machine) {
  for (const Knob& knob : type.knobs) {
    const auto value = values.find(knob.name);
    if (value == values.end()) {
      continue;
    }
    if (knob.place == KnobPlace::kThreads) {
      QRM_RETURN_IF_ERROR(CheckMaySet(knob.attribute, value->second));
    } else if (!IsOf(knob, machine) || !machine.HasFile(knob.name)) {
      return NotHere(type, knob, machine);
    }
    if (knob.attribute == ThreadAttribute::kPolicy) {
      QRM_RETURN_IF_ERROR(CheckPolicy(value->second, machine));
    }
  }
  return OkStatus();
}

}  // namespace qrm::knobs
