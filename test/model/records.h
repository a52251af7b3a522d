// Reads what qrmd has on record, and words what is wrong with it.
#pragma once

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/resource.h"
#include "test/model/model_machine.h"
#include "test/model/model_runtime.h"

namespace qrm::test {

template <typename... Args>
Status Broken(fmt::format_string<Args...> format, Args&&... args) {
  return Errorf(StatusCode::kInternal, format, std::forward<Args>(args)...);
}

inline CpuSet CpusOf(const std::string& text) {
  return CpuSet::Parse(text).value_or(CpuSet());
}

inline bool Lives(const Box& box) {
  return box.state != Box::State::kExited;
}

/// The CPUs that the container may use: all, until a process sets some.
inline CpuSet RunsOn(const Box& box) {
  return box.cpus.empty() ? AllCpus() : CpusOf(box.cpus);
}

using RecordsByKey = std::map<ContainerKey, const v1::Container*>;
/// They are parts of `records`.
RecordsByKey ByKey(const v1::ListPodsResponse& records);

/// The first allocation that sets `property`, or null.
const v1::Allocation* FindProperty(const v1::Container& record, const std::string& property);

/// The CPUs of the pool that follows limits, by the records of its containers.
CpuSet PoolOnRecord(const v1::ListPodsResponse& records);

}  // namespace qrm::test
