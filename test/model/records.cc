// Looks records up.
#include "test/model/records.h"

namespace qrm::test {

RecordsByKey ByKey(const v1::ListPodsResponse& records) {
  RecordsByKey by_key;
  for (const v1::Pod& pod : records.pods()) {
    for (const v1::Container& container : pod.containers()) {
      by_key[{pod.uid(), container.name()}] = &container;
    }
  }
  return by_key;
}

const v1::Allocation* FindProperty(const v1::Container& record, const std::string& property) {
  for (const v1::Allocation& allocation : record.allocations()) {
    if (allocation.oci_property() == property) {
      return &allocation;
    }
  }
  return nullptr;
}

CpuSet PoolOnRecord(const v1::ListPodsResponse& records) {
  CpuSet pool;
  for (const v1::Pod& pod : records.pods()) {
    for (const v1::Container& container : pod.containers()) {
      const v1::Allocation* const cpus = FindProperty(container, std::string(kCpusetCpus));
      if (pod.role() == kPoolRole && cpus != nullptr) {
        pool |= CpusOf(cpus->value());
      }
    }
  }
  return pool;
}

}  // namespace qrm::test
