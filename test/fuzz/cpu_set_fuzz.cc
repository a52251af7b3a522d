// CPU lists: whatever can be read is written in a form that reads back as the same set.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/base/check.h"
#include "api/id_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const qrm::StatusOr<qrm::CpuSet> set = qrm::CpuSet::Parse(text);
  if (!set.ok()) {
    QRM_CHECK(!set.status().message().empty());
    return 0;
  }
  const qrm::StatusOr<qrm::CpuSet> again = qrm::CpuSet::Parse(ToString(*set));
  QRM_CHECK(again.ok() && *again == *set);
  int count = 0;
  for (const int id : *set) {
    QRM_CHECK(set->Has(id));
    ++count;
  }
  QRM_CHECK(count == set->Count() && set->Empty() == (count == 0));
  return 0;
}
